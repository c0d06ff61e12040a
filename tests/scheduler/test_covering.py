"""Which firing covers an event: joins, debounces, and firings that have not started."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from penstock.model.time.partition import PartitionSpec
from penstock.scheduler.covering import Board, Demand, cover, is_debouncing, lane_of
from penstock.scheduler.subscription import Source, Subscription
from penstock.scheduler.values import WHOLE, Agenda, EventKind, Firing, FiringState, TriggerEvent
from tests.scheduler.building import (
    MINUTE,
    NOON,
    Scheduler,
    by_model,
    change,
    due,
    kinds,
    message,
    reads,
)

DAILY = PartitionSpec("daily")
ANY = by_model(Subscription("m", target="main.main.m", sources=reads("a", "b"), messages=("sent",)))


def debounced() -> Scheduler:
    """Return models that wait until their inputs have been quiet for ten minutes."""
    reader = Subscription("m", sources=reads("a", "b"), messages=("sent",), debounce=10 * MINUTE)
    return Scheduler(by_model(reader))


def test_a_firing_that_has_not_started_covers_later_events() -> None:
    scheduler = Scheduler(ANY)
    scheduler.decide(change("1", "a"), change("2", "b"))
    scheduler.decide(due("3", "m"))
    assert kinds(scheduler.outcomes) == [("1", "fired"), ("2", "joined"), ("3", "joined")]
    assert scheduler.firings["f0001"].events == ("1", "2", "3")
    assert scheduler.shown() == [(WHOLE, "queued")]


@pytest.mark.parametrize("state", [FiringState.RUNNING, FiringState.DONE, FiringState.FAILED])
def test_a_firing_that_has_started_covers_no_later_event(state: FiringState) -> None:
    scheduler = Scheduler(ANY)
    scheduler.decide(change("1", "a"))
    scheduler.move("f0001", state)
    scheduler.decide(change("2", "a"))
    assert kinds(scheduler.outcomes) == [("1", "fired"), ("2", "fired")]


def test_each_partition_has_a_firing_of_its_own() -> None:
    scheduler = Scheduler(by_model(Subscription("m", partition=DAILY, sources=reads("a"))))
    scheduler.decide(*(change(f"{day}", "a", f"2026-05-{day}") for day in (16, 17)))
    assert scheduler.shown() == [("2026-05-16", "queued"), ("2026-05-17", "queued")]


def test_payloads_have_firings_of_their_own_in_order() -> None:
    scheduler = Scheduler(ANY)
    scheduler.decide(*(message(f"{number}", "sent", {"n": number}) for number in range(3)))
    scheduler.decide(change("a", "a"), message("none", "sent", None))
    payloads = [firing.payload for firing in scheduler.firings.values()]
    assert payloads == [{"n": 0}, {"n": 1}, {"n": 2}, None]
    assert kinds(scheduler.outcomes)[-2:] == [("a", "fired"), ("none", "joined")]


def test_an_empty_payload_is_a_payload() -> None:
    scheduler = Scheduler(ANY)
    scheduler.decide(message("1", "sent", {}), message("2", "sent", {}))
    assert len(scheduler.firings) == 2


def test_a_joined_firing_is_below_all_its_chains() -> None:
    scheduler = Scheduler(ANY)
    scheduler.decide(
        change("1", "a", depth=1, models=("x",)), change("2", "b", depth=3, models=("x", "y"))
    )
    firing = scheduler.firings["f0001"]
    assert (firing.depth, firing.models) == (3, ("x", "y"))


def test_a_backfill_neither_covers_events_nor_is_covered() -> None:
    scheduler = Scheduler(ANY)
    asked = due("1", "m", kind=EventKind.BACKFILL, backfill="b1")
    scheduler.decide(asked, change("2", "a"))
    scheduler.decide(replace(asked, id="3"), replace(asked, id="4", backfill="b2"))
    assert kinds(scheduler.outcomes) == [
        ("1", "fired"),
        ("2", "fired"),
        ("3", "joined"),
        ("4", "fired"),
    ]
    assert [firing.backfill for firing in scheduler.firings.values()] == ["b1", None, "b2"]


def test_the_last_event_of_a_debounce_wins() -> None:
    scheduler = debounced()
    for minute in (0, 5, 14):
        moment = NOON + minute * MINUTE
        scheduler.decide(message(f"{minute}", "sent", {"n": minute}, time=moment), moment=moment)
    (firing,) = scheduler.firings.values()
    assert (firing.state, firing.payload) == (FiringState.WAITING, {"n": 14})
    assert firing.fire_time == NOON + 14 * MINUTE
    assert firing.ready_at == scheduler.wakes_at == NOON + 24 * MINUTE
    superseded = [outcome for outcome in scheduler.outcomes if outcome.kind.value == "superseded"]
    assert [outcome.event for outcome in superseded] == ["0", "5"]
    assert superseded[0].reason == "a later event within its debounce of 10 min 00 s"


def test_an_event_has_one_outcome_in_a_decision() -> None:
    scheduler = debounced()
    scheduler.decide(change("1", "a"), change("2", "b"), change("3", "a"))
    assert sorted(kinds(scheduler.outcomes)) == [
        ("1", "superseded"),
        ("2", "superseded"),
        ("3", "fired"),
    ]


def test_a_debounce_that_has_ended_takes_no_later_payload() -> None:
    scheduler = debounced()
    scheduler.decide(
        message("1", "sent", {"n": 1}),
        message("2", "sent", {"n": 2}, time=NOON + 10 * MINUTE),
        moment=NOON + 11 * MINUTE,
    )
    assert scheduler.shown() == [(WHOLE, "queued"), (WHOLE, "waiting")]


@pytest.mark.parametrize("state", [FiringState.QUEUED, FiringState.RUNNING])
def test_a_queued_or_running_payload_is_not_superseded(state: FiringState) -> None:
    scheduler = debounced()
    scheduler.decide(message("1", "sent", {"n": 1}))
    scheduler.move("f0001", state)
    scheduler.decide(message("2", "sent", {"n": 2}))
    assert scheduler.firings["f0001"].payload == {"n": 1}
    assert kinds(scheduler.outcomes) == [("1", "fired"), ("2", "fired")]


def test_an_event_out_of_order_does_not_shorten_a_debounce() -> None:
    scheduler = debounced()
    scheduler.decide(change("1", "a"), change("2", "a", time=NOON - 5 * MINUTE))
    assert scheduler.firings["f0001"].ready_at == NOON + 10 * MINUTE


def test_a_source_has_a_debounce_of_its_own() -> None:
    quick = Source("main.main.a", debounce=MINUTE)
    scheduler = debounced()
    reader = scheduler.subscriptions["m"]
    scheduler.subscriptions = by_model(replace(reader, sources=(quick, *reads("b"))))
    scheduler.decide(change("1", "a"))
    assert scheduler.wakes_at == NOON + MINUTE
    scheduler.decide(change("2", "b"))
    assert scheduler.wakes_at == NOON + 10 * MINUTE


def test_a_schedule_ends_a_debounce() -> None:
    scheduler = debounced()
    scheduler.decide(change("1", "a"))
    scheduler.decide(due("2", "m"))
    assert scheduler.shown() == [(WHOLE, "queued")]
    assert kinds(scheduler.outcomes) == [("1", "fired"), ("2", "joined")]


def test_a_payload_takes_the_place_of_no_change() -> None:
    scheduler = debounced()
    scheduler.decide(change("1", "a"), message("2", "sent", {"n": 2}), change("3", "b"))
    assert sorted(kinds(scheduler.outcomes)) == [
        ("1", "superseded"),
        ("2", "fired"),
        ("3", "fired"),
    ]
    assert [firing.events for firing in scheduler.firings.values()] == [("1", "3"), ("2",)]


def joined(**more: Any) -> Scheduler:
    """Return a model that fires for a day when two tables have arrived for it."""
    sources = (*reads("a", "b", is_partitioned=True), *reads("c"))
    reader = Subscription("m", partition=DAILY, sources=sources, joins=True, messages=("sent",))
    return Scheduler(by_model(replace(reader, **more)))


def test_a_join_fires_when_all_sources_have_arrived() -> None:
    scheduler = joined()
    scheduler.decide(change("1", "a", "2026-05-16"), change("2", "b", "2026-05-17"))
    assert scheduler.shown() == [("2026-05-16", "waiting"), ("2026-05-17", "waiting")]
    assert scheduler.firings["f0001"].reason == "waits for main.main.b"
    scheduler.decide(change("3", "a", "2026-05-16"), change("4", "b", "2026-05-16"))
    assert scheduler.shown() == [("2026-05-16", "queued"), ("2026-05-17", "waiting")]
    assert kinds(scheduler.outcomes)[2:] == [("3", "joined"), ("4", "joined")]
    assert scheduler.firings["f0001"].arrived == ("main.main.a", "main.main.b")


@pytest.mark.parametrize("partition", [None, ""])
def test_missing_and_empty_partitions_are_the_same_key(partition: str | None) -> None:
    scheduler = joined(partition=None)
    scheduler.decide(change("1", "a", partition))
    scheduler.decide(change("2", "b", "" if partition is None else None))
    assert scheduler.shown() == [(WHOLE, "queued")]


def test_a_join_is_for_the_latest_time_in_any_order() -> None:
    late = NOON + MINUTE
    events = [change("1", "a", "2026-05-16", fire_time=late), change("2", "b", "2026-05-16")]
    for order in (events, events[::-1]):
        scheduler = joined()
        scheduler.decide(*order)
        assert scheduler.firings["f0001"].fire_time == late


def test_other_events_do_not_wait_for_a_join() -> None:
    scheduler = joined()
    scheduler.decide(change("1", "a", "2026-05-16"), change("2", "c"), message("3", "sent", None))
    assert kinds(scheduler.outcomes) == [("1", "fired"), ("2", "fired"), ("3", "joined")]
    assert scheduler.shown() == [("2026-05-16", "waiting"), ("2026-05-16", "queued")]
    scheduler.decide(change("4", "b", "2026-05-16"))
    assert scheduler.shown() == [("2026-05-16", "queued"), ("2026-05-16", "queued")]


def test_other_events_join_one_that_has_all_its_sources() -> None:
    scheduler = joined()
    scheduler.decide(change("1", "a", "2026-05-16"), change("2", "b", "2026-05-16"))
    scheduler.decide(change("3", "c"), change("4", "a", "2026-05-16"))
    assert kinds(scheduler.outcomes)[2:] == [("3", "joined"), ("4", "joined")]


def test_a_join_that_runs_begins_anew() -> None:
    scheduler = joined()
    scheduler.decide(change("1", "a", "2026-05-16"), change("2", "b", "2026-05-16"))
    scheduler.move("f0001", FiringState.RUNNING)
    scheduler.decide(change("3", "b", "2026-05-16"))
    assert scheduler.firings["f0002"].missing == ("main.main.a",)


def test_a_join_is_debounced_after_its_last_source() -> None:
    scheduler = joined(debounce=10 * MINUTE)
    scheduler.decide(change("1", "a", "2026-05-16"))
    assert scheduler.wakes_at is None
    scheduler.decide(change("2", "b", "2026-05-16", time=NOON + MINUTE))
    scheduler.decide(change("3", "a", "2026-05-16", time=NOON + 2 * MINUTE))
    assert scheduler.wakes_at == NOON + 12 * MINUTE
    scheduler.decide(change("4", "c", time=NOON + 3 * MINUTE))
    assert scheduler.wakes_at == NOON + 13 * MINUTE
    assert kinds(scheduler.outcomes)[1:] == [("2", "joined"), ("3", "joined"), ("4", "joined")]
    scheduler.decide(moment=NOON + 13 * MINUTE)
    assert scheduler.shown() == [("2026-05-16", "queued")]


def test_a_join_of_one_source_fires_at_once() -> None:
    scheduler = joined(sources=reads("a", is_partitioned=True))
    scheduler.decide(change("1", "a", "2026-05-16"))
    assert scheduler.shown() == [("2026-05-16", "queued")]


def test_a_payload_does_not_part_a_join() -> None:
    scheduler = joined()
    for number, (table, payload) in enumerate([("a", {"n": 1}), ("b", None), ("a", {"n": 2})]):
        scheduler.decide(change(f"{number}", table, "2026-05-16", payload=payload))
    assert scheduler.shown() == [("2026-05-16", "queued")]
    assert scheduler.firings["f0001"].payload == {"n": 2}


def test_a_board_leaves_its_agenda_as_it_was() -> None:
    waiting = Firing("f", "m", WHOLE, EventKind.ASSET, NOON, FiringState.QUEUED, events=("1",))
    agenda = Agenda({"f": waiting})
    board = Board(agenda, lambda: "new")
    event = TriggerEvent("2", EventKind.ASSET, "main.main.a", NOON)
    cover(board, Demand(event, ANY["m"], WHOLE, ANY["m"].sources[0]))
    assert agenda.firings["f"] is waiting
    assert board.changed[0].events == ("1", "2")
    assert board.has_covered("m", "2")
    assert board.find_newest(lane_of(waiting)) == board.changed[0]


def test_only_what_waits_is_debounced() -> None:
    firing = Firing("f", "m", WHOLE, EventKind.ASSET, NOON, FiringState.WAITING, ready_at=NOON)
    assert is_debouncing(firing, NOON - MINUTE)
    assert not is_debouncing(firing, NOON)
    assert not is_debouncing(replace(firing, state=FiringState.QUEUED), NOON - MINUTE)
