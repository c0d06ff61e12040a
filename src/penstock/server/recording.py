"""Record the events of HTTP requests: one by one, or in groups.

A commit takes about a millisecond on SQLite, and commits do not overlap. So events that arrive
together share a transaction: the first event waits a few milliseconds for others, and events that
arrive during a commit are in the next group. If a group fails, its events are recorded one by one.
Then only the event that the catalog rejects fails.
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
    """Records events for requests. A request that waits does not occupy a thread."""

    async def record(self, event: TriggerEvent) -> bool:
        """Record an event. It is durable when the call returns.

        Args:
            event: The event.

        Returns:
            False if an event of its id was recorded before.
        """
        ...

    def close(self) -> None:
        """Finish the recording of events, and end the threads."""
        ...


def make_recorder(inbox: Inbox, settings: HttpSettings) -> Recorder:
    """Return a recorder for an inbox.

    Args:
        inbox: The inbox. A `GroupInbox` records events in groups.
        settings: The limits.

    Returns:
        The recorder.
    """
    if isinstance(inbox, GroupInbox):
        return GroupRecorder(inbox, settings)
    return SingleRecorder(inbox, settings)


class SingleRecorder:
    """Records each event in its own transaction, in a pool of threads."""

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
        """Finish the recording of events, and end the threads."""
        self._pool.shutdown(wait=True)


@dataclass(slots=True)
class _Entry:
    """An event to record, and the result that its request waits for."""

    event: TriggerEvent
    result: Future[bool] = field(default_factory=Future)

    def resolve(self, accepted: bool | BaseException) -> None:
        if isinstance(accepted, BaseException):
            self.result.set_exception(accepted)
        else:
            self.result.set_result(accepted)


class GroupRecorder:
    """Records all events that wait in one transaction, in one thread."""

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
        """Record an event in a transaction with other events.

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
        """Finish the recording of events, and end the thread."""
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
        active = [entry for entry in group if entry.result.set_running_or_notify_cancel()]
        by_id: dict[str, _Entry] = {}
        repeated = [
            entry for entry in active if by_id.setdefault(entry.event.id, entry) is not entry
        ]
        results = self._accept({event_id: entry.event for event_id, entry in by_id.items()})
        for entry in repeated:  # another entry of the group records the same event
            result = results[entry.event.id]
            entry.resolve(result if isinstance(result, BaseException) else False)
        for event_id, entry in by_id.items():
            entry.resolve(results[event_id])

    def _accept(self, events: Mapping[str, TriggerEvent]) -> dict[str, bool | BaseException]:
        try:
            accepted = self._inbox.accept_many(list(events.values())) if events else ()
            return dict(zip(events, accepted, strict=True))
        except (CatalogError, CommitError) as error:  # each event alone would fail, too
            return dict.fromkeys(events, error)
        except Exception:
            return {event_id: self._accept_alone(event) for event_id, event in events.items()}

    def _accept_alone(self, event: TriggerEvent) -> bool | BaseException:
        try:
            return self._inbox.accept(event)
        except Exception as error:
            return error


def _check_waiting(waiting: int, limit: int) -> None:
    if waiting >= limit:
        raise RefusedRequest(
            503,
            f"{limit} events wait to be recorded, which is the limit",
            hint="send the request again later",
            headers=RETRY_LATER,
        )
