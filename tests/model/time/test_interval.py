from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.model.time.interval import (
    UNITS,
    Interval,
    Intervals,
    intersect,
    minus,
    split,
    union,
    unit_within,
)

BASE = datetime(2026, 1, 1, tzinfo=UTC)
MOMENTS = range(-5, 60)


def hours(start: int, end: int) -> Interval:
    return Interval(BASE + timedelta(hours=start), BASE + timedelta(hours=end))


intervals = st.builds(
    lambda start, length: hours(start, start + length), st.integers(0, 40), st.integers(1, 9)
)
sets = st.lists(intervals, max_size=8).map(union)
units = st.sampled_from(list(UNITS.values()))
moments = st.integers(-(7 * 10**10), 7 * 10**10).map(
    lambda tenths: BASE + timedelta(0, tenths / 10)
)


def hours_of(found: Intervals) -> set[int]:
    """The hours that a set holds, counted one by one."""
    return {at for at in MOMENTS for each in found if each.contains(hours(at, at + 1))}


@given(st.lists(intervals, max_size=8))
def test_a_union_holds_what_any_of_them_holds_and_is_canonical(given_: list[Interval]) -> None:
    found = union(given_)
    assert hours_of(found) == hours_of(tuple(given_))
    assert all(left.end < right.start for left, right in pairwise(found))
    assert union(reversed(given_)) == found == union(found)


@given(sets, sets)
def test_minus_and_intersect_are_those_of_sets(left: Intervals, right: Intervals) -> None:
    assert hours_of(minus(left, right)) == hours_of(left) - hours_of(right)
    assert hours_of(intersect(left, right)) == hours_of(left) & hours_of(right)
    assert union(minus(left, right), intersect(left, right)) == left


@given(sets, sets, sets)
def test_minus_takes_away_one_by_one(one: Intervals, two: Intervals, three: Intervals) -> None:
    assert minus(minus(one, two), three) == minus(one, union(two, three))


@given(units, moments)
def test_each_moment_is_in_one_interval_of_a_unit(unit_: object, moment: datetime) -> None:
    unit = UNITS[str(unit_)]
    interval = unit.at(moment)
    assert interval.start <= moment < interval.end
    assert interval.end - interval.start >= unit.shortest
    assert unit.floor(interval.last) == interval.start
    assert unit.floor(interval.end) == interval.end == unit.ceil(interval.last)
    assert unit.next(interval.end, -1) == interval.start


@given(moments, st.sampled_from(["year", "month", "day", "hour"]), st.integers(1, 10**7))
def test_the_parts_of_an_interval_are_all_of_it(start: datetime, name: str, length: int) -> None:
    interval = Interval(start, start + timedelta(seconds=length))
    parts = list(split(interval, UNITS[name]))
    assert union(parts) == (interval,)
    assert all(left.end == right.start for left, right in pairwise(parts))
    assert all(UNITS[name].floor(part.end) == part.end for part in parts[:-1])


@given(intervals)
def test_the_text_for_state_is_read_as_it_was(interval: Interval) -> None:
    assert Interval.parse(interval.text) == interval


@pytest.mark.parametrize(
    ("start", "end", "said"),
    [
        ("2026-01-01", "2026-01-02", "2026-01-01"),
        ("2026-01-01", "2026-02-01", "2026-01-01 to 2026-01-31"),
        ("2026-01-01T05", "2026-01-01T06", "2026-01-01T05:00Z to 2026-01-01T06:00Z"),
        ("2026-01-01", "2026-01-01T00:00:05", "2026-01-01T00:00Z to 2026-01-01T00:00:05Z"),
    ],
)
def test_people_read_days_where_they_are_whole(start: str, end: str, said: str) -> None:
    first, last = (datetime.fromisoformat(text).replace(tzinfo=UTC) for text in (start, end))
    assert str(Interval(first, last)) == said


@pytest.mark.parametrize("end", [BASE, BASE - timedelta(days=1), BASE.replace(tzinfo=None)])
def test_an_interval_without_a_moment_or_a_zone_is_refused(end: datetime) -> None:
    with pytest.raises(ValueError, match=r"UTC|after its start"):
        Interval(BASE, end)


@pytest.mark.parametrize(
    ("gap", "unit"),
    [
        (timedelta(days=366), "year"),
        (timedelta(days=28), "month"),
        (timedelta(days=7), "day"),
        (timedelta(hours=12), "hour"),
        (timedelta(minutes=45), "half_hour"),
        (timedelta(minutes=20), "quarter_hour"),
        (timedelta(minutes=5), "five_minute"),
    ],
)
def test_the_unit_is_the_largest_that_fits_between_two_runs(gap: timedelta, unit: str) -> None:
    assert unit_within(gap).name == unit


def test_no_unit_is_below_five_minutes() -> None:
    with pytest.raises(ValueError, match="five minutes"):
        unit_within(timedelta(minutes=4))
