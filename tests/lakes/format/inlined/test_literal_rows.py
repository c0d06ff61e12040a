"""Literal rows in the types of a table: accepted values, and refusals by row and column."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from penstock.errors import SchemaMismatch, UnsupportedFeature
from penstock.lakes.format.inlined.literal_rows import (
    TIME,
    TIMETZ,
    Convert,
    date,
    interval,
    moment,
    time,
    timestamptz,
    typed,
)
from penstock.lakes.format.inlined.values import arrow_schema
from penstock.lakes.format.schema import Column, TableSchema, assign_ids

ITEM = Column("element", "varchar")
POINT = (Column("x", "int32"), Column("Y", "date"))


def _one(value: Any, kind: str, **more: Any) -> Any:
    schema = assign_ids(TableSchema((Column("c", kind, **more),)))
    return typed([{"c": value}], schema, table="main.t")["c"][0].as_py()


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("int8", -128, -128),
        ("int32", Decimal(7), 7),
        ("uint64", 2**64 - 1, Decimal(2**64 - 1)),
        ("float32", 0.1, 0.10000000149011612),
        ("float64", 3, 3.0),
        ("decimal(5,2)", 1.005, Decimal("1.01")),
        ("date", "2024-02-29", dt.date(2024, 2, 29)),
        ("timestamp", dt.date(2024, 1, 2), dt.datetime(2024, 1, 2)),  # noqa: DTZ001 - no zone
        (
            "timestamptz",
            "2024-01-02 03:04:05+02",
            dt.datetime(2024, 1, 2, 1, 4, 5, tzinfo=dt.UTC),
        ),
        ("time", dt.time(1, 2, 3, 500_000), "01:02:03.5"),
        ("uuid", "550E8400-E29B-41D4-A716-446655440000", "550e8400-e29b-41d4-a716-446655440000"),
        ("json", {"a": [1]}, '{"a": [1]}'),
        ("blob", bytearray(b"\0"), b"\0"),
    ],
)
def test_a_value_becomes_its_columns_type(kind: str, value: Any, expected: Any) -> None:
    assert _one(value, kind) == expected


@pytest.mark.parametrize(
    ("kind", "value", "why"),
    [
        ("int8", 128, "not within -128 to 127"),
        ("int32", 1.5, "not whole"),
        ("int32", "1", "give a whole number"),
        ("int32", True, "give a whole number"),
        ("float32", 1e300, "too large"),
        ("decimal(4,2)", 100, "2 digits before the point"),
        ("varchar", 1, "give text"),
        ("timestamp", "2024-01-01 00:00:00+00", "no time zone"),
        ("timestamptz", dt.datetime(2024, 1, 1), "has no time zone"),  # noqa: DTZ001 - that is it
        ("timestamp_s", dt.datetime(2024, 1, 1, 0, 0, 0, 1), "finer"),  # noqa: DTZ001 - no zone
        ("date", "2024-13-01", "no day"),
        ("json", "{", "Expecting"),
    ],
)
def test_a_wrong_value_is_refused_by_row_and_column(kind: str, value: Any, why: str) -> None:
    with pytest.raises(SchemaMismatch, match=rf"row 1, column 'c' of main\.t: .*{why}"):
        _one(value, kind)


def test_nested_values_go_by_the_names_of_their_fields() -> None:
    assert _one(["a", None], "list", children=(ITEM,)) == ["a", None]
    assert _one({"y": "2024-01-01"}, "struct", children=POINT) == {
        "x": None,
        "Y": dt.date(2024, 1, 1),
    }
    with pytest.raises(SchemaMismatch, match="no field 'z'"):
        _one({"z": 1}, "struct", children=POINT)


def test_what_is_missing_takes_its_default_or_null() -> None:
    columns = (
        Column("a", "int32"),
        Column("d", "date", default="2024-01-01"),
        Column("n", "int32", nullable=False),
    )
    schema = assign_ids(TableSchema(columns))
    rows = typed([{"N": 1}, {"a": 2, "d": None, "n": 3}], schema, table="main.t").to_pylist()
    assert rows == [
        {"a": None, "d": dt.date(2024, 1, 1), "n": 1},
        {"a": 2, "d": None, "n": 3},
    ]
    for row in ({}, {"n": None}):
        with pytest.raises(SchemaMismatch, match="row 2, column 'n'"):
            typed([{"n": 1}, row], schema, table="main.t")


def test_a_default_that_is_an_expression_needs_a_value() -> None:
    column = Column("c", "timestamp", default="now()", default_kind="expression")
    schema = assign_ids(TableSchema((Column("a", "int32"), column)))
    with pytest.raises(UnsupportedFeature, match="now"):
        typed([{"a": 1}], schema, table="main.t")
    assert typed([{"c": None}], schema, table="main.t").num_rows == 1


def test_unknown_columns_are_told_with_the_likely_one() -> None:
    schema = assign_ids(TableSchema((Column("price", "int32"),)))
    with pytest.raises(SchemaMismatch, match="no column 'prise'") as caught:
        typed(pa.table({"prise": [1]}), schema, table="main.t")
    assert "price" in str(caught.value.hint)


def test_arrow_of_the_same_types_is_taken_whole_and_others_value_by_value() -> None:
    schema = assign_ids(TableSchema((Column("a", "int64"), Column("u", "uint8"))))
    rows = typed(pa.table({"u": [255], "A": pa.array([1], pa.int8())}), schema, table="main.t")
    assert rows.schema.equals(arrow_schema(schema))
    assert rows.to_pylist() == [{"a": 1, "u": 255}]
    with pytest.raises(SchemaMismatch, match="row 2, column 'u'"):
        typed(pa.table({"u": [1, 256]}), schema, table="main.t")


def test_columns_named_alike_are_refused() -> None:
    schema = assign_ids(TableSchema((Column("a", "int64"),)))
    with pytest.raises(SchemaMismatch, match="two columns named alike"):
        typed(pa.table({"a": [1], "A": [2]}), schema, table="main.t")


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
