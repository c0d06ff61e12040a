"""What an interval is among the values of a time column."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest

from penstock.engine.inputs.time_values import of_kind
from penstock.lakes.rows.slices import Bound
from penstock.model.time.interval import UNITS, Interval
from penstock.model.time.time_range import TimeColumn

NOON = datetime(2026, 1, 31, 12, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("kind", "form", "after"),
    [
        ("date", None, date(2026, 2, 1)),
        ("string", None, "2026-02-01"),
        ("string", "%Y-%m-%d %H", "2026-01-31 13"),
        ("int", "%Y%m%d", 20260201),
        ("int", "epoch", 1769862600),
        ("timestamp", None, NOON),
        ("timestamp_ntz", None, NOON.replace(tzinfo=None)),
    ],
)
def test_a_value_that_begins_in_a_part_of_a_day_is_in_it(
    kind: str, form: str | None, after: Bound
) -> None:
    values = of_kind(TimeColumn("at", form, False), "`at`", kind, UNITS["day"])
    ((_, end),) = values.ranges((Interval(datetime(2026, 1, 31, tzinfo=UTC), NOON),)).bounds
    assert end == after


def test_a_month_that_is_not_over_is_in_it() -> None:
    values = of_kind(TimeColumn("at", "%Y-%m", False), "`at`", "string", UNITS["month"])
    for month, after in ((1, "2026-02"), (12, "2027-01")):
        start = datetime(2026, month, 1, tzinfo=UTC)
        part, whole = Interval(start, start.replace(day=31)), UNITS["month"].at(start)
        assert values.ranges((part,)).bounds == values.ranges((whole,)).bounds
        assert values.ranges((whole,)).bounds[0][1] == after


def test_a_format_that_a_date_has_no_use_for_is_said() -> None:
    column = TimeColumn("at", "%Y%m%d", False)
    said = of_kind(column, "`at`", "date", UNITS["day"]).unused_format
    assert said == "the format %Y%m%d of the time column at is not used: it is DATE"
    assert of_kind(column, "`at`", "int", UNITS["day"]).unused_format is None
