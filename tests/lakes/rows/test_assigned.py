"""Constants and columns, assigned to columns of any type: by Arrow, or left to Spark."""

from __future__ import annotations

import pytest

from penstock.lakes.format.schema import Column, TableSchema
from penstock.lakes.rows import arrow_finder
from penstock.lakes.rows.change import Condition, RowChange

ARROWS = (
    *("boolean", "int8", "int16", "int32", "int64", "float32", "float64", "decimal(10,2)"),
    *("varchar", "blob", "date", "timestamp", "timestamptz"),
)
SPARKS = (
    *("uint64", "int128", "uint128", "json", "uuid", "time", "timetz", "interval"),
    *("timestamp_s", "timestamp_ms", "timestamp_ns", "list", "struct", "map", "variant"),
)
INSIDE = {
    "list": (Column("element", "int32", 4),),
    "struct": (Column("x", "int32", 4),),
    "map": (Column("key", "varchar", 4), Column("value", "int32", 5)),
}


def _computed(kind: str, value: str | None) -> object:
    inside = INSIDE.get(kind, ())
    columns = (Column("k", "int32", 1), Column("c", kind, 2, children=inside))
    schema = TableSchema((*columns, Column("e", kind, 3, children=inside)))
    return arrow_finder.compiled(schema, RowChange.update(Condition.of("k = 1"), {"c": value}))


@pytest.mark.parametrize("value", [None, "NULL", "e"])
@pytest.mark.parametrize("kind", ARROWS)
def test_arrow_assigns_what_it_has_a_type_for(kind: str, value: str | None) -> None:
    assert _computed(kind, value) is not None


@pytest.mark.parametrize("value", [None, "NULL", "'{}'", "1", "e"])
@pytest.mark.parametrize("kind", SPARKS)
def test_all_else_is_left_to_spark(kind: str, value: str | None) -> None:
    assert _computed(kind, value) is None
