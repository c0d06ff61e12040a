"""Intervals as DuckDB casts them."""

from __future__ import annotations

import datetime as dt

import duckdb
import pytest

from penstock.lake.format.values.intervals import Interval, parse_interval

TEXTS = (
    *("5", "7d", "1 Week  2 days", "-3 days", "1:00:00", "12:30", "1mon", "2h", "30 min"),
    *("1 d ago", "1day2hours", "1.5 days", "5 decades", "10 ms", "  1 day ", "1 us", "2 weeks"),
    *("1 year 2 months 3 days 04:05:06", "1 month", "3 mins", "1 quarter", "-00:00:01.5"),
)
MOMENT = dt.datetime(2026, 3, 31, 12, tzinfo=dt.UTC)


@pytest.mark.parametrize("text", TEXTS)
def test_as_duckdb(text: str) -> None:
    found = parse_interval(text)
    assert found is not None
    query = f"SELECT '2026-03-31 12:00:00'::TIMESTAMP - '{text}'::INTERVAL"
    with duckdb.connect() as connection:
        expected = connection.execute(query).fetchone()
    assert (found.before(MOMENT).replace(tzinfo=None),) == expected


@pytest.mark.parametrize("text", ["", "abc", "1 q", "PT5H", "interval 1 day", "1.5 months", "day"])
def test_what_is_none(text: str) -> None:
    assert parse_interval(text) is None


@pytest.mark.parametrize("text", ["3 days", "1 month", "01:00:00", "1 month 2 days 00:00:00.5"])
def test_text(text: str) -> None:
    found = parse_interval(text)
    assert found is not None
    assert found.text() == text
    assert Interval().text() == "00:00:00"
