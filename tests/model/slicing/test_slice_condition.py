"""What says the slice of a row: by values, and by bounds."""

from __future__ import annotations

import pytest

from penstock.model.slicing.slice_condition import NotJoint, SliceCondition, qualifiers
from penstock.model.time.partition import PartitionSpec

DAILY = PartitionSpec("daily")
DAY = SliceCondition("day", by_time=False, where=((0, 1),))
AT = SliceCondition("at", by_time=True, where=((0, 1), (2, 3)))


def test_values_that_compare_otherwise_than_their_texts() -> None:
    with pytest.raises(NotJoint, match="day is timestamp, and not a text or a date"):
        DAY.by_value(["2026-01-01"], "timestamp")
    with pytest.raises(NotJoint, match="the partitions are not"):
        DAY.by_value(["2026-01"], "date")


def test_a_cast_to_a_date_wants_a_date() -> None:
    with pytest.raises(NotJoint, match="not a date"):
        SliceCondition("day", False, (), as_date=True).by_value(["2026-01-01"], "string")


def test_bounds_become_a_list_of_stretches() -> None:
    told = AT.by_bounds(["2026-01-01", "2026-01-03"], DAILY)
    assert "array('2026-01-01', NULL, '2026-01-03')" in told.slice
    assert "DIV 86400000000L" in told.slice
    assert "IS NOT NULL" in told.condition


def test_a_day_of_23_hours_is_made_of_hours() -> None:
    paris = PartitionSpec("daily", tz="Europe/Paris")
    text = AT.by_bounds(["2026-03-28", "2026-03-29"], paris).slice
    assert (text.count("'2026-03-28'"), text.count("'2026-03-29'")) == (24, 23)
    assert "DIV 3600000000L" in text


def test_qualifiers_are_of_all_columns() -> None:
    assert qualifiers("coalesce(E.day, day)") == {"e", ""}
