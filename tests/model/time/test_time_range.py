from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from penstock.model.time.interval import UNITS, Interval, Intervals, intersect, minus, union
from penstock.model.time.time_range import TimeColumn, TimeRange
from penstock.model.values.schedule import Cadence

NOW = datetime(2026, 3, 30, 9, 30, tzinfo=UTC)
START = datetime(2026, 3, 20, tzinfo=UTC)
cadences = st.builds(
    Cadence,
    cron=st.sampled_from(["@daily", "@hourly", "30 2 * * *", "0 */6 * * *"]),
    # whose clocks change on 8 and 29 March, and on 5 April
    cron_tz=st.sampled_from([None, "Europe/Paris", "America/New_York", "Australia/Lord_Howe"]),
    start=st.sampled_from(["2026-03-01", "2026-03-28T05:00", "10 days ago"]),
    allow_partials=st.booleans(),
)
nows = st.integers(0, 40 * 24 * 60).map(lambda minute: START + timedelta(minutes=minute))


def days(first: str, last: str) -> Interval:
    """From the first moment of a day to the last of another."""
    start, end = (datetime.fromisoformat(text).replace(tzinfo=UTC) for text in (first, last))
    return Interval(start, end + timedelta(days=1))


def daily(**options: object) -> TimeRange:
    cadence = Cadence(start="2026-03-20", cron=None)
    return replace(TimeRange(TimeColumn("ts"), cadence=cadence), **options)  # type: ignore[arg-type] # by name


@given(cadences, nows)
def test_what_is_expected_is_whole_units_up_to_the_cron(cadence: Cadence, now: datetime) -> None:
    model = TimeRange(TimeColumn("ts"), cadence=cadence)
    expected = model.expected(now)
    due = model.cron.floor(now)
    assert all(each.end <= due for each in expected)
    if not cadence.allow_partials:
        assert expected == model.whole(expected)
        # nothing that is whole was left out
        last = expected[0].end if expected else model.start(now)
        assert last is not None
        assert model.unit.next(model.unit.floor(last)) > due


@given(cadences, nows, nows)
def test_what_was_recorded_is_not_missing_later(
    cadence: Cadence, first: datetime, second: datetime
) -> None:
    cadence = replace(cadence, start="2026-03-01", allow_partials=False)
    model, (sooner, later) = TimeRange(TimeColumn("ts"), cadence=cadence), sorted((first, second))
    done = model.missing((), sooner)
    rest = model.missing(done, later)
    assert not intersect(done, rest)
    assert union(done, rest) == model.expected(later)
    assert model.missing(union(done, rest), later) == ()


holes = st.lists(st.integers(0, 9), max_size=10).map(
    lambda places: union(
        Interval(START + timedelta(days=at), START + timedelta(days=at + 1)) for at in places
    )
)


@given(holes, st.integers(0, 3))
def test_lookback_does_the_days_before_what_is_missing_again(
    recorded: Intervals, back: int
) -> None:
    model = daily(lookback=back)
    found = set(model.units(model.missing(recorded, NOW)))
    lacking = minus(model.expected(NOW), recorded)
    wanted = {
        Interval(each.start - timedelta(days=n), each.end - timedelta(days=n))
        for each in model.units(lacking)
        for n in range(back + 1)
    }
    assert found == {each for each in wanted if each.start >= START}


@given(holes, st.integers(1, 4))
def test_batches_are_all_of_it_in_parts_of_no_more_than_their_size(
    intervals: Intervals, size: int
) -> None:
    batches = daily(batch_size=size).batches(intervals)
    assert union(batches) == intervals
    assert all(each.end - each.start <= size * timedelta(days=1) for each in batches)
    assert len(batches) == sum(-(-(each.end - each.start).days // size) for each in intervals)


def test_a_zone_says_when_it_runs_and_not_what_a_day_is() -> None:
    model = daily(cadence=Cadence(cron="@daily", cron_tz="America/New_York", start="2026-03-20"))
    before, after = (datetime(2026, 3, 30, hour, tzinfo=UTC) for hour in (3, 4))
    assert model.expected(before) == (days("2026-03-20", "2026-03-28"),)
    assert model.expected(after) == (days("2026-03-20", "2026-03-29"),)


def test_without_a_start_a_model_begins_with_yesterday_and_goes_on_from_there() -> None:
    model = TimeRange(TimeColumn("ts"))
    assert model.missing((), NOW) == (days("2026-03-29", "2026-03-29"),)
    recorded = (days("2026-03-25", "2026-03-25"),)
    assert model.missing(recorded, NOW) == (days("2026-03-26", "2026-03-29"),)
    assert model.expected(NOW, start=START) == (days("2026-03-20", "2026-03-29"),)


def test_an_interval_that_was_not_over_is_done_again_as_a_whole() -> None:
    cadence = Cadence("@hourly", None, "day", "2026-03-29", allow_partials=True)
    model = TimeRange(TimeColumn("ts"), cadence=cadence)
    done = model.missing((), NOW)
    assert done == (Interval(datetime(2026, 3, 29, tzinfo=UTC), NOW.replace(minute=0)),)
    (again,) = model.missing(done, NOW + timedelta(hours=1))
    assert (again.start, again.end) == (
        NOW.replace(hour=0, minute=0),
        NOW.replace(hour=10, minute=0),
    )
    assert model.expected(NOW, ignore_cron=True)[0].end == NOW


def test_an_end_that_is_a_date_is_the_last_day() -> None:
    model = daily(cadence=Cadence(start="2026-03-20", end="2026-03-22"))
    assert model.expected(NOW) == (days("2026-03-20", "2026-03-22"),)
    future = daily(cadence=Cadence(start="2027-01-01"))
    assert future.expected(NOW) == ()


def test_a_unit_may_be_finer_than_the_cron() -> None:
    model = daily(cadence=Cadence(start="2026-03-29", interval_unit="hour"))
    assert model.unit == UNITS["hour"]
    assert len(list(model.units(model.expected(NOW)))) == 24
