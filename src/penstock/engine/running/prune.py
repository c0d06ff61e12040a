"""Remove old records and logs of runs, as the settings say: what fails is named, the rest goes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

from penstock.engine.state import run_history, run_log
from penstock.engine.state.run_history import Removed
from penstock.engine.state.store import State
from penstock.errors import PenstockError
from penstock.rendering.text import line
from penstock.settings.retention import Retention

if TYPE_CHECKING:
    from penstock.destinations.catalog import Catalog


@dataclass(frozen=True, slots=True)
class Pruned:
    """Records that were removed by lake, or would be, and ``logs``, the number of files.

    ``failures`` name once what could not be removed, and why; the next call tries that again.
    """

    lakes: Mapping[str, Removed] = field(default_factory=dict)
    logs: int = 0
    failures: tuple[str, ...] = ()

    def __repr__(self) -> str:
        runs = sum(each.runs for each in self.lakes.values())
        return line(self, f"{runs:,} runs, {self.logs:,} logs", *self.failures)


def prune(
    catalogs: Mapping[str, Catalog],
    retention: Retention,
    *,
    dry_run: bool = False,
    now: datetime | None = None,
) -> Pruned:
    """Remove what is not kept any longer, batch by batch. Raises nothing for what cannot be."""
    now = now or datetime.now(UTC)
    lakes: dict[str, Removed] = {}
    failures: dict[str, None] = {}
    for name, catalog in catalogs.items():
        state = State(catalog)
        ask = partial(run_history.old_runs, keep=retention.records, now=now, limit=None)
        try:
            old = state.read(ask, list[str]())
        except PenstockError as error:
            failures[f"lake {name}: {error.message}"] = None
            continue
        lakes[name] = Removed()
        for batch in run_history.batches(old):
            try:
                if dry_run:
                    counted = state.read(partial(run_history.count, run_ids=batch), Removed())
                else:
                    with catalog.writing() as connection:
                        counted = run_history.remove(connection, batch)
            except PenstockError as error:
                failures[f"lake {name}: {error.message}"] = None
                continue
            lakes[name] += counted
    logs, unremoved = _logs(retention, now, dry_run=dry_run)
    return Pruned(lakes, logs, (*failures, *unremoved))


def _logs(retention: Retention, now: datetime, *, dry_run: bool) -> tuple[int, list[str]]:
    if retention.directory is None:
        return 0, []
    old = run_log.expired(retention.directory, retention.logs, now)
    failures = [] if dry_run else list(run_log.remove(old))
    return len(old) - len(failures), failures
