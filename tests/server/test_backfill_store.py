"""Backfills and how far they have come."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import count

import pytest

from penstock.model.time.partition import PartitionSpec
from penstock.scheduler.decide import decide
from penstock.scheduler.subscription import Subscription
from penstock.scheduler.values import (
    Agenda,
    Decision,
    EventKind,
    Firing,
    FiringState,
    TriggerEvent,
)
from penstock.server.agenda_store import AgendaStore
from penstock.server.backfill_store import Backfill, BackfillProgress, BackfillState
from tests.server.agenda import NOON, event, firing

ACTIVE, PAUSED = BackfillState.ACTIVE, BackfillState.PAUSED
CANCELLED, DONE = BackfillState.CANCELLED, BackfillState.DONE
JANUARY = Backfill("b1", "daily", "2026-01-01", "2026-01-31", NOON, user="ann")


def state_of(store: AgendaStore) -> BackfillState:
    (progress,) = store.backfills()
    return progress.backfill.state


def test_progress_counts_the_firings_of_each_backfill(any_store: AgendaStore) -> None:
    assert any_store.backfills() == []
    february = Backfill("b2", "daily", "2026-02-01", "2026-02-28", NOON)
    any_store.add_backfill(JANUARY)
    any_store.add_backfill(february)
    states = [FiringState.DONE, FiringState.DONE, FiringState.QUEUED]
    firings = [firing(f"f{n}", backfill="b1", state=state) for n, state in enumerate(states)]
    any_store.record([], Decision(firings=(*firings, firing("f9"))), fence=None)
    assert any_store.backfills() == [
        BackfillProgress(february),
        BackfillProgress(JANUARY, {FiringState.DONE: 2, FiringState.QUEUED: 1}),
    ]


def test_a_backfill_pauses_and_goes_on(store: AgendaStore) -> None:
    store.add_backfill(JANUARY)
    for state in (PAUSED, ACTIVE):
        assert store.set_backfill_state("b1", state)
        assert state_of(store) is state
        assert state.is_open


@pytest.mark.parametrize("end", [CANCELLED, DONE])
def test_a_backfill_that_ended_stays_so(any_store: AgendaStore, end: BackfillState) -> None:
    any_store.add_backfill(JANUARY)
    assert any_store.set_backfill_state("b1", end)
    assert not any_store.set_backfill_state("b1", ACTIVE)
    assert not any_store.set_backfill_state("b2", end)
    (progress,) = any_store.backfills()
    assert progress.backfill.state is end
    assert progress.backfill.finished_at is not None


def test_cancelling_cancels_what_has_not_started(any_store: AgendaStore) -> None:
    any_store.add_backfill(JANUARY)
    states = list(FiringState)
    firings = [firing(f"f{n}", backfill="b1", state=state) for n, state in enumerate(states)]
    any_store.record([], Decision(firings=(*firings, firing("other"))), fence=None)
    assert any_store.set_backfill_state("b1", CANCELLED)
    (progress,) = any_store.backfills()
    assert progress.firings == {
        FiringState.CANCELLED: 3,
        FiringState.RUNNING: 1,
        FiringState.DONE: 1,
        FiringState.FAILED: 1,
    }
    assert sorted(any_store.load().firings) == ["f2", "other"]
    record = any_store.read_firing("f0")
    assert record is not None
    assert record.firing.reason == "its backfill was cancelled"
    late = Decision(firings=(firing("f1", backfill="b1"),))
    assert not any_store.record([], late, fence=None)


DAILY = Subscription("daily", partition=PartitionSpec("daily"))
DAYS = ("2026-01-01", "2026-01-02")
Readers = dict[str, Subscription]
End = Callable[[AgendaStore, str], object]


def decide_all(store: AgendaStore, readers: Readers) -> None:
    """Decide what is undecided, as a round does."""
    events, agenda = store.list_undecided(10), store.load()
    number = count(len(store.list_firings(99)) + 1)
    decision = decide(readers, agenda, events, NOON, lambda: f"f{next(number)}")
    assert store.record(events, decision, fence=None)


def started(state: FiringState) -> End:
    def end(store: AgendaStore, firing_id: str) -> None:
        store.claim_firings([firing_id])
        assert store.finish_firing(firing_id, state, "why")

    return end


def superseded(store: AgendaStore, firing_id: str) -> None:
    """A decision takes the place of a firing."""
    record = store.read_firing(firing_id)
    assert record is not None
    ended = replace(record.firing, state=FiringState.CANCELLED, reason="a later one")
    assert store.record([], Decision((ended,)), fence=None)


def remove_model(store: AgendaStore, _: str) -> None:
    decide_all(store, {})


def cancel(store: AgendaStore, _: str) -> None:
    assert store.set_backfill_state("b1", CANCELLED)


def killed(store: AgendaStore, firing_id: str) -> None:
    """Its process dies before its run began, and nobody knows its model any more."""
    store.claim_firings([firing_id])
    assert store.requeue_firing(firing_id)
    decide_all(store, {})


@pytest.mark.parametrize("is_paused", [False, True])
@pytest.mark.parametrize(
    ("end", "expected"),
    [
        (started(FiringState.DONE), DONE),
        (started(FiringState.FAILED), DONE),
        (started(FiringState.CANCELLED), CANCELLED),
        (lambda store, of: store.finish_firing(of, FiringState.CANCELLED, "a person"), CANCELLED),
        (superseded, CANCELLED),
        (remove_model, CANCELLED),
        (killed, CANCELLED),
        (cancel, CANCELLED),
    ],
)
def test_a_backfill_ends_with_its_last_firing(
    store: AgendaStore, end: End, expected: BackfillState, is_paused: bool
) -> None:
    events = [
        TriggerEvent(f"b1/{day}", EventKind.BACKFILL, "daily", NOON, day, backfill="b1")
        for day in DAYS
    ]
    store.add_backfill(JANUARY, events)
    decide_all(store, {"daily": DAILY})
    first, last = sorted(store.load().firings)
    started(FiringState.DONE)(store, first)
    if is_paused:
        assert store.set_backfill_state("b1", PAUSED)
    assert state_of(store) is (PAUSED if is_paused else ACTIVE)
    end(store, last)
    (progress,) = store.backfills()
    assert progress.backfill.state is expected
    assert progress.backfill.finished_at is not None
    assert store.load() == Agenda()


def test_a_backfill_of_which_nothing_fires_is_cancelled(store: AgendaStore) -> None:
    store.add_backfill(JANUARY, [event("b1/1", kind=EventKind.BACKFILL, backfill="b1")])
    assert state_of(store) is ACTIVE
    decide_all(store, {})
    assert state_of(store) is CANCELLED


def test_a_backfill_is_open_while_slices_are_undecided(store: AgendaStore) -> None:
    asked = [event(f"b1/{n}", kind=EventKind.BACKFILL, backfill="b1") for n in range(2)]
    store.add_backfill(JANUARY, asked)
    fired: Firing = firing(backfill="b1", events=(asked[0].id,))
    store.record(asked[:1], Decision((fired,)), fence=None)
    started(FiringState.DONE)(store, "f1")
    assert state_of(store) is ACTIVE
    store.record(asked[1:], Decision(), fence=None)
    assert state_of(store) is DONE
