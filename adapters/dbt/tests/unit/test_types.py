"""Columns have Spark's types, which the ``spark__`` macros of packages compare."""

from __future__ import annotations

import pytest

from dbt.adapters.penstock.column import PenstockColumn
from dbt.adapters.penstock.types import type_name
from penstock.lakes.statements.columns import column_type, duckdb_type
from penstock.sql.statement import Reader


@pytest.mark.parametrize(
    ("kind", "name", "is_string", "is_number"),
    [
        ("VARCHAR", "string", True, False),
        ("INTEGER", "int", False, True),
        ("TINYINT", "tinyint", False, True),
        ("BIGINT", "bigint", False, True),
        ("HUGEINT", "hugeint", False, True),
        ("DECIMAL(18,3)", "decimal(18,3)", False, True),
        ("DOUBLE", "double", False, True),
        ("BLOB", "binary", False, False),
        ("TIMESTAMP", "timestamp_ntz", False, False),
    ],
)
def test_types(kind: str, name: str, is_string: bool, is_number: bool) -> None:
    column = PenstockColumn("x", type_name(kind))
    assert (column.data_type, column.is_string(), column.is_number()) == (
        name,
        is_string,
        is_number,
    )


@pytest.mark.parametrize(
    ("kind", "name"),
    {
        "VARCHAR[]": "array<string>",
        "MAP(VARCHAR, DECIMAL(10,2)[])": "map<string, array<decimal(10, 2)>>",
        "TIMESTAMP WITH TIME ZONE[]": "array<timestamp_ltz>",
        'STRUCT("A b" INTEGER, c TIMESTAMP, d TIMESTAMP WITH TIME ZONE)': (
            "STRUCT<`A b`: INT, c: TIMESTAMP_NTZ, d: TIMESTAMP_LTZ>"
        ),
    }.items(),
)
def test_nested_types_make_the_same_column(kind: str, name: str) -> None:
    assert type_name(kind) == name
    assert duckdb_type(column_type(Reader(name), "x")) == kind


def test_types_that_spark_cannot_hold_keep_their_names() -> None:
    assert type_name("TIME[]") == "TIME[]"
