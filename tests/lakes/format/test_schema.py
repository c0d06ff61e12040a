"""Ids, comparison and evolution of schemas."""

from __future__ import annotations

import pytest

from penstock.errors import SchemaMismatch
from penstock.lakes.format.schema import (
    Column,
    TableSchema,
    assign_ids,
    assign_missing_ids,
    can_widen,
    evolve,
    same_columns,
)


def schema(**types: str) -> TableSchema:
    return TableSchema(tuple(Column(name, kind) for name, kind in types.items()))


def struct(name: str, *children: Column) -> Column:
    return Column(name, "struct", children=children)


def test_ids_go_to_parents_first() -> None:
    inner = struct(
        "s", Column("a", "int32"), Column("l", "list", children=(Column("element", "date"),))
    )
    numbered = assign_ids(TableSchema((inner, Column("z", "int32"))), start=5)
    assert [(c.name, c.id) for c in numbered.walk()] == [
        *(("s", 5), ("a", 6), ("l", 7), ("element", 8), ("z", 9)),
    ]


def test_same_columns() -> None:
    assert same_columns(assign_ids(schema(a="int32")), schema(A="int32"))
    assert not same_columns(schema(a="int32"), schema(a="int64"))
    assert not same_columns(schema(a="int32", b="int32"), schema(b="int32", a="int32"))


def test_evolve_adds_at_the_end_and_widens() -> None:
    current = assign_ids(
        TableSchema((Column("a", "int32"), struct("s", Column("x", "int8"), Column("y", "date"))))
    )
    wanted = TableSchema(
        (
            Column("new", "date"),
            Column("A", "int64"),
            struct("s", Column("z", "blob"), Column("x", "int16")),
        )
    )
    evolved = assign_missing_ids(evolve(current, wanted), 5)
    assert [(c.name, c.type, c.id) for c in evolved.walk()] == [
        *(("a", "int64", 1), ("s", "struct", 2), ("x", "int16", 3), ("y", "date", 4)),
        *(("z", "blob", 5), ("new", "date", 6)),
    ]


def test_evolve_keeps_what_is_wider_already() -> None:
    current = assign_ids(schema(a="int64", b="float64"))
    assert evolve(current, schema(a="int8", b="float32")) == current


@pytest.mark.parametrize("kind", ["varchar", "uint32", "float32", "list"])
def test_evolve_refuses_what_would_lose(kind: str) -> None:
    children = (Column("element", "date"),) if kind == "list" else ()
    wanted = TableSchema((Column("a", kind, children=children),))
    with pytest.raises(SchemaMismatch, match="'a' is int32"):
        evolve(assign_ids(schema(a="int32")), wanted)


def test_promotions_are_those_of_the_format() -> None:
    wide = {("int8", "int64"), ("uint8", "uint16"), ("float32", "float64")}
    assert all(can_widen(*pair) for pair in wide)
    assert not any(can_widen(b, a) for a, b in wide)
    assert not can_widen("uint8", "int16")
