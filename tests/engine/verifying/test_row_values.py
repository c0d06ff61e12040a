"""Rows against those that were expected, in any order."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.engine.verifying.row_values import CellDifference, Row, RowDifference, differences

ROWS = st.lists(st.fixed_dictionaries({"a": st.integers(0, 2), "b": st.sampled_from("xyz")}))


def compare(expected: list[Row], actual: list[Row]) -> tuple[RowDifference, ...]:
    return differences(expected, actual, ("a", "b"), lambda x, y: bool(x == y))


@given(rows=ROWS, data=st.data())
def test_the_same_rows_in_any_order(rows: list[Row], data: st.DataObject) -> None:
    assert compare(rows, data.draw(st.permutations(rows))) == ()


@given(expected=ROWS, actual=ROWS)
def test_every_row_is_accounted_for_once(expected: list[Row], actual: list[Row]) -> None:
    found = compare(expected, actual)
    missing = sum(difference.expected is not None for difference in found)
    extra = sum(difference.actual is not None for difference in found)
    assert len(expected) - missing == len(actual) - extra
    key = lambda row: (row["a"], row["b"])  # noqa: E731 - sorts both alike
    assert bool(found) == (sorted(map(key, expected)) != sorted(map(key, actual)))


@pytest.mark.parametrize(
    ("expected", "actual", "found"),
    [
        (
            [{"a": 1, "b": "x"}],
            [{"a": 1, "b": "y"}],
            [
                RowDifference(
                    1, {"a": 1, "b": "x"}, {"a": 1, "b": "y"}, (CellDifference("b", "x", "y"),)
                )
            ],
        ),
        ([{"a": 1}], [], [RowDifference(1, {"a": 1}, None)]),
        (
            [{"a": 1, "b": "x"}],
            [{"a": 2, "b": "y"}],
            [
                RowDifference(1, {"a": 1, "b": "x"}, None),
                RowDifference(None, None, {"a": 2, "b": "y"}),
            ],
        ),
    ],
)
def test_how_rows_differ(expected: list[Row], actual: list[Row], found: list[Any]) -> None:
    assert list(compare(expected, actual)) == found
