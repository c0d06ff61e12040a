from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from penstock.model.time.interval import Interval
from penstock.model.time.needs import COMMON, EARLIER, Bound, Need, Rule, Shift, Window, read_need

UTC_ZONE, PARIS = ZoneInfo("UTC"), ZoneInfo("Europe/Paris")


def day(month: int, number: int, hour: int = 0) -> datetime:
    return datetime(2026, month, number, hour, tzinfo=UTC)


SLICE = Interval(day(1, 5), day(1, 6))


@pytest.mark.parametrize(
    ("window", "expected"),
    [
        (COMMON, SLICE),
        (Window(Bound(shift=Shift(days=-4))), Interval(day(1, 1), day(1, 6))),
        (Window(Bound(shift=Shift(days=1)), Bound()), None),
        (EARLIER, Interval(datetime.min.replace(tzinfo=UTC), day(1, 5))),
    ],
)  # fmt: skip
def test_the_moments_of_a_window(window: Window, expected: Interval | None) -> None:
    assert window.of(SLICE, UTC_ZONE) == expected


def test_days_are_those_of_the_calendar_and_hours_are_instants() -> None:
    # Clocks go forward on 29 March: the day before a midnight begins 23 hours earlier.
    midnight = datetime(2026, 3, 29, 22, tzinfo=UTC)  # 30 March, 0:00 in Paris
    assert Shift(days=-1).of(midnight, PARIS) == datetime(2026, 3, 28, 23, tzinfo=UTC)
    hours = Shift(rest=datetime(2026, 1, 2) - datetime(2026, 1, 1))  # noqa: DTZ001 - a length
    assert (-hours).of(midnight, PARIS) == datetime(2026, 3, 28, 22, tzinfo=UTC)


def test_a_month_ends_where_it_has_no_such_day() -> None:
    assert Shift(months=-1).of(day(3, 31), UTC_ZONE) == day(2, 28)
    assert Shift(months=-13).of(day(1, 31), UTC_ZONE) == datetime(2024, 12, 31, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "rule", "shift"),
    [
        ("lag=7d", Rule.MOMENTS, Shift(days=-7)),
        ("lag=2w", Rule.MOMENTS, Shift(days=-14)),
        ("same", Rule.SAME, None),
        ("all", Rule.ALL, None),
        ("none", Rule.NONE, None),
    ],
)
def test_what_a_model_says(text: str, rule: Rule, shift: Shift | None) -> None:
    need = read_need(text)
    assert need is not None
    assert (need.rule, need.said) == (rule, text)
    if shift is not None:
        assert need.windows == (Window(Bound(shift=shift)),)


@pytest.mark.parametrize(
    "text", ["", "lag", "7d", "lag=7", "lag=-7d", "lag=7y", "ALL", "lag=9" * 9]
)
def test_other_texts_say_nothing(text: str) -> None:
    assert read_need(text) is None


def test_a_window_beyond_the_calendar_is_empty() -> None:
    assert Window(Bound(shift=Shift(months=-12 * 3000))).of(SLICE, UTC_ZONE) is None


SHIFTS = (
    Shift(),
    Shift(days=-7),
    Shift(days=30),
    Shift(months=-1),
    Shift(months=2, days=-3),
    Shift(rest=timedelta(hours=-26)),
)


@pytest.mark.parametrize("zone", [UTC_ZONE, PARIS])
@pytest.mark.parametrize("is_end", [False, True])
def test_what_is_told_to_be_outside_needs_no_moment(zone: ZoneInfo, is_end: bool) -> None:
    moments, told = Interval(day(3, 28), day(4, 1)), 0
    windows = [
        Window(Bound(is_end, a), Bound(shift=b, is_end=True)) for a in SHIFTS for b in SHIFTS
    ]
    for window in (*windows, EARLIER):
        need = Need(Rule.MOMENTS, (window, COMMON))
        is_outside = need.outside(moments)
        for number in range(180):
            start = day(1, 1) + timedelta(days=number)
            own = Interval(start, start + timedelta(days=1))
            if is_outside(own):
                told += 1
                assert all(each.overlap(moments) is None for each in need.moments(own, zone))
    assert told > 2000


def test_nothing_is_outside_of_what_has_no_bounds() -> None:
    forever = Interval(datetime.min.replace(tzinfo=UTC), day(1, 1))
    assert not Need(Rule.MOMENTS, (Window(Bound(shift=Shift(days=-1))),)).outside(forever)(SLICE)
