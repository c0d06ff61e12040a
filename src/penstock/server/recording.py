"""Record events for requests that wait for it: one by one, or grouped in one transaction.

A commit takes about a millisecond on SQLite, and only one runs at a time. Events that arrive
together share one: the first of them waits a few milliseconds for others, and what arrives during a
commit is in the next. A group that fails is recorded one by one, so that an event which the catalog
refuses fails alone.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Protocol

from penstock.errors import CatalogError, CommitError
from penstock.scheduler.values import TriggerEvent
from penstock.server.http_security import RETRY_LATER, RefusedRequest
from penstock.server.http_values import GroupInbox, HttpSettings, Inbox


class Recorder(Protocol):
    """Records events for requests, which wait without a thread of their own."""

    async def record(self, event: TriggerEvent) -> bool:
        """Record an event. It is durable when the call returns.

        Args:
            event: The event.

        Returns:
            False if an event of its id was recorded before.
        """
        ...

    def close(self) -> None:
        """Wait for what is being recorded, and end the threads."""
        ...


def make_recorder(inbox: Inbox, settings: HttpSettings) -> Recorder:
    """Return the recorder that fits an inbox.

    Args:
        inbox: The inbox. One that has ``accept_many`` records events in groups.
        settings: The limits.

    Returns:
        The recorder.
    """
    if isinstance(inbox, GroupInbox):
        return GroupRecorder(inbox, settings)
    return SingleRecorder(inbox, settings)


class SingleRecorder:
    """Record each event in a transaction of its own, in a pool of threads."""

    def __init__(self, inbox: Inbox, settings: HttpSettings) -> None:
        """Create the recorder.

        Args:
            inbox: The inbox.
            settings: The limits.
        """
        self._inbox = inbox
        self._limit = settings.max_waiting
        self._waiting = 0
        self._pool = ThreadPoolExecutor(settings.accept_threads, "penstock-inbox")

    async def record(self, event: TriggerEvent) -> bool:
        """Record an event.

        Args:
            event: The event.

        Returns:
            False if an event of its id was recorded before.
        """
        _check_waiting(self._waiting, self._limit)
        self._waiting += 1
        try:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._pool, self._inbox.accept, event)
        finally:
            self._waiting -= 1

    def close(self) -> None:
        """Wait for what is being recorded, and end the threads."""
        self._pool.shutdown(wait=True)


@dataclass(slots=True)
class _Entry:
    """An event that waits to be recorded, and those who wait for it."""

    event: TriggerEvent
    result: Future[bool] = field(default_factory=Future)

    def resolve(self, accepted: bool | BaseException) -> None:
        if isinstance(accepted, BaseException):
            self.result.set_exception(accepted)
        else:
            self.result.set_result(accepted)


class GroupRecorder:
    """Record the events that wait in one transaction, by one thread."""

    def __init__(self, inbox: GroupInbox, settings: HttpSettings) -> None:
        """Create the recorder.

        Args:
            inbox: The inbox.
            settings: The limits.
        """
        self._inbox = inbox
        self._settings = settings
        self._lock = threading.Lock()
        self._entries: list[_Entry] = []
        self._is_draining = False
        self._pool = ThreadPoolExecutor(1, "penstock-inbox")

    async def record(self, event: TriggerEvent) -> bool:
        """Record an event together with others.

        Args:
            event: The event.

        Returns:
            False if an event of its id was recorded before.
        """
        entry = _Entry(event)
        with self._lock:
            _check_waiting(len(self._entries), self._settings.max_waiting)
            self._entries.append(entry)
            is_idle, self._is_draining = not self._is_draining, True
        if is_idle:
            self._pool.submit(self._drain)
        return await asyncio.wrap_future(entry.result)

    def close(self) -> None:
        """Wait for what is being recorded, and end the thread."""
        self._pool.shutdown(wait=True)

    def _drain(self) -> None:
        time.sleep(self._settings.group_window)
        while group := self._take_group():
            self._record_group(group)

    def _take_group(self) -> list[_Entry]:
        size = self._settings.group_size
        with self._lock:
            group, self._entries = self._entries[:size], self._entries[size:]
            self._is_draining = bool(group)
        return group

    def _record_group(self, group: list[_Entry]) -> None:
        running = [entry for entry in group if entry.result.set_running_or_notify_cancel()]
        by_id: dict[str, _Entry] = {}
        repeated = [
            entry for entry in running if by_id.setdefault(entry.event.id, entry) is not entry
        ]
        results = self._accept({key: entry.event for key, entry in by_id.items()})
        for entry in repeated:  # its event is that of another entry, which stands for both
            result = results[entry.event.id]
            entry.resolve(result if isinstance(result, BaseException) else False)
        for key, entry in by_id.items():
            entry.resolve(results[key])

    def _accept(self, events: Mapping[str, TriggerEvent]) -> dict[str, bool | BaseException]:
        try:
            accepted = self._inbox.accept_many(list(events.values())) if events else ()
            return dict(zip(events, accepted, strict=True))
        except (CatalogError, CommitError) as error:  # the next attempt would meet the same
            return dict.fromkeys(events, error)
        except Exception:
            return {key: self._accept_alone(event) for key, event in events.items()}

    def _accept_alone(self, event: TriggerEvent) -> bool | BaseException:
        try:
            return self._inbox.accept(event)
        except Exception as error:
            return error


def _check_waiting(waiting: int, limit: int) -> None:
    if waiting >= limit:
        raise RefusedRequest(
            503,
            f"{limit} events wait to be recorded",
            hint="send it again later",
            headers=RETRY_LATER,
        )
