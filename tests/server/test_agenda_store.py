"""Events that are accepted, firings, pauses and counts.

Tests ``server/agenda_queries.py``, too.
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from penstock.scheduler.values import Decision, EventKind, FiringState, Outcome, OutcomeKind, Pause
from penstock.server.agenda_queries import AgendaCounts
from penstock.server.agenda_store import AgendaStore
from tests.lakes.catalog.conftest import Place
from tests.server.agenda import NOON, at, decide, event, firing


def test_an_accepted_event_waits_for_a_decision(any_store: AgendaStore) -> None:
    sent = event(payload={"id": 1}, partition="2026-01-01")
    assert any_store.accept(sent, user="ann")
    assert any_store.list_undecided(10) == [sent]
    assert any_store.read_outcomes("e1") == []
    assert any_store.find_decided(["e1"]) == frozenset()
    assert any_store.record([sent], decide(sent, firing()), fence=None)
    assert any_store.list_undecided(10) == []
    assert any_store.read_event("e1") == sent


def test_a_key_that_was_used_changes_nothing(any_store: AgendaStore) -> None:
    assert any_store.accept(event(payload={"id": 1}))
    assert not any_store.accept(event(payload={"id": 2}))
    assert any_store.list_undecided(10) == [event(payload={"id": 1})]
    any_store.record([event()], Decision(), fence=None)
    assert not any_store.accept(event())
    assert any_store.list_undecided(10) == []


def test_a_key_counts_once_within_one_call(store: AgendaStore) -> None:
    twice = [event("b"), event("a"), event("b", payload={}), event("c")]
    assert store.accept_all(twice) == [True, True, False, True]
    assert store.accept_all([]) == []
    assert [each.id for each in store.list_undecided(10)] == ["b", "a", "c"]


def test_undecided_events_come_in_their_order(store: AgendaStore) -> None:
    for event_id in ("c", "a", "b"):
        store.accept(event(event_id, time=NOON))
    assert [each.id for each in store.list_undecided(2)] == ["c", "a"]


CHILD = """
import sys
from penstock.lakes.catalog.catalog import Catalog
from penstock.server.agenda_store import AgendaStore
from tests.server.agenda import event
with Catalog.open(sys.argv[1], data_path=sys.argv[2]) as catalog:
    store = AgendaStore(catalog)
    print("ready", flush=True)
    sys.stdin.readline()
    size = int(sys.argv[4])
    for number in range(0, 200, size):
        own = [event(f"{sys.argv[3]}{number + offset}") for offset in range(size)]
        assert store.accept_all([*own, event(f"both{number}")])[:-1] == [True] * size
"""


@pytest.mark.slow
def test_two_processes_that_accept_at_once_lose_nothing(place: Place) -> None:
    size = 10 if place.uri.endswith(".ducklake") else 1  # it opens the file for each transaction
    with place.open() as catalog:
        AgendaStore(catalog).accept(event("before"))
    pipe, root = subprocess.PIPE, Path(__file__).parents[2]
    command = [sys.executable, "-c", CHILD, place.uri, str(place.data_path)]
    processes = [
        subprocess.Popen([*command, name, str(size)], stdin=pipe, stdout=pipe, text=True, cwd=root)
        for name in ("left", "right")
    ]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        process.communicate("\n", timeout=300)
    assert [process.returncode for process in processes] == [0, 0]
    names = {f"{name}{number}" for name in ("left", "right") for number in range(200)}
    names |= {f"both{number}" for number in range(0, 200, size)}
    with place.open() as catalog:
        events = AgendaStore(catalog).list_undecided(1_000)
    assert sorted(each.id for each in events) == sorted({"before", *names})


def test_firings_are_listed_newest_first(store: AgendaStore) -> None:
    others = [firing("f2", model="weekly"), firing("f3", key="2026-01-01")]
    store.record([], Decision(firings=(firing(), *others)), fence=None)
    assert [each.firing.id for each in store.list_firings(2)] == ["f3", "f2"]
    assert [each.firing.id for each in store.list_firings(9, "daily")] == ["f3", "f1"]
    assert store.list_firings(9, "hourly") == []
    assert store.read_firing("f4") is None


def test_a_pause_lasts_until_models_are_resumed(store: AgendaStore) -> None:
    pause = Pause("tag:nightly", NOON, at(60), "the source is\0 down", "ann")
    store.pause(replace(pause, until=None))
    store.pause(pause)
    store.pause(Pause("daily", NOON))
    shown = replace(pause, reason="the source is? down")
    assert store.pauses() == [Pause("daily", NOON), shown]
    assert store.load().pauses == (Pause("daily", NOON), shown)
    assert store.resume("daily")
    assert not store.resume("daily")
    assert store.pauses() == [shown]


def test_counts_have_all_states_and_the_oldest_event(any_store: AgendaStore) -> None:
    assert any_store.count() == AgendaCounts({})
    states = [FiringState.QUEUED, FiringState.QUEUED, FiringState.WAITING, FiringState.DONE]
    firings = tuple(firing(f"f{number}", state=state) for number, state in enumerate(states))
    any_store.record([], Decision(firings=firings), fence=None)
    any_store.accept(event("e1"))
    oldest = any_store.count().oldest_undecided
    any_store.accept(event("e2"))
    counts = any_store.count()
    assert counts.firings == {
        FiringState.QUEUED: 2,
        FiringState.WAITING: 1,
        FiringState.DONE: 1,
    }
    assert (counts.undecided, counts.oldest_undecided) == (2, oldest)
    assert oldest is not None
    any_store.record([event("e1")], Decision(), fence=None)
    later = any_store.count().oldest_undecided
    assert later is not None
    assert later > oldest


def test_an_event_is_ignored_for_a_reason(store: AgendaStore) -> None:
    asked = event("b1", kind=EventKind.BACKFILL, source="daily")
    ignored = Outcome("b1", "daily", OutcomeKind.IGNORED, reason="it has no such slice")
    store.record([asked], Decision(outcomes=(ignored,)), fence=None)
    assert store.read_outcomes("b1") == [ignored]
