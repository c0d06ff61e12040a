"""DuckDB's text of values, held against DuckDB's own count of them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable

import duckdb
import pytest

from penstock.lakes.format.values import duck_text
from penstock.lakes.format.values.duck_text import Interval, parse_interval

DATES = ["2024-02-29", "1970-01-01", "0001-01-01", "0044-03-15 (BC)", "10000-01-01", "infinity"]
DATES += ["-infinity", "5877642-06-25 (BC)", "5881580-07-10", "1582-10-10", "0005-02-29 (BC)"]
MOMENTS = ["2024-02-03 12:34:56.789012", "0044-03-15 (BC) 01:02:03", "12345-01-01 00:00:00.1"]
MOMENTS += ["1969-12-31 23:59:59.999999", "2024-02-03 00:00:00", "290309-12-22 (BC) 00:00:00"]
ZONED = [
    "2024-02-03 09:34:56.789012+00",
    "2024-02-03 09:34:56+05:30",
    "0044-03-15 (BC) 01:02:03-08",
]
INTERVALS = ["1 year 2 months -3 days 04:05:06.789", "-00:00:01", "00:00:00", "100:00:00"]
INTERVALS += ["-5 years -1 month 40 days", "1 day", "1 month -00:00:00.000001"]


def _duckdb(expression: str, text: str) -> object:
    with duckdb.connect() as connection:
        row = connection.execute(f"SELECT {expression}", [text]).fetchone()
    assert row is not None
    return row[0] if len(row) == 1 else row


@pytest.mark.parametrize("text", DATES)
def test_days_are_those_that_duckdb_counts(text: str) -> None:
    if "infinity" in text:
        assert duck_text.days(text) == (-1 if text[0] == "-" else 1) * duck_text.DATE_LIMIT
    else:
        assert duck_text.days(text) == _duckdb("?::DATE - DATE '1970-01-01'", text)


@pytest.mark.parametrize("text", MOMENTS)
def test_microseconds_are_those_that_duckdb_counts(text: str) -> None:
    assert duck_text.micros(text) == _duckdb("epoch_us(?::TIMESTAMP)", text)


@pytest.mark.parametrize("text", ZONED)
def test_offsets_move_to_utc(text: str) -> None:
    assert duck_text.micros(text) == _duckdb("epoch_us(?::TIMESTAMPTZ)", text)


@pytest.mark.parametrize("text", INTERVALS)
def test_intervals_have_three_parts(text: str) -> None:
    interval = duck_text.interval(text)
    assert _duckdb("?::INTERVAL", text) is not None
    months, days, micros = interval["months"], interval["days"], interval["micros"]
    shown = f"{months} months {days} days {micros} microseconds"
    assert _duckdb("?::INTERVAL::VARCHAR", shown) == _duckdb("?::INTERVAL::VARCHAR", text)


def test_the_texts_of_postgresql_are_read_too() -> None:
    assert duck_text.days("0044-03-15 BC") == duck_text.days("0044-03-15 (BC)")
    known = duck_text.micros("0044-03-15 (BC) 01:02:03")
    assert duck_text.micros("0044-03-15 01:02:03+00 BC") == known
    assert duck_text.interval("1 year 2 mons -3 days +04:05:06") == {
        "months": 14,
        "days": -3,
        "micros": 14_706_000_000,
    }


def test_nanoseconds_keep_their_digits() -> None:
    assert duck_text.nanos("1970-01-01 00:00:01.123456789") == 1_123_456_789
    with pytest.raises(ValueError, match="finer"):
        duck_text.micros("1970-01-01 00:00:01.123456789")


def test_bytes_are_escaped_where_they_are_no_text() -> None:
    assert duck_text.blob(r"\x00\xFF\x27abc\x5C") == b"\x00\xff'abc\\"


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (duck_text.days, "2024-13-01"),
        (duck_text.days, "CAST('2024-01-01' AS DATE)"),
        (duck_text.micros, "2024-01-01 1:2:3"),
        (duck_text.interval, "soon"),
        (duck_text.interval, ""),
    ],
)
def test_other_text_is_refused(read: Callable[[str], object], text: str) -> None:
    with pytest.raises(ValueError, match=r"is no|there is no"):
        read(text)


TEXTS = (
    *("5", "7d", "1 Week  2 days", "-3 days", "1:00:00", "12:30", "1mon", "2h", "30 min"),
    *("1 d ago", "1day2hours", "1.5 days", "5 decades", "10 ms", "  1 day ", "1 us", "2 weeks"),
    *("1 year 2 months 3 days 04:05:06", "1 month", "3 mins", "1 quarter", "-00:00:01.5"),
)
MOMENT = dt.datetime(2026, 3, 31, 12, tzinfo=dt.UTC)


@pytest.mark.parametrize("text", TEXTS)
def test_as_duckdb(text: str) -> None:
    interval = parse_interval(text)
    assert interval is not None
    query = f"SELECT '2026-03-31 12:00:00'::TIMESTAMP - '{text}'::INTERVAL"
    with duckdb.connect() as connection:
        expected = connection.execute(query).fetchone()
    assert (interval.before(MOMENT).replace(tzinfo=None),) == expected


NONE = ("", "abc", "1 q", "PT5H", "interval 1 day", "1.5 months", "day")
NUMBERS = ("2026-11-01", "5 6", "5-6", "1 day 2", "5 days -6")


@pytest.mark.parametrize("text", [*NONE, *NUMBERS])
def test_what_is_none(text: str) -> None:
    assert parse_interval(text) is None


@pytest.mark.parametrize("text", NUMBERS)
def test_numbers_beside_each_other_are_none_of_duckdb_either(text: str) -> None:
    with duckdb.connect() as connection, pytest.raises(duckdb.ConversionException):
        connection.execute(f"SELECT INTERVAL '{text}'")


@pytest.mark.parametrize("text", ["3 days", "1 month", "01:00:00", "1 month 2 days 00:00:00.5"])
def test_text(text: str) -> None:
    interval = parse_interval(text)
    assert interval is not None
    assert interval.text() == text
    assert Interval().text() == "00:00:00"
