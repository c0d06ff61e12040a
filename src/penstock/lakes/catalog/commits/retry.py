"""Retrying a transaction that another writer overtook: how often, and how long between attempts."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from sqlalchemy import exc

from penstock.errors import RetriesExhausted
from penstock.lakes.catalog.database.faults import lost_race

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Waits are in seconds; each is drawn between half of it and the whole, so writers disperse."""

    retries: int = 10
    wait: float = 0.1
    backoff: float = 1.5
    longest: float = 5.0

    def pause(self, attempt: int) -> None:
        wait = min(self.wait * self.backoff**attempt, self.longest)
        time.sleep(wait * (0.5 + random.random() / 2))


def retried(act: Callable[[], T], retry: RetryPolicy) -> T:
    """Run ``act``, a whole transaction, and retry it when another writer committed first.

    Raises RetriesExhausted; other exceptions of ``act`` pass through.
    """
    last: exc.DBAPIError | None = None
    for attempt in range(retry.retries + 1):
        if attempt:
            retry.pause(attempt - 1)
        try:
            return act()
        except exc.DBAPIError as error:
            if not lost_race(error):
                raise
            last = error
    raise exhausted(retry) from last


def exhausted(retry: RetryPolicy) -> RetriesExhausted:
    attempts = "1 attempt" if retry.retries == 0 else f"{retry.retries + 1} attempts"
    return RetriesExhausted(
        f"the commit did not land in {attempts}",
        hint="nothing was changed; try again when fewer writers are busy, or allow more attempts: "
        "SET ducklake_max_retry_count = 100",
        data={"attempts": retry.retries + 1},
    )
