"""Dates and times given as Python values, as the types of a table hold them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any

import pytest

from penstock.lake.format.inlined.literal_times import (
    TIME,
    TIMETZ,
    Convert,
    date,
    interval,
    moment,
    time,
    timestamptz,
)
from penstock.lake.format.schema import Column

NO_ZONE = dt.datetime(1970, 1, 2, 0, 0, 1, 5)  # noqa: DTZ001 - of a type without a zone
ZONED = NO_ZONE.replace(tzinfo=dt.UTC)
MICROS = 86_401_000_005


@pytest.mark.parametrize(
    ("kind", "value", "stored"),
    [
        (date, dt.date(1970, 1, 3), 2),
        (date, "1969-12-31", -1),
        (moment(1), NO_ZONE, MICROS),
        (moment(1), dt.date(1970, 1, 2), 86_400_000_000),
        (moment(1, nanos=True), NO_ZONE, MICROS * 1000),
        (timestamptz, ZONED, MICROS),
        (timestamptz, "1970-01-01 02:00:00+02", 0),
        (time(TIME), dt.time(12, 30, 1, 500_000), "12:30:01.5"),
        (time(TIME), "12:30:01.000", "12:30:01"),
        (time(TIMETZ), "12:30:01+02:00", "12:30:01+02"),
        (time(TIMETZ), "12:30:01.50+05:30", "12:30:01.5+05:30"),
        (interval, dt.timedelta(days=1, seconds=2), {"months": 0, "days": 1, "micros": 2_000_000}),
        (interval, {"months": 3}, {"months": 3, "days": 0, "micros": 0}),
    ],
)
def test_a_value_is_converted(kind: Callable[[Column], Convert], value: Any, stored: Any) -> None:
    assert kind(Column("c", "date"))(value) == stored


@pytest.mark.parametrize(
    ("kind", "value", "problem"),
    [
        (moment(1), ZONED, "the column has no time zone"),
        (moment(1), "2026-01-01 00:00:00+02", "the column has no time zone"),
        (moment(1_000_000), NO_ZONE, "finer than the type"),
        (timestamptz, NO_ZONE, "it has no time zone: give it one"),
        (timestamptz, "2026-01-01 00:00:00", r"end it with \+00"),
        (time(TIME), "noon", "write it as 12:34:56"),
        (interval, "soon", "'soon' is not an interval"),
    ],
)
def test_a_wrong_value_is_refused(
    kind: Callable[[Column], Convert], value: Any, problem: str
) -> None:
    with pytest.raises(ValueError, match=problem):
        kind(Column("c", "date"))(value)


def test_a_value_of_another_type_is_refused() -> None:
    with pytest.raises(TypeError, match="give a date, or its text"):
        date(Column("c", "date"))(3)
