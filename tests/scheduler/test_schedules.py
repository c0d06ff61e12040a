from __future__ import annotations

from datetime import UTC, datetime, timedelta
from time import perf_counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.model.time.cron import Cron
from penstock.model.time.partition import PartitionSpec
from penstock.scheduler.schedules import DEFAULT_LIMIT, Due, due_events
from penstock.scheduler.subscription import Subscription
from penstock.scheduler.values import Agenda, Catchup, EventKind, OutcomeKind, ScheduleMark

MODEL = "main.main.orders"
START = datetime(2026, 5, 16, tzinfo=UTC)
HOUR = timedelta(hours=1)
DAILY = PartitionSpec("daily")


def _due(
    moment: datetime,
    *,
    catchup: Catchup | None = None,
    cron: Cron | None = None,
    partition: PartitionSpec | None = None,
    since: datetime = START,
) -> Due:
    cron = cron or Cron("0 * * * *")
    reader = Subscription(MODEL, cron=cron, catchup=catchup or Catchup(), partition=partition)
    mark = ScheduleMark(MODEL, cron.expression, cron.zone, since)
    return due_events({MODEL: reader}, Agenda(marks={MODEL: mark}), moment)


def _fired(due: Due) -> list[datetime]:
    skipped = {outcome.event for outcome in due.outcomes}
    return [event.time for event in due.events if event.id not in skipped]


def test_a_new_model_fires_nothing_of_the_past() -> None:
    due = due_events({MODEL: Subscription(MODEL, cron=Cron("0 6 * * *"))}, Agenda(), START)
    assert due == Due((), (ScheduleMark(MODEL, "0 6 * * *", "UTC", START),), (), START + 6 * HOUR)


def test_a_time_that_is_due_fires_and_moves_the_mark() -> None:
    due = _due(START + HOUR + timedelta(seconds=3))
    (event,) = due.events
    assert event.id == f"schedule:{MODEL}@2026-05-16T01:00:00+00:00"
    assert (event.kind, event.source) == (EventKind.SCHEDULE, MODEL)
    assert event.time == event.fire_time == due.marks[0].since == START + HOUR
    assert (due.outcomes, due.wakes_at) == ((), START + 2 * HOUR)


def test_nothing_is_recorded_while_nothing_is_due() -> None:
    assert _due(START + HOUR / 2) == Due(wakes_at=START + HOUR)


@pytest.mark.parametrize("mode", ["none", "latest", "all"])
def test_a_time_that_was_not_missed_always_fires(mode: str) -> None:
    moment = START + 3 * HOUR + timedelta(seconds=60)
    catchup = Catchup(mode, limit=0, window=timedelta())
    assert _fired(_due(moment, catchup=catchup)) == [START + 3 * HOUR]


@pytest.mark.parametrize(
    ("catchup", "partition", "hours", "reason"),
    [
        (
            Catchup("none"),
            None,
            [],
            "(catchup none), like all earlier times after 2026-05-16T00:00:00",
        ),
        (Catchup("latest"), None, [72], "catchup latest: 2026-05-19T00:00:00+00:00 fires instead"),
        (
            Catchup("latest", window=HOUR / 4),
            None,
            [],
            "older than the window of its catchup, 0:15",
        ),
        (Catchup("all"), None, range(72, 0, -1), None),
        (Catchup("all", limit=3), None, [72, 71, 70], "catchup all fires the newest 3"),
        (Catchup("all", window=2 * HOUR), None, [72, 71], "older than the window"),
        (Catchup(), None, [72], "catchup latest"),
        (Catchup(), PartitionSpec("dynamic", key="$.id"), [72], "catchup latest"),
        (Catchup(), DAILY, range(72, 0, -1), None),
        (Catchup(limit=2), DAILY, [72, 71], "catchup all fires the newest 2"),
    ],
)
def test_after_three_days_catchup_decides(
    catchup: Catchup, partition: PartitionSpec | None, hours: list[int], reason: str | None
) -> None:
    due = _due(START + 72.5 * HOUR, catchup=catchup, partition=partition)
    assert _fired(due) == [START + hour * HOUR for hour in hours]
    assert len(due.events) == len(hours) + len(due.outcomes)
    assert due.marks[0].since == START + 72 * HOUR
    assert [outcome.kind for outcome in due.outcomes] == [OutcomeKind.IGNORED] * bool(reason)
    assert all(reason in (outcome.reason or "") for outcome in due.outcomes if reason)


def test_a_single_missed_time_has_no_others_before_it() -> None:
    (outcome,) = _due(START + 1.5 * HOUR, catchup=Catchup("none")).outcomes
    assert outcome.reason == "missed while nothing was serving (catchup none)"
    assert outcome.event == f"schedule:{MODEL}@2026-05-16T01:00:00+00:00"


