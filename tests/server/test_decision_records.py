"""A decision is recorded as a whole, and once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from penstock.errors import ClaimLost
from penstock.lakes.catalog.catalog import Catalog
from penstock.scheduler.values import (
    Agenda,
    Decision,
    EventKind,
    FiringState,
    FreshnessMark,
    Outcome,
    OutcomeKind,
    ScheduleMark,
)
from penstock.server import leases
from penstock.server.agenda_rows import NO_SNAPSHOT, LakePositions, Position
from penstock.server.agenda_store import AgendaStore
from penstock.server.decision_records import NO_MODEL
from penstock.server.leases import LEADER
from penstock.server.state_access import StateAccess
from tests.lakes.catalog.conftest import Place
from tests.server.agenda import NOON, at, decide, event, firing, outcome

MARK = ScheduleMark("daily", "0 2 * * *", "Europe/Berlin", NOON)
READER = ("daily", "main.raw")
LATE = FreshnessMark("daily", "2026-01-01", 2, NOON)


def test_all_of_a_decision_is_recorded(any_store: AgendaStore) -> None:
    due = event("s1", kind=EventKind.SCHEDULE, source="daily")
    decision = replace(decide(event(), firing()), events=(due,), marks=(MARK,), freshness=(LATE,))
    decision = replace(
        decision, outcomes=(*decision.outcomes, outcome(due, firing(), OutcomeKind.JOINED))
    )
    look = LakePositions("main", 4, frozenset({READER}))
    assert any_store.record([event()], decision, [look], fence=None)
    assert any_store.load() == Agenda(
        firings={"f1": firing(events=("e1",))},
        marks={"daily": MARK},
        freshness={("daily", "2026-01-01"): LATE},
    )
    assert any_store.positions() == {READER: Position(*READER, "main", 4)}
    assert any_store.read_outcomes("e1") == [outcome(event(), firing())]
    assert any_store.read_outcomes("s1") == [outcome(due, firing(), OutcomeKind.JOINED)]
    assert any_store.read_event("s1") == due
    assert any_store.list_undecided(10) == []
    assert any_store.find_decided(["e1", "s1", "e2"]) == {"e1", "s1"}


def test_an_event_that_is_seen_again_fires_nothing(any_store: AgendaStore) -> None:
    any_store.record([event()], decide(event(), firing()), fence=None)
    any_store.claim_firings(["f1"])
    any_store.finish_firing("f1", FiringState.DONE)
    seen_again = event(payload={"other": 1})
    assert any_store.record([seen_again], decide(seen_again, firing("f2")), fence=None)
    assert any_store.read_firing("f2") is None
    assert any_store.read_event("e1") == event()
    assert any_store.read_outcomes("e1") == [outcome(event(), firing())]


def test_a_firing_for_an_old_and_a_new_event_is_recorded(store: AgendaStore) -> None:
    store.record([event()], decide(event(), firing()), fence=None)
    store.finish_firing("f1", FiringState.DONE)
    second = firing("f2", events=("e1", "e2"))
    outcomes = (outcome(event(), second), outcome(event("e2"), second, OutcomeKind.JOINED))
    both = Decision(firings=(second,), outcomes=outcomes)
    assert store.record([event(), event("e2")], both, fence=None)
    assert list(store.load().firings) == ["f2"]
    assert store.read_outcomes("e1") == [outcome(event(), firing())]
    assert store.read_outcomes("e2") == [outcome(event("e2"), second, OutcomeKind.JOINED)]


def test_an_event_fires_a_model_that_came_later(store: AgendaStore) -> None:
    store.record([event()], decide(event(), firing()), fence=None)
    weekly = firing("f2", model="weekly")
    assert store.record([event()], decide(event(), weekly), fence=None)
    assert sorted(store.load().firings) == ["f1", "f2"]
    assert [each.model for each in store.read_outcomes("e1")] == ["daily", "weekly"]


def test_a_later_event_supersedes_an_earlier_one(any_store: AgendaStore) -> None:
    waiting = firing(state=FiringState.WAITING, ready_at=at(5), payload={"n": 1})
    any_store.record([event()], decide(event(), waiting), fence=None)
    changed = replace(waiting, events=("e1", "e2"), ready_at=at(6), payload={"n": 2})
    superseded = Outcome("e1", "daily", OutcomeKind.SUPERSEDED, "f1", "e2 came within 5 minutes")
    later = Decision((changed,), outcomes=(superseded, outcome(event("e2"), changed)))
    assert any_store.record([event("e2")], later, fence=None)
    assert any_store.read_outcomes("e1") == [superseded]
    assert any_store.load().firings == {"f1": changed}


@pytest.mark.parametrize("end", [None, FiringState.DONE, FiringState.CANCELLED])
def test_nothing_joins_a_firing_that_has_started(
    any_store: AgendaStore, end: FiringState | None
) -> None:
    any_store.record([event()], decide(event(), firing()), fence=None)
    any_store.claim_firings(["f1"])
    if end is not None:
        any_store.finish_firing("f1", end)
    joined = decide(event("e2"), firing(events=("e1",)), OutcomeKind.JOINED)
    look = LakePositions("main", 4, frozenset({READER}))
    assert not any_store.record([event("e2")], joined, [look], fence=None)
    assert any_store.read_event("e2") is None
    assert any_store.read_outcomes("e2") == []
    assert any_store.position("daily", "main.raw") is None
    record = any_store.read_firing("f1")
    assert record is not None
    assert record.firing.state is (end or FiringState.RUNNING)
    assert record.firing.events == ("e1",)


def test_a_running_firing_is_cancelled_by_a_decision(store: AgendaStore) -> None:
    store.record([event()], decide(event(), firing()), fence=None)
    store.claim_firings(["f1"])
    cancelled = firing(state=FiringState.CANCELLED, reason="its model is gone")
    assert store.record([], Decision(firings=(cancelled,)), fence=None)
    record = store.read_firing("f1")
    assert record is not None
    assert record.firing == cancelled
    assert record.finished_at is not None
    assert store.load().firings == {}


def test_an_event_that_concerns_no_model_is_decided(store: AgendaStore) -> None:
    store.accept(event())
    assert store.record([event()], Decision(), fence=None)
    (ignored,) = store.read_outcomes("e1")
    assert (ignored.model, ignored.kind) == (NO_MODEL, OutcomeKind.IGNORED)
    assert ignored.reason == "no model is triggered by orders"
    assert store.list_undecided(10) == []


def test_a_look_moves_the_positions_of_its_lake(any_store: AgendaStore) -> None:
    weekly, other = ("weekly", "main.raw"), ("daily", "other.raw")
    looks = (
        (LakePositions("main", 4, frozenset({READER})), {READER: 4}),
        (LakePositions("other", 2, frozenset({other})), {READER: 4, other: 2}),
        (LakePositions("main", 9, frozenset({READER, weekly})), {READER: 9, weekly: 9, other: 2}),
        (LakePositions("main", NO_SNAPSHOT, frozenset({weekly})), {weekly: 9, other: 2}),
        (LakePositions("main", 6, frozenset({weekly, READER})), {weekly: 6, READER: 6, other: 2}),
        (LakePositions("other", 3), {weekly: 6, READER: 6}),
    )
    for look, expected in looks:
        any_store.record([], Decision(), [look], fence=None)
        positions = any_store.positions()
        assert {key: item.snapshot_id for key, item in positions.items()} == expected
    assert any_store.position("daily", "main.raw") == 6
    assert any_store.position("daily", "main.other") is None


def test_marks_are_replaced_and_those_without_attempts_removed(any_store: AgendaStore) -> None:
    any_store.record([], Decision(marks=(MARK,), freshness=(LATE,)), fence=None)
    later = replace(MARK, expression="0 3 * * *", since=at(9))
    fresh = replace(LATE, attempts=0)
    any_store.record([], Decision(marks=(MARK, later), freshness=(fresh,)), fence=None)
    assert any_store.load() == Agenda(marks={"daily": later})


def test_only_the_leader_records(any_catalog: Catalog, any_store: AgendaStore) -> None:
    access = StateAccess(any_catalog)
    with pytest.raises(ClaimLost, match="nobody has taken it over"):
        any_store.record([event()], Decision(), fence=1)
    old = access.write(lambda connection: leases.take(connection, LEADER, "old", 0))
    assert old is not None
    assert any_store.record([event()], decide(event(), firing()), fence=old)
    access.write(lambda connection: leases.take(connection, LEADER, "new", 30))
    with pytest.raises(ClaimLost, match="'leader' was not renewed in time, and new has taken"):
        any_store.record([event("e2")], decide(event("e2"), firing("f2")), fence=old)
    assert any_store.read_event("e2") is None
    assert list(any_store.load().firings) == ["f1"]


CHILD = """
import os, signal, sys
from contextlib import contextmanager
from dataclasses import replace
from penstock.lakes.catalog.catalog import Catalog
from penstock.server.agenda_rows import LakePositions
from penstock.server.agenda_store import AgendaStore
from tests.server.agenda import decide, event, firing

