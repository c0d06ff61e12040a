"""Old firings go with their events; what is open or undecided stays."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from penstock.scheduler.values import Decision, FiringState, OutcomeKind
from penstock.server.agenda_store import AgendaStore
from penstock.server.backfill_store import Backfill, BackfillState
from penstock.server.pruning import Pruned, PruneLimits
from tests.server.agenda import NOON, decide, event, firing, outcome

NOW = PruneLimits(NOON, NOON)


def later() -> PruneLimits:
    moment = datetime.now(UTC) + timedelta(hours=1)
    return PruneLimits(moment, moment)


def end(store: AgendaStore, *firing_ids: str) -> None:
    for firing_id in firing_ids:
        assert store.finish_firing(firing_id, FiringState.DONE)


def test_what_ended_goes_and_what_is_open_stays(any_store: AgendaStore) -> None:
    for number in (1, 2):
        happened = event(f"e{number}")
        any_store.record([happened], decide(happened, firing(f"f{number}")), fence=None)
    any_store.record([event("e3")], Decision(), fence=None)
    any_store.accept(event("e4"))
    end(any_store, "f1")
    assert any_store.prune(NOW) == Pruned()
    assert any_store.prune(later()) == Pruned(firings=1, events=2)
    assert any_store.prune(later()) == Pruned()
    assert any_store.read_firing("f1") is None
    assert [any_store.read_event(f"e{number}") for number in (1, 3)] == [None, None]
    assert any_store.read_outcomes("e1") == []
    assert list(any_store.load().firings) == ["f2"]
    assert any_store.read_outcomes("e2") == [outcome(event("e2"), firing("f2"))]
    assert any_store.list_undecided(10) == [event("e4")]


def test_an_event_stays_while_any_firing_needs_it(store: AgendaStore) -> None:
    both = (firing("f1", model="daily"), firing("f2", model="weekly"))
    outcomes = tuple(outcome(event(), each, OutcomeKind.FIRED) for each in both)
    store.record([event()], Decision(firings=both, outcomes=outcomes), fence=None)
    end(store, "f1")
    assert store.prune(later()) == Pruned(firings=1)
    assert store.read_outcomes("e1") == list(outcomes)
    store.record([event()], decide(event(), firing("f3")), fence=None)
    assert store.read_firing("f3") is None  # it was decided for this model
    end(store, "f2")
    assert store.prune(later()) == Pruned(firings=1, events=1)


def test_any_number_goes_batch_by_batch(store: AgendaStore) -> None:
    events = [event(f"e{number}") for number in range(250)]
    firings = [firing(f"f{number}", key=str(number)) for number in range(250)]
    pairs = zip(events, firings, strict=True)
    outcomes = tuple(outcome(happened, covering) for happened, covering in pairs)
    store.record(events, Decision(firings=tuple(firings), outcomes=outcomes), fence=None)
    for each in firings[:230]:
        store.finish_firing(each.id, FiringState.FAILED, "a test failed")
    assert store.prune(later()) == Pruned(firings=230, events=230)
    assert len(store.load().firings) == 20


def test_a_backfill_goes_after_its_firings(store: AgendaStore) -> None:
    for backfill_id in ("b1", "b2"):
        store.add_backfill(Backfill(backfill_id, "daily", "a", "b", NOON))
    running = firing(backfill="b1", state=FiringState.RUNNING)
    store.record([], Decision(firings=(running,)), fence=None)
    store.set_backfill_state("b1", BackfillState.CANCELLED)
    assert store.prune(later()) == Pruned()
    end(store, "f1")
    assert store.prune(later()) == Pruned(firings=1, backfills=1)
    assert [each.backfill.id for each in store.backfills()] == ["b2"]


def test_a_dry_run_counts_what_would_go(any_store: AgendaStore) -> None:
    both = (firing("f1", model="daily"), firing("f2", model="weekly"))
    outcomes = tuple(outcome(event(), each, OutcomeKind.FIRED) for each in both)
    any_store.record([event()], Decision(firings=both, outcomes=outcomes), fence=None)
    any_store.add_backfill(Backfill("b1", "daily", "a", "b", NOON))
    any_store.set_backfill_state("b1", BackfillState.CANCELLED)
    end(any_store, "f1")
    assert any_store.prune(later(), dry_run=True) == Pruned(firings=1, backfills=1)
    end(any_store, "f2")
    expected = Pruned(firings=2, events=1, backfills=1)
    assert any_store.prune(later(), dry_run=True) == expected
    assert any_store.prune(later()) == expected


def test_what_is_needed_stays(any_store: AgendaStore) -> None:
    any_store.add_backfill(Backfill("b1", "daily", "a", "b", NOON))
    waited = ("f1", "f2")  # the second is the newest of its slice
    firings = [firing(firing_id) for firing_id in waited]
    firings += [firing("f3", key="a", backfill="b1"), firing("f4", key="b", backfill="b1")]
    any_store.record([], Decision(firings=tuple(firings)), fence=None)
    for firing_id in waited:
        any_store.finish_firing(firing_id, FiringState.DONE, "waits for main.main.x")
    end(any_store, "f3")
    assert any_store.prune(later(), dry_run=True) == Pruned(firings=1)
    assert any_store.prune(later()) == Pruned(firings=1)
    assert sorted(one.firing.id for one in any_store.list_firings(9)) == ["f2", "f3", "f4"]
    end(any_store, "f4")
    assert any_store.prune(later()) == Pruned(firings=2, backfills=1)


def test_events_stay_longer_than_firings(store: AgendaStore) -> None:
    store.record([event()], decide(event(), firing()), fence=None)
    end(store, "f1")
    limits = PruneLimits(later().firings, NOON)
    assert store.prune(limits, dry_run=True) == Pruned(firings=1)
    assert store.prune(limits) == Pruned(firings=1)
    assert not store.accept(event())
