"""Values as the catalog keeps them, and back."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from penstock.lakes.format.files import InlinedPart
from penstock.lakes.format.inlined.literal_rows import typed
from penstock.lakes.format.inlined.staged import statistics
from penstock.lakes.format.inlined.text import may_inline, moved, stored
from penstock.lakes.format.inlined.values import arrow_schema, batches
from penstock.lakes.format.schema import Column, TableSchema, assign_ids

ITEM = Column("element", "varchar")
STRUCT = (Column("a'b", "varchar"), Column("d", "date"))


def _schema(kind: str, **more: Any) -> TableSchema:
    return assign_ids(TableSchema((Column("c", kind, **more),)))


def _stored(value: Any, schema: TableSchema) -> pa.Table | None:
    return stored(typed([{"c": value}], schema, table="main.t"), schema)


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        ("date", "0044-03-15 (BC)", "0044-03-15 (BC)"),
        ("date", "12024-01-02", "12024-01-02"),
        ("date", "-infinity", "-infinity"),
        ("timestamp", "2024-01-02 03:04:05.120000", "2024-01-02 03:04:05.12"),
        ("timestamp", "0044-03-15 (BC) 01:00:00", "0044-03-15 (BC) 01:00:00"),
        ("timestamptz", "2024-01-02 03:04:05.5+02", "2024-01-02 01:04:05.5+00"),
        ("timestamp_ns", "2024-01-02 03:04:05.123456789", "2024-01-02 03:04:05.123456789"),
        ("interval", "1 year 2 months -3 days 04:05:06.7", "1 year 2 months -3 days 04:05:06.7"),
        ("decimal(9,2)", -0.01, "-0.01"),
        ("uint64", 2**64 - 1, "18446744073709551615"),
    ],
)
def test_texts_are_those_of_duckdb_and_read_back(kind: str, value: Any, text: str) -> None:
    schema = _schema(kind)
    table = _stored(value, schema)
    assert table is not None
    assert table["1"].to_pylist() == [text]
    again = pa.Table.from_batches(batches(InlinedPart(schema, table), schema), arrow_schema(schema))
    assert again == typed([{"c": value}], schema, table="main.t")


@pytest.mark.parametrize("inside", ["it's", "a,b", "NULL", "", " s ", "x\\y", "[", '"', "ü = 1"])
def test_nested_text_reads_back_in_every_form_or_is_not_stored(inside: str) -> None:
    schema = _schema("struct", children=STRUCT)
    value = {"a'b": inside, "d": "2024-01-02"}
    table = _stored(value, schema)
    assert table is not None
    for texts in ("cast", "sql"):
        part = InlinedPart(schema, table, texts)
        (batch,) = batches(part, schema)
        assert batch.column(0)[0].as_py()["a'b"] == inside


def test_what_readers_would_take_for_something_else_is_not_stored() -> None:
    assert _stored({"a'b": "x\\,y"}, _schema("struct", children=STRUCT)) is None
    assert _stored("a\0b", _schema("varchar")) is None


def test_which_tables_are_not_inlined() -> None:
    assert not may_inline(_schema("geometry"))
    assert not may_inline(_schema("list", children=(Column("element", "variant"),)))
    assert not may_inline(_schema("list", children=(Column("element", "json"),)))
    assert not may_inline(TableSchema((Column("Row_ID", "int32", 1),)))
    assert may_inline(_schema("json"))


def test_rows_move_with_the_columns_of_their_table() -> None:
    old = _schema("int32")
    table = _stored(5, old)
    assert table is not None
    new = TableSchema(
        (Column("n", "date", 2, initial_default="2024-01-01"), Column("renamed", "int64", 1))
    )
    part = InlinedPart(old, table, "cast")
    assert moved(part, new).to_pylist() == [{"2": "2024-01-01", "1": 5}]


def test_statistics_leave_out_what_is_no_bound() -> None:
    columns = (
        Column("f", "float64"),
        Column("l", "list", children=(ITEM,)),
        Column("d", "date"),
    )
    schema = assign_ids(TableSchema(columns))
    rows = [
        {"f": float("nan"), "l": ["b", None], "d": "infinity"},
        {"f": 1.5, "l": None, "d": None},
    ]
    table = stored(typed(rows, schema, table="main.t"), schema)
    assert table is not None
    number, text, day = statistics(table, schema)
    assert (number.min_value, number.max_value, number.contains_nan) == ("1.5", "1.5", True)
    assert (text.value_count, text.null_count, text.max_value) == (1, 2, "b")
    assert (day.value_count, day.null_count, day.min_value) == (1, 1, None)
