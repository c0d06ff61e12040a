"""Moments as texts: as people write them, and in the format of a time column."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import ArgumentError
from penstock.model.time.moments import read_end, read_format, read_moment, read_range

if TYPE_CHECKING:
    pass


NOW = datetime(2024, 2, 29, 13, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2024-01-31", "2024-01-31T00:00"),
        ("2024-01-31 06:00:00", "2024-01-31T06:00"),
        ("2024-01-31T06:00+02:00", "2024-01-31T04:00"),
        ("1704067200000", "2024-01-01T00:00"),
        ("1 year ago", "2023-02-28T13:30"),
        ("2 months ago", "2023-12-29T13:30"),
        ("a week ago", "2024-02-22T13:30"),
        ("36 hours ago", "2024-02-28T01:30"),
        ("yesterday", "2024-02-28T00:00"),
        ("today", "2024-02-29T00:00"),
        ("now", "2024-02-29T13:30"),
    ],
)
def test_a_moment_is_read(text: str, moment: str) -> None:
    assert read_moment(text, NOW) == datetime.fromisoformat(moment).replace(tzinfo=UTC)


@pytest.mark.parametrize("text", ["soon", "2024-02-30", "99999 years ago", "9" * 30, ""])
def test_what_is_no_moment_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"iso|range|years"):
        read_moment(text, NOW)


def test_an_end_that_is_a_date_is_all_of_its_day() -> None:
    assert read_end("2024-01-31", NOW) == datetime(2024, 2, 1, tzinfo=UTC)
    assert read_end("2024-01-31 00:00:00", NOW) == datetime(2024, 1, 31, tzinfo=UTC)
    assert read_end("yesterday", NOW) == datetime(2024, 2, 29, tzinfo=UTC)
    assert str(read_range("2024-01-01", "2024-01-31", NOW)) == "2024-01-01 to 2024-01-31"


@pytest.mark.parametrize(
    ("last", "said"), [("2023-12-31", "2023-12-31 is before 2024-01-01"), ("x", "not a moment")]
)
def test_a_range_that_ends_before_it_begins_is_refused(last: str, said: str) -> None:
    with pytest.raises(ArgumentError, match=said):
        read_range("2024-01-01", last, NOW)


AT = datetime(2026, 3, 5, 14, 7, 9, 42, tzinfo=UTC)
moments = st.integers(-(10**9), 4 * 10**9).map(
    lambda second: datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=second)
)


@pytest.mark.parametrize(
    ("text", "written", "spark", "sorts", "is_number"),
    [
        ("%Y-%m-%d", "2026-03-05", "yyyy-MM-dd", True, False),
        ("yyyy-MM-dd", "2026-03-05", "yyyy-MM-dd", True, False),
        ("%Y%m%d", "20260305", "yyyyMMdd", True, True),
        ("%d/%m/%Y", "05/03/2026", "dd/MM/yyyy", False, False),
        ("%F %T.%f", "2026-03-05 14:07:09.000042", "yyyy-MM-dd HH:mm:ss.SSSSSS", True, False),
        ("yyyy-MM-dd'T'HH", "2026-03-05T14", "yyyy-MM-dd'T'HH", True, False),
        ("%Y.%j", "2026.064", "yyyy.DDD", True, False),
        ("%Y%%%m", "2026%03", "yyyy%MM", True, False),
    ],
)
def test_a_format_writes_times(
    text: str, written: str, spark: str, sorts: bool, is_number: bool
) -> None:
    found = read_format(text)
    assert found.write(AT) == written
    assert (found.spark, found.sorts, found.is_number) == (spark, sorts, is_number)
    assert re.fullmatch(found.regex, written)


@pytest.mark.parametrize(
    ("text", "written"),
    [("epoch", "1772719629"), ("millis", "1772719629000"), ("Micros", "1772719629000042")],
)
def test_counts_since_1970(text: str, written: str) -> None:
    assert read_format(text).write(AT) == written


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("%Y-%b-%d", "`%b`"),
        ("yyyy-M-d", "`M`"),
        ("%m-%d", "year"),
        ("%Y-%d", "what follows"),
        ("%", "`%`"),
        ("seconds", "`s`"),
        ("", "year"),
    ],
)
def test_what_does_not_tell_times_apart_is_refused(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        read_format(text)


@given(moments, moments, st.sampled_from(["%Y%m%d%H%M%S", "%F", "%Y-%j %H"]))
def test_texts_that_sort_are_in_the_order_of_time(one: datetime, two: datetime, text: str) -> None:
    found = read_format(text)
    sooner, later = sorted((one, two))
    assert found.write(sooner) <= found.write(later)