@pytest.mark.parametrize("cron", [Cron("5 * * * *"), Cron("0 * * * *", "Asia/Kathmandu")])
def test_a_changed_schedule_fires_nothing_of_the_past(cron: Cron) -> None:
    moment = START + 72.5 * HOUR
    marks = {MODEL: ScheduleMark(MODEL, "0 * * * *", "UTC", START)}
    reader = Subscription(MODEL, cron=cron, catchup=Catchup("all"))
    due = due_events({MODEL: reader}, Agenda(marks=marks), moment)
    assert (due.events, due.outcomes) == ((), ())
    assert due.marks == (ScheduleMark(MODEL, cron.expression, cron.zone, moment),)
    assert due.wakes_at == cron.next(moment)


def test_a_schedule_that_comes_back_fires_nothing_of_the_past() -> None:
    marks = {MODEL: ScheduleMark(MODEL, "0 * * * *", "UTC", START)}
    ended = due_events({MODEL: Subscription(MODEL)}, Agenda(marks=marks), START + HOUR / 2)
    assert ended == Due(marks=(ScheduleMark(MODEL, "", "", START + HOUR / 2),))
    reader = Subscription(MODEL, cron=Cron("0 * * * *"), catchup=Catchup("all"))
    agenda = Agenda(marks={MODEL: ended.marks[0]})
    assert due_events({MODEL: Subscription(MODEL)}, agenda, START + HOUR) == Due()
    assert due_events({MODEL: reader}, agenda, START + 9.5 * HOUR).events == ()


def test_nothing_fires_twice_after_the_clock_jumps_back() -> None:
    assert _due(START - 5.5 * HOUR) == Due(wakes_at=START + HOUR)
    changed = _due(START - 5.5 * HOUR, cron=Cron("30 * * * *"))
    assert changed == Due(wakes_at=START + HOUR / 2)


def test_a_schedule_that_is_never_due_asks_for_nothing() -> None:
    never = Subscription(
        MODEL, cron=Cron("0 0 */30 2 7#5")
    )  # February has no 5th Sunday on its 1st
    due = due_events({MODEL: never}, Agenda(), START)
    assert (due.events, due.wakes_at, len(due.marks)) == ((), None, 1)


def test_a_long_downtime_of_a_partitioned_model_fires_the_newest_slices() -> None:
    due = _due(START + 150.5 * HOUR, partition=DAILY)
    assert len(_fired(due)) == DEFAULT_LIMIT
    assert due.outcomes[0].event.endswith((START + 50 * HOUR).isoformat())


@pytest.mark.parametrize("catchup", [Catchup("none"), Catchup("latest"), Catchup("all", limit=9)])
def test_a_year_of_downtime_costs_no_more_than_an_hour(catchup: Catchup) -> None:
    cron = Cron("*/5 * * * *", "Europe/Berlin")
    start = perf_counter()
    due = _due(START + timedelta(days=366), catchup=catchup, cron=cron)
    assert perf_counter() - start < 0.2
    assert len(due.events) <= 11


def test_a_thousand_idle_schedules_are_cheap() -> None:
    readers = {f"m{n}": Subscription(f"m{n}", cron=Cron(f"{n % 60} 3 * * *")) for n in range(1000)}
    agenda = Agenda(marks={mark.model: mark for mark in due_events(readers, Agenda(), START).marks})
    start = perf_counter()
    for _ in range(10):
        assert due_events(readers, agenda, START + HOUR).wakes_at == START + 3 * HOUR
    assert perf_counter() - start < 0.5


@given(
    st.lists(st.integers(-7200, 100_000), min_size=1, max_size=20),
    st.sampled_from(["0 * * * *", "*/15 * * * *", "30 2 * * *", "0,30 1-4 * * *"]),
    st.sampled_from(["UTC", "Europe/Berlin", "America/New_York"]),
    st.sampled_from(
        [datetime(2026, 3, 28, 12, tzinfo=UTC), datetime(2026, 10, 24, 12, tzinfo=UTC)]
    ),
)
def test_each_time_fires_once_however_the_clock_goes(
    steps: list[int], expression: str, zone: str, start: datetime
) -> None:
    cron = Cron(expression, zone)
    readers = {MODEL: Subscription(MODEL, cron=cron, catchup=Catchup("all"))}
    agenda = Agenda(marks={MODEL: ScheduleMark(MODEL, expression, zone, start)})
    moment = furthest = start
    fired: list[datetime] = []
    for step in steps:
        moment += timedelta(seconds=step)
        furthest = max(furthest, moment)
        due = due_events(readers, agenda, moment)
        fired += sorted(_fired(due))
        agenda = Agenda(marks={**agenda.marks, **{mark.model: mark for mark in due.marks}})
    expected = []
    while (start := cron.next(start)) <= furthest:
        expected.append(start)
    assert fired == expected
