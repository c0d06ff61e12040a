"""Keys that are looked at in Arrow: counted as Spark counts them, or not at all."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from penstock.lakes.rows.merge_source import bounds, distinct, has_nulls


def rows(kind: pa.DataType, *values: Any) -> pa.Table:
    return pa.table({"k": pa.array(values, kind), "n": pa.array([1] * len(values), pa.int8())})


@pytest.mark.parametrize(
    ("kind", "values", "count"),
    [
        (pa.int64(), (1, 2, 2), 2),
        (pa.string(), ("a", "A", "a "), 3),
        (pa.decimal128(4, 2), (Decimal("1.50"), Decimal("1.50")), 1),
        (pa.date32(), (dt.date(2013, 1, 2),), 1),
        (pa.int64(), (), 0),
    ],
)
def test_different_keys(kind: pa.DataType, values: tuple[Any, ...], count: int) -> None:
    assert distinct(rows(kind, *values), ["k"]) == count
    assert distinct(rows(kind, *values), ["k", "n"]) == count


@pytest.mark.parametrize(
    "kind", [pa.float64(), pa.list_(pa.int8()), pa.struct([("a", pa.float32())])]
)
def test_what_arrow_may_see_otherwise(kind: pa.DataType) -> None:
    assert distinct(rows(kind, None), ["k"]) is None


def test_nulls() -> None:
    assert has_nulls(rows(pa.int8(), 1, None), ["k"])
    assert not has_nulls(rows(pa.int8(), 1, None), ["n"])


@pytest.mark.parametrize(
    ("kind", "values", "ends"),
    [
        (pa.int64(), (9, 10, -1), ("-1", "10")),
        (pa.string(), ("b", "a"), ("a", "b")),
        (pa.decimal128(4, 2), (Decimal("1.5"), Decimal("-2")), ("-2.00", "1.50")),
        (pa.date32(), (dt.date(2013, 1, 2),), ("2013-01-02", "2013-01-02")),
        (
            pa.timestamp("us"),
            (1357095845000006,),
            ("2013-01-02 03:04:05.000006",) * 2,
        ),
        (pa.timestamp("us", "UTC"), (1_000_000,), ("1000000", "1000000")),
        (pa.int64(), (), None),
    ],
)
def test_bounds(kind: pa.DataType, values: tuple[Any, ...], ends: Any) -> None:
    assert bounds(rows(kind, *values), "k") == ends


def test_years_that_are_written_otherwise_bound_nothing() -> None:
    far = pa.array([0, 99_999_999], pa.int32()).cast(pa.date32())
    assert bounds(pa.table({"k": far}), "k") is None
