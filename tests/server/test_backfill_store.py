"""Backfills and how far they have come."""

from __future__ import annotations

import pytest

from penstock.scheduler.values import Decision, FiringState
from penstock.server.agenda_store import AgendaStore
from penstock.server.backfill_store import Backfill, BackfillProgress, BackfillState
from tests.server.agenda import NOON, firing

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
    record = any_store.firing("f0")
    assert record is not None
    assert record.firing.reason == "its backfill was cancelled"
    late = Decision(firings=(firing("f1", backfill="b1"),))
    assert not any_store.record([], late, fence=None)
