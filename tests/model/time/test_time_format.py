from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.model.time.time_format import read_format

if TYPE_CHECKING:
    pass

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
