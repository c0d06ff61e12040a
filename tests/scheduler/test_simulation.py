"""The scheduler over months: schedules, clock changes, downtime, cascades, late data."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.model.time.cron import Cron
from penstock.model.time.partition import PartitionSpec
from penstock.scheduler.simulation import (
    ClockJump,
    Outage,
    Played,
    PlayedFiring,
    PlayedRow,
    World,
    explain,
    simulate,
)
from penstock.scheduler.subscription import Source, Subscription
from penstock.scheduler.values import (
    Catchup,
    EventKind,
    FiringState,
    OutcomeKind,
    Pause,
    TriggerEvent,
)

START = datetime(2026, 5, 16, tzinfo=UTC)
DAY, HOUR, MINUTE = timedelta(days=1), timedelta(hours=1), timedelta(minutes=1)
DAILY = PartitionSpec("daily")
RAW, REPORT = "main.main.raw", "main.main.report"


def _subscriptions(*readers: Subscription) -> dict[str, Subscription]:
    return {reader.model: reader for reader in readers}


def _table(
    model: str,
    *sources: str,
    cron: Cron | None = None,
    partition: PartitionSpec | None = None,
    joins: bool = False,
    freshness: timedelta | None = None,
    catchup: Catchup | None = None,
) -> Subscription:
    return Subscription(
        model,
        target=model,
        partition=partition,
        sources=tuple(Source(name, is_partitioned=partition is not None) for name in sources),
        joins=joins,
        cron=cron,
        freshness=freshness,
        catchup=catchup or Catchup(),
        reads=sources,
    )


def _change(source: str, time: datetime, partition: str | None = None) -> TriggerEvent:
    return TriggerEvent(f"{source}@{time}", EventKind.ASSET, source, time, partition)


def _of(played: Played, model: str) -> list[PlayedFiring]:
    return [item for item in played.firings if item.firing.model == model]


def _fire_times(played: Played, model: str = RAW) -> list[datetime]:
    return [item.firing.fire_time for item in _of(played, model)]


def _assert_accounted(played: Played) -> None:
    assert all(item.outcomes for item in played.events)
    ids = {item.firing.id for item in played.firings}
    outcomes = [outcome for item in played.events for outcome in item.outcomes]
    assert all(outcome.firing in ids or outcome.reason for outcome in outcomes)


@pytest.mark.parametrize(
    ("zone", "expression", "short", "long"),
    [
        ("Europe/Berlin", "30 2 * * *", "2026-03-29T01:00", "2026-10-25T00:30"),
        ("America/New_York", "30 2 * * *", "2026-03-08T07:00", "2026-11-01T07:30"),
        ("America/New_York", "30 1 * * *", "2026-03-08T06:30", "2026-11-01T05:30"),
    ],
)
def test_a_year_of_schedules_fires_each_day_once(
    zone: str, expression: str, short: str, long: str
) -> None:
    partition = PartitionSpec("daily", tz=zone)
    night = _table(RAW, cron=Cron(expression, zone), partition=partition)
    first_day = datetime(2026, 1, 1, tzinfo=ZoneInfo(zone))
    start, end = (day.astimezone(UTC) for day in (first_day, first_day.replace(year=2027)))
    played = simulate(_subscriptions(night, _table(REPORT, RAW)), World(), start, end)
    days = [f"{first_day + number * DAY:%Y-%m-%d}" for number in range(365)]
    assert [item.firing.key for item in _of(played, RAW)] == days
    times = {f"{moment:%Y-%m-%dT%H:%M}" for moment in _fire_times(played)}
    assert {short, long} < times
    assert len(_of(played, REPORT)) == 365
    assert played.decisions < 5 * 365
    _assert_accounted(played)


@pytest.mark.parametrize(
    ("catchup", "hours"),
    [("none", []), ("latest", [72]), ("all", range(72, 0, -1))],
)
def test_after_three_days_of_downtime_catchup_decides(catchup: str, hours: list[int]) -> None:
    hourly = _table(
        RAW,
        cron=Cron("0 * * * *"),
        partition=PartitionSpec("hourly"),
        catchup=Catchup(catchup),
    )
    outage = Outage(START + MINUTE * 30, START + 72.5 * HOUR)
    played = simulate(_subscriptions(hourly), World(outages=(outage,)), START, START + 74 * HOUR)
    expected = [0, *hours, 73]
    assert _fire_times(played) == [START + hour * HOUR for hour in expected]
    assert all(item.firing.state is FiringState.DONE for item in played.firings)
    _assert_accounted(played)


def test_a_run_that_an_outage_interrupts_is_retried_with_its_id() -> None:
    outage = Outage(START + 5 * MINUTE, START + 30 * MINUTE)
    world = World(run_time=lambda _model, _key: 10 * MINUTE, outages=(outage,))
    readers = _subscriptions(_table(RAW, cron=Cron("0 0 * * *")), _table(REPORT, RAW))
    played = simulate(readers, world, START, START + HOUR)
    (raw,) = _of(played, RAW)
    assert raw.starts == (START, START + 30 * MINUTE)
    assert raw.end == START + 40 * MINUTE
    (report,) = _of(played, REPORT)
    assert (report.cause.run_id, report.end) == (raw.firing.id, START + 50 * MINUTE)
    _assert_accounted(played)


def test_a_chain_that_crosses_midnight_keeps_its_partition() -> None:
    readers = _subscriptions(
        _table(RAW, cron=Cron("50 23 * * *"), partition=DAILY),
        _table("middle", RAW, partition=DAILY),
        _table(REPORT, "middle", partition=DAILY),
    )
    world = World(run_time=lambda _model, _key: 15 * MINUTE)
    played = simulate(readers, world, START, START + 1.5 * DAY)
    assert [item.firing.key for item in played.firings] == ["2026-05-16"] * 3
    assert [item.starts[0] for item in played.firings] == [
        START + DAY - 10 * MINUTE,
        START + DAY + 5 * MINUTE,
        START + DAY + 20 * MINUTE,
    ]
    assert played.firings[2].firing.models == (RAW, "middle")


def test_a_join_waits_for_both_inputs_of_a_partition() -> None:
    readers = _subscriptions(
        _table("a", cron=Cron("0 1 * * *"), partition=DAILY),
        _table("b", cron=Cron("0 5 * * *"), partition=DAILY),
        _table(REPORT, "a", "b", partition=DAILY, joins=True),
    )
    late = _change("a", START + 2 * DAY + 8 * HOUR, "2026-05-16")
    played = simulate(readers, World(arrivals=(late,)), START, START + 3 * DAY)
    reports = _of(played, REPORT)
    assert [(item.firing.key, item.starts) for item in reports] == [
        ("2026-05-16", (START + 5 * HOUR + MINUTE,)),
        ("2026-05-17", (START + DAY + 5 * HOUR + MINUTE,)),
        ("2026-05-18", (START + 2 * DAY + 5 * HOUR + MINUTE,)),
        ("2026-05-16", ()),
    ]
    assert reports[3].firing.missing == ("b",)
    assert "waits for b" in {row.state for row in explain(played)}
    _assert_accounted(played)


def test_late_data_rebuild_their_own_partition() -> None:
    readers = _subscriptions(_table(RAW, "landing", partition=DAILY), _table(REPORT, RAW))
    arrivals = (
        _change("landing", START + HOUR, "2026-05-16"),
        _change("landing", START + DAY, "2026-05-17"),
        _change("landing", START + DAY + HOUR, "2026-05-16"),
    )
    played = simulate(readers, World(arrivals=arrivals), START, START + 2 * DAY)
    keys = [item.firing.key for item in _of(played, RAW)]
    assert keys == ["2026-05-16", "2026-05-17", "2026-05-16"]
    assert len(_of(played, REPORT)) == 3


def test_jumps_of_the_clock_repeat_and_lose_nothing() -> None:
    hourly = _table(
        RAW,
        cron=Cron("0 * * * *"),
        partition=PartitionSpec("hourly"),
        catchup=Catchup("all"),
    )
    jumps = (ClockJump(START + 2.5 * HOUR, 5 * HOUR), ClockJump(START + 3.2 * HOUR, -6 * HOUR))
    played = simulate(_subscriptions(hourly), World(jumps=jumps), START, START + 12 * HOUR)
    assert sorted(_fire_times(played)) == [START + hour * HOUR for hour in range(11)]
    assert len({item.firing.key for item in played.firings}) == 11


def test_a_changed_schedule_fires_nothing_of_the_past() -> None:
    cron = Cron("0 6 * * *")
    before = simulate(_subscriptions(_table(RAW, cron=cron)), World(), START, START + 3 * DAY)
    changed = _table(RAW, cron=Cron("0 5 * * *"), catchup=Catchup("all"))
    restart = START + 6 * DAY + 8 * HOUR
    played = simulate(_subscriptions(changed), World(), restart, restart + 2 * DAY, before.agenda)
    assert _fire_times(played) == [START + 7 * DAY + 5 * HOUR, START + 8 * DAY + 5 * HOUR]


def test_a_pause_keeps_the_event_of_its_model() -> None:
    pause = Pause(RAW, START + HOUR, START + 9 * HOUR, reason="moving disks")
    readers = _subscriptions(_table(RAW, cron=Cron("0 */2 * * *")))
    played = simulate(readers, World(pauses=(pause,)), START, START + 9.5 * HOUR)
    assert [item.starts for item in played.firings] == [(START,), (START + 9 * HOUR,)]
    assert len(played.firings[1].firing.events) == 4
    _assert_accounted(played)


def test_a_late_table_is_rebuilt_no_more_often_than_its_input_changes() -> None:
    report = Subscription(REPORT, target=REPORT, freshness=16 * HOUR, sources=(Source("landing"),))
    arrivals = tuple(_change("landing", START + (17 + hour) * HOUR) for hour in range(12))
    world = World(arrivals=arrivals, has_failed=lambda _model, _key, attempt: attempt < 13)
    played = simulate(_subscriptions(report), world, START, START + 3 * DAY)
    late = [item for item in played.events if item.event.kind is EventKind.FRESHNESS]
    assert [(item.event.time - START) / HOUR for item in late] == [17, 18, 20, 24, 32]
    assert [item.outcomes[0].kind for item in late] == [OutcomeKind.JOINED] * 4 + [
        OutcomeKind.FIRED
    ]
    assert explain(played)[-1].cause == "late: older than 16:00:00"
    _assert_accounted(played)


def test_rows_name_the_causes() -> None:
    readers = _subscriptions(
        _table(RAW, cron=Cron("0 6 * * *", "Europe/Berlin"), partition=DAILY),
        _table(REPORT, RAW),
        Subscription("hook", messages=("push",)),
    )
    push = TriggerEvent("m", EventKind.MESSAGE, "push", START + 8 * HOUR, payload={})
    world = World(arrivals=(push,), has_failed=lambda model, _key, _attempt: model == "hook")
    assert explain(simulate(readers, world, START, START + DAY)) == (
        PlayedRow(
            START + 4 * HOUR, RAW, "2026-05-16", "schedule 0 6 * * * (Europe/Berlin)", "done"
        ),
        PlayedRow(START + 4 * HOUR + MINUTE, REPORT, None, f"{RAW} changed", "done"),
        PlayedRow(START + 8 * HOUR, "hook", None, "message push", "failed"),
    )


def test_a_simulation_has_one_result() -> None:
    readers = _subscriptions(_table(RAW, cron=Cron("0 * * * *")), _table(REPORT, RAW))
    world = World(outages=(Outage(START + 5 * HOUR, START + 9 * HOUR),))
    results = [simulate(readers, world, START, START + DAY) for _ in range(2)]
    assert results[0].firings == results[1].firings
    assert results[0].events == results[1].events


hours = st.floats(0, 72).map(lambda number: START + number * HOUR)
outages = st.builds(
    lambda start, minutes: Outage(start, start + minutes * MINUTE), hours, st.integers(1, 2000)
)
jumps = st.builds(
    lambda time, minutes: ClockJump(time, minutes * MINUTE), hours, st.integers(-600, 600)
)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(outages, max_size=4).map(tuple),
    st.lists(jumps, max_size=4).map(tuple),
    st.sampled_from(["0 * * * *", "*/20 * * * *", "15 3,9 * * *"]),
)
def test_each_time_fires_once_whatever_happens(
    outages: tuple[Outage, ...], jumps: tuple[ClockJump, ...], expression: str
) -> None:
    reader = _table(RAW, cron=Cron(expression), catchup=Catchup("all"))
    world = World(outages=outages, jumps=jumps)
    played = simulate(_subscriptions(reader), world, START, START + 5 * DAY)
    due = [item.event.time for item in played.events if item.event.kind is EventKind.SCHEDULE]
    cron, moment, expected = Cron(expression), START - timedelta.resolution, []
    while (moment := cron.next(moment)) <= max(due, default=START):
        expected.append(moment)
    assert sorted(due) == expected
    outcomes = [
        outcome.kind
        for item in played.events
        for outcome in item.outcomes
        if item.event.kind is EventKind.SCHEDULE
    ]
    assert len(outcomes) == len(due)
    assert set(outcomes) <= {OutcomeKind.FIRED, OutcomeKind.JOINED}
    if not jumps and all(outage.end < START + 5 * DAY for outage in outages):
        assert max(due) == cron.floor(START + 5 * DAY - timedelta.resolution)