class Dying:
    def __init__(self, catalog):
        self.reading, self._writing = catalog.reading, catalog.writing
    @contextmanager
    def writing(self):
        with self._writing() as connection:
            yield connection
            os.kill(os.getpid(), signal.SIGKILL)

with Catalog.open(sys.argv[1], data_path=sys.argv[2]) as catalog:
    decision = replace(decide(event("e2"), firing("f2")), events=(event("e3"),))
    look = LakePositions("main", 9, frozenset({("daily", "main.raw")}))
    AgendaStore(Dying(catalog)).record([event("e2")], decision, [look], fence=None)
"""


@pytest.mark.slow
def test_a_killed_process_has_recorded_nothing(place: Place) -> None:
    with place.open() as catalog:
        AgendaStore(catalog).record([event()], decide(event(), firing()), fence=None)
    command = [sys.executable, "-c", CHILD, place.uri, str(place.data_path)]
    ended = subprocess.run(
        command, cwd=Path(__file__).parents[2], env=dict(os.environ), check=False, timeout=120
    )
    assert ended.returncode == -signal.SIGKILL
    with place.open() as catalog:
        store = AgendaStore(catalog)
        assert list(store.load().firings) == ["f1"]
        assert [store.read_event(event_id) for event_id in ("e1", "e2", "e3")] == [
            event(),
            None,
            None,
        ]
        assert store.read_outcomes("e2") == []
        assert store.positions() == {}
        assert store.record([event("e2")], decide(event("e2"), firing("f2")), fence=None)
        assert sorted(store.load().firings) == ["f1", "f2"]
