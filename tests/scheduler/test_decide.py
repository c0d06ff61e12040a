"""A decision as a whole: producers, marks, what is recorded, and that no event is lost."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from hypothesis import given
from hypothesis import strategies as st

from penstock.model.time.partition import PartitionSpec
from penstock.scheduler.decide import apply, decide, decide_events
from penstock.scheduler.matching import Index
from penstock.scheduler.subscription import Source, Subscription
from penstock.scheduler.values import (
    WHOLE,
    Agenda,
    Decision,
    EventKind,
    Firing,
    FiringState,
    FreshnessMark,
    Outcome,
    OutcomeKind,
    ScheduleMark,
    TriggerEvent,
)
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
READER = Subscription("m", sources=reads("a"), messages=("sent",), debounce=5 * MINUTE)
MARK = ScheduleMark("m", "0 12 * * *", "UTC", NOON)
LATE = FreshnessMark("m", WHOLE, 1, NOON)


@dataclass(frozen=True)
class Due:
    """What a producer returns."""

    events: tuple[TriggerEvent, ...] = ()
    marks: tuple[ScheduleMark, ...] = ()
    wakes_at: datetime | None = None
    outcomes: tuple[Outcome, ...] = ()


@dataclass(frozen=True)
class Late:
    """What a producer without outcomes returns."""

    events: tuple[TriggerEvent, ...] = ()
    marks: tuple[FreshnessMark, ...] = ()
    wakes_at: datetime | None = None


def due_events(subscriptions: Mapping[str, Subscription], agenda: Agenda, moment: datetime) -> Due:
    skipped = Outcome("old", "m", OutcomeKind.IGNORED, reason="older than its catchup")
    return Due((due("s", "m"), due("old", "m")), (MARK,), moment + 2 * MINUTE, (skipped,))


def late_events(
    subscriptions: Mapping[str, Subscription], agenda: Agenda, moment: datetime
) -> Late:
    late = replace(due("l", "m"), kind=EventKind.FRESHNESS)
    return Late((late,), (LATE,), moment + MINUTE)


def test_events_of_the_time_are_decided_after_others() -> None:
    decision = decide(
        by_model(READER),
        Agenda(),
        [change("a", "a")],
        NOON,
        lambda: "f",
        producers=(due_events, late_events),
    )
    assert [event.id for event in decision.events] == ["s", "old", "l"]
    assert kinds(decision.outcomes) == [
        ("old", "ignored"),
        ("a", "fired"),
        ("s", "joined"),
        ("l", "joined"),
    ]
    assert (decision.marks, decision.freshness) == ((MARK,), (LATE,))
    assert decision.wakes_at == NOON + MINUTE


def test_nothing_happens_without_events() -> None:
    assert decide(by_model(READER), Agenda(), [], NOON, lambda: "f") == Decision()


def test_an_event_without_a_model_is_accounted_for() -> None:
    scheduler = Scheduler(by_model(READER))
    scheduler.decide(change("1", "other"), message("2", "snt", {}), due("3", "gone"))
    assert [(item.model, item.kind) for item in scheduler.outcomes] == [
        ("", OutcomeKind.IGNORED)
    ] * 3
    assert all(item.reason for item in scheduler.outcomes)


def test_a_reason_is_recorded_of_an_event_that_is_ignored() -> None:
    scheduler = Scheduler(by_model(replace(READER, partition=DAILY, target="main.main.m")))
    scheduler.decide(change("1", "a", "acme"), change("2", "a", models=("m", "x")))
    assert kinds(scheduler.outcomes) == [("1", "ignored"), ("2", "ignored")]
    assert "'acme' is not a valid daily partition" in (scheduler.outcomes[0].reason or "")
    assert "in the chain already" in (scheduler.outcomes[1].reason or "")


def test_an_event_fires_some_slices_and_says_which_it_did_not() -> None:
    hourly = PartitionSpec("hourly")
    month = Subscription("s", target="main.main.s", partition=PartitionSpec("monthly"))
    reader = Subscription("m", partition=hourly, sources=reads("s"))
    scheduler = Scheduler(by_model(month, reader))
    scheduler.decide(change("1", "s", "2026-05"))
    ignored = [item for item in scheduler.outcomes if item.kind is OutcomeKind.IGNORED]
    assert len(ignored) == 1
    assert len(scheduler.firings) == len(scheduler.outcomes) - 1 == 200


def test_an_event_that_is_seen_again_changes_nothing() -> None:
    scheduler = Scheduler(by_model(replace(READER, debounce=None)))
    scheduler.decide(change("1", "a"), change("1", "a"), message("2", "sent", {}))
    assert kinds(scheduler.outcomes) == [("1", "fired"), ("2", "fired")]
    for state in (FiringState.QUEUED, FiringState.RUNNING):
        scheduler.move("f0001", state)
        assert scheduler.decide(change("1", "a"), message("2", "sent", {})) == Decision()


def test_a_chain_keeps_its_day_across_midnight() -> None:
    """Simulate a chain that begins a minute before midnight and goes on for hours."""
    models = by_model(
        Subscription("raw", target="main.main.raw"),
        Subscription("day", target="main.main.day", partition=DAILY, sources=reads("raw")),
        Subscription("next", partition=DAILY, sources=reads("day")),
    )
    scheduler = Scheduler(models)
    night = NOON.replace(hour=23, minute=59)
    scheduler.decide(due("1", "raw", time=night), moment=night)
    scheduler.decide(
        change("2", "raw", time=night + 90 * MINUTE, fire_time=night, models=("raw",), depth=1)
    )
    chain = {"fire_time": night, "models": ("raw", "day"), "depth": 2}
    scheduler.decide(change("3", "day", "2026-05-16", time=night + 180 * MINUTE, **chain))
    assert [(item.model, item.key) for item in scheduler.firings.values()] == [
        ("raw", WHOLE),
        ("day", "2026-05-16"),
        ("next", "2026-05-16"),
    ]
    assert {item.fire_time for item in scheduler.firings.values()} == {night}
    assert scheduler.firings["f0003"].models == ("raw", "day")


def test_applying_keeps_what_is_open() -> None:
    queued = Firing("f", "m", WHOLE, EventKind.ASSET, NOON)
    agenda = Agenda({"f": queued, "g": replace(queued, id="g")}, freshness={("m", WHOLE): LATE})
    done = replace(queued, state=FiringState.DONE)
    after = apply(agenda, Decision((done,), marks=(MARK,), freshness=(replace(LATE, attempts=0),)))
    assert (list(after.firings), after.marks, after.freshness) == (["g"], {"m": MARK}, {})
    assert list(agenda.firings) == ["f", "g"]


PARTITIONED = (Source("main.main.a", True), Source("main.main.b", True), Source("main.main.c"))
MODELS = Index.of(
    by_model(
        Subscription("plain", sources=PARTITIONED, messages=("sent",)),
        Subscription("daily", partition=DAILY, sources=PARTITIONED, messages=("sent",)),
        Subscription("quiet", sources=PARTITIONED, messages=("sent",), debounce=3 * MINUTE),
        Subscription("join", partition=DAILY, sources=PARTITIONED[:2], joins=True),
        Subscription("quiet_join", sources=PARTITIONED[:2], joins=True, debounce=MINUTE),
        Subscription("tenant", partition=PartitionSpec("dynamic", key="$.t"), messages=("sent",)),
    )
)
CHANGES = st.builds(
    lambda table, day, minute: change("", table, day, time=NOON + minute * MINUTE),
    st.sampled_from(["a", "b", "c", "join", "nothing"]),
    st.sampled_from([None, "", "2026-05-16", "2026-05-17", "bad"]),
    st.integers(0, 6),
)
MESSAGES = st.builds(
    lambda name, payload, minute: message("", name, payload, time=NOON + minute * MINUTE),
    st.sampled_from(["sent", "unsent"]),
    st.sampled_from([None, {}, {"t": "acme"}, {"t": 7}, {"t": []}]),
    st.integers(0, 6),
)
OTHERS = st.builds(
    lambda kind, model, key: due("", model, kind=kind, partition=key),
    st.sampled_from([EventKind.SCHEDULE, EventKind.FRESHNESS, EventKind.BACKFILL]),
    st.sampled_from([*MODELS, "nothing"]),
    st.sampled_from([None, "2026-05-16"]),
)
BATCHES = st.lists(st.lists(CHANGES | MESSAGES | OTHERS, max_size=5), max_size=8)


def numbered(batches: list[list[TriggerEvent]]) -> list[list[TriggerEvent]]:
    """Return events with ids of their own."""
    return [
        [replace(event, id=f"{number}.{place}") for place, event in enumerate(batch)]
        for number, batch in enumerate(batches)
    ]


@given(batches=BATCHES, starts=st.lists(st.integers(0, 20), max_size=8))
def test_every_event_has_an_outcome_and_a_firing(
    batches: list[list[TriggerEvent]], starts: list[int]
) -> None:
    scheduler = Scheduler(MODELS)
    for number, batch in enumerate(numbered(batches)):
        scheduler.decide(*batch, moment=NOON + number * MINUTE)
        for place in starts[number : number + 1]:
            queued = [f.id for f in scheduler.agenda.firings.values() if f.state.value == "queued"]
            for identity in queued[place : place + 1]:
                scheduler.move(identity, FiringState.RUNNING)
        waiting = [
            (firing.model, firing.key, firing.backfill, bool(firing.arrived))
            for firing in scheduler.agenda.firings.values()
            if firing.state is FiringState.WAITING and firing.payload is None
        ]
        assert len(waiting) == len(set(waiting))
    ids = {event.id for batch in numbered(batches) for event in batch}
    assert {outcome.event for outcome in scheduler.outcomes} == ids
    for outcome in scheduler.outcomes:
        if outcome.kind is OutcomeKind.IGNORED:
            assert outcome.reason
            assert outcome.firing is None
        else:
            assert outcome.event in scheduler.firings[str(outcome.firing)].events
    fired = [item.firing for item in final(scheduler.outcomes) if item.kind is OutcomeKind.FIRED]
    assert sorted(map(str, fired)) == sorted(scheduler.firings)


def final(outcomes: list[Outcome]) -> list[Outcome]:
    """Return the last outcome of each event for each firing."""
    return list({(item.event, item.model, item.firing): item for item in outcomes}.values())


ARRIVALS = st.lists(
    st.tuples(st.sampled_from("abc"), st.integers(1, 4)), min_size=1, max_size=25
).flatmap(st.permutations)


@given(arrivals=ARRIVALS, sizes=st.lists(st.integers(1, 6), min_size=25, max_size=25))
def test_a_join_fires_the_partitions_for_which_all_sources_have_arrived(
    arrivals: list[tuple[str, int]], sizes: list[int]
) -> None:
    reader = Subscription(
        "m", partition=DAILY, sources=reads("a", "b", "c", is_partitioned=True), joins=True
    )
    events = [
        change(f"{number}", table, f"2026-05-0{day}")
        for number, (table, day) in enumerate(arrivals)
    ]
    scheduler = Scheduler(by_model(reader))
    for size in sizes:
        scheduler.decide(*events[:size])
        del events[:size]
    arrived: defaultdict[str, set[str]] = defaultdict(set)
    for table, day in arrivals:
        arrived[f"2026-05-0{day}"].add(table)
    complete = {key for key, tables in arrived.items() if len(tables) == 3}
    assert {key for key, state in scheduler.shown() if state == "queued"} == complete
    assert len(scheduler.firings) == len(arrived)


@given(batch=st.lists(CHANGES | MESSAGES | OTHERS, max_size=12))
def test_the_same_input_gives_the_same_decision(batch: list[TriggerEvent]) -> None:
    (events,) = numbered([batch])
    decisions = [
        decide_events(MODELS, Agenda(), events, NOON, iter(map(str, range(99))).__next__)
        for _ in range(2)
    ]
    assert decisions[0] == decisions[1]
