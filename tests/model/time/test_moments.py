from __future__ import annotations

from datetime import UTC, datetime

import pytest

from penstock.errors import ArgumentError
from penstock.model.time.moments import read_end, read_moment, read_range

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
