"""The columns of a table, from and to its metadata."""

from __future__ import annotations

import json

import pytest

from penstock.delta.schema import (
    column_comments,
    commented,
    evolved,
    partition_names,
    physical_fields,
    schema_text,
    table_schema,
)
from penstock.errors import ColumnNotFound, SchemaMismatch, UnsupportedFeature
from penstock.lakes.format.schema import Column, TableSchema
from tests.delta import tables
from tests.delta.tables import metadata

SCHEMA = table_schema(tables.schema_text())


def test_types() -> None:
    assert [(c.name, c.type, c.id) for c in SCHEMA.columns] == [
        ("id", "int64", 1),
        ("day", "date", 2),
        ("name", "varchar", 3),
        ("price", "decimal(10,2)", 4),
    ]


def test_there_and_back() -> None:
    nested = Column(
        "s", "struct", children=(Column("x", "list", children=(Column("element", "timestamp"),)),)
    )
    schema = TableSchema((*SCHEMA.columns, nested, Column("must", "int64", nullable=False)))
    again = table_schema(schema_text(schema))
    assert [c.name for c in again.walk()] == [c.name for c in schema.walk()]
    assert [c.type for c in again.walk()] == [c.type for c in schema.walk()]
    assert not again.columns[-1].nullable
    assert "parquet.field.id" not in schema_text(again)


def test_new_columns_come_last_and_others_keep_what_they_say() -> None:
    before = commented(metadata(), "what it costs", "price")
    after = evolved(before, TableSchema((Column("NAME", "varchar"), Column("more", "int64"))), "t")
    assert table_schema(after.schema_text).names == ("id", "day", "name", "price", "more")
    assert column_comments(after) == {"price": "what it costs"}
    assert evolved(after, SCHEMA, "t") == after


def test_a_narrower_type_changes_nothing() -> None:
    known = metadata()
    assert evolved(known, TableSchema((Column("id", "int32"),)), "t") == known


def test_a_wider_type_is_refused() -> None:
    known = metadata(schema_text=tables.schema_text([("id", "integer")]))
    with pytest.raises(SchemaMismatch, match="is int32 and would become int64"):
        evolved(known, TableSchema((Column("id", "int64"),)), "t")


def test_comments() -> None:
    known = commented(commented(metadata(), "orders", None), "the day", "DAY")
    assert (known.description, column_comments(known)) == ("orders", {"day": "the day"})
    assert column_comments(commented(known, None, "day")) == {}
    with pytest.raises(ColumnNotFound, match="no column 'none'"):
        commented(known, "x", "none")


def test_partition_columns() -> None:
    assert partition_names(SCHEMA, ["DAY", "name"]) == ("day", "name")
    with pytest.raises(ColumnNotFound, match="no column 'none' to partition by"):
        partition_names(SCHEMA, ["none"])
    with pytest.raises(UnsupportedFeature, match="by all of its columns"):
        partition_names(SCHEMA, SCHEMA.names)
    with pytest.raises(UnsupportedFeature, match="not partitioned by f, which is float64"):
        partition_names(TableSchema((Column("f", "float64"), Column("a", "int64"))), ["f"])


def test_names_in_files() -> None:
    inner = {"name": "x", "type": "long", "nullable": True}
    fields = {
        "type": "struct",
        "fields": [
            {
                "name": "s",
                "type": {
                    "type": "struct",
                    "fields": [{**inner, "metadata": {"delta.columnMapping.physicalName": "c2"}}],
                },
                "nullable": True,
                "metadata": {"delta.columnMapping.physicalName": "c1"},
            }
        ],
    }
    text = json.dumps(fields)
    mapped = metadata(schema_text=text, options={"delta.columnMapping.mode": "name"})
    ((name, physical, kind),) = physical_fields(mapped)
    assert (name, physical, kind["fields"][0]["name"]) == ("s", "c1", "c2")
