"""Recording of events: each once, in groups, and an event that is refused fails alone."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from penstock.errors import ArgumentError, CatalogLocked
from penstock.scheduler.values import EventKind, TriggerEvent
from penstock.server.http_security import RefusedRequest
from penstock.server.http_values import HttpSettings
from penstock.server.recording import GroupRecorder, SingleRecorder, make_recorder
from tests.server.http_parts import GroupMemoryInbox, MemoryInbox

# A busy machine takes longer than the default window to begin all the tasks of a test.
SETTINGS = HttpSettings(group_size=10, group_window=0.5)


def event(key: object) -> TriggerEvent:
    return TriggerEvent(str(key), EventKind.MESSAGE, "orders", datetime(2026, 1, 1, tzinfo=UTC))


def record_all(
    inbox: MemoryInbox, keys: Sequence[object], settings: HttpSettings = SETTINGS
) -> list[bool | BaseException]:
    """Record events at once; return what each of those who wait is told."""

    async def record() -> list[bool | BaseException]:
        recorder = make_recorder(inbox, settings)
        tasks = [recorder.record(event(key)) for key in keys]
        results = await asyncio.gather(*tasks, return_exceptions=True)
        recorder.close()
        return results

    return asyncio.run(record())


@pytest.mark.parametrize("inbox", [MemoryInbox(0.002), GroupMemoryInbox(0.002)])
def test_an_id_is_accepted_once(inbox: MemoryInbox) -> None:
    keys = [0, 1, 2, 0, 1, 0]
    results = record_all(inbox, keys)
    assert [bool(result) for result in results].count(True) == 3
    assert set(inbox.events) == {"0", "1", "2"}
    assert record_all(inbox, keys) == [False] * 6


def test_events_that_arrive_together_share_commits() -> None:
    inbox = GroupMemoryInbox()
    assert record_all(inbox, range(100)) == [True] * 100
    assert inbox.commits == 10


def test_the_inbox_chooses_the_recorder() -> None:
    assert isinstance(make_recorder(GroupMemoryInbox(), SETTINGS), GroupRecorder)
    assert isinstance(make_recorder(MemoryInbox(), SETTINGS), SingleRecorder)


class Choosy(GroupMemoryInbox):
    """Refuses one event, and any group that has it."""

    def _commit(self, events: Sequence[TriggerEvent]) -> list[bool]:
        if any(event.id == "bad" for event in events):
            raise ArgumentError("this event is refused")
        return super()._commit(events)


def test_an_event_that_is_refused_fails_alone() -> None:
    results = record_all(Choosy(), [1, "bad", 2, "bad"])
    assert results[0] is True
    assert results[2] is True
    assert [type(result) for result in results[1::2]] == [ArgumentError, ArgumentError]


class Locked(GroupMemoryInbox):
    def _commit(self, events: Sequence[TriggerEvent]) -> list[bool]:
        self.commits += 1
        raise CatalogLocked("another process holds it")


def test_a_catalog_that_is_locked_is_asked_once_for_a_group() -> None:
    inbox = Locked()
    results = record_all(inbox, range(5))
    assert [type(result) for result in results] == [CatalogLocked] * 5
    assert inbox.commits == 1


@pytest.mark.parametrize("inbox", [MemoryInbox(0.01), GroupMemoryInbox(0.01)])
def test_a_burst_over_the_limit_is_refused(inbox: MemoryInbox) -> None:
    results = record_all(inbox, range(8), replace(SETTINGS, max_waiting=5))
    refused = [result for result in results if isinstance(result, RefusedRequest)]
    assert len(refused) == 3
    assert {error.status for error in refused} == {503}
    assert len(inbox.events) == 5


def test_a_request_that_went_away_holds_up_no_other() -> None:
    inbox = GroupMemoryInbox()

    async def record() -> bool:
        recorder = make_recorder(inbox, SETTINGS)
        task = asyncio.create_task(recorder.record(event("gone")))
        await asyncio.sleep(0)
        task.cancel()
        accepted = await recorder.record(event("other"))
        recorder.close()
        return accepted

    assert asyncio.run(record())
    assert set(inbox.events) == {"other"}
