"""Types between DuckLake and Spark, as JSON."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import SchemaMismatch, UnsupportedFeature
from penstock.lakes.format.schema import Column, TableSchema, assign_ids
from penstock.lakes.format.types import (
    from_spark_json,
    from_spark_schema,
    needs_mapping,
    to_spark_json,
    to_spark_schema,
)
from penstock.lakes.format.values.bounds import parse

BOTH_WAYS = {
    "boolean": "boolean",
    "int8": "byte",
    "int16": "short",
    "int32": "integer",
    "int64": "long",
    "float32": "float",
    "float64": "double",
    "decimal(38,10)": "decimal(38,10)",
    "date": "date",
    "timestamp": "timestamp_ntz",
    "timestamptz": "timestamp",
    "varchar": "string",
    "blob": "binary",
    "variant": "variant",
}
READ_ONLY = {
    "uint8": "short",
    "uint16": "integer",
    "uint32": "long",
    "uint64": "decimal(20,0)",
    "timestamp_s": "timestamp_ntz",
    "timestamp_ms": "timestamp_ntz",
    "timestamp_ns": "timestamp_ntz",
    "json": "string",
    "uuid": "string",
    "int128": "decimal(38,0)",
    "uint128": "decimal(38,0)",
    "time": "string",
    "time_ns": "string",
    "timetz": "string",
    "geometry": "binary",
}


@pytest.mark.parametrize(("duck", "spark"), [*BOTH_WAYS.items(), *READ_ONLY.items()])
def test_to_spark(duck: str, spark: str) -> None:
    assert to_spark_json(Column("c", duck)) == spark


@pytest.mark.parametrize(("duck", "spark"), BOTH_WAYS.items())
def test_from_spark(duck: str, spark: str) -> None:
    assert from_spark_json(spark, "c") == Column("c", duck)


def test_geometries_are_bytes_that_files_hold_as_geometries() -> None:
    spark = to_spark_json(Column("g", "geometry"), form="written")
    assert spark == "geometry(SRID:0)"
    assert from_spark_json(spark, "g") == Column("g", "geometry")


@pytest.mark.parametrize("spark", ["string collate UTF8_LCASE", "varchar(10)", "char(3)"])
def test_all_text_is_varchar(spark: str) -> None:
    assert from_spark_json(spark, "c").type == "varchar"


@pytest.mark.parametrize("duck", ["bit", "int256", "union", "linestring z"])
def test_types_that_are_unknown_name_themselves(duck: str) -> None:
    column = Column("s", "struct", children=(Column("inner", duck),))
    with pytest.raises(UnsupportedFeature, match=rf"'s\.inner' has type {duck}"):
        to_spark_json(column)


def test_an_interval_has_its_three_parts() -> None:
    spark = to_spark_json(Column("c", "interval"))
    assert isinstance(spark, dict)
    assert [(field["name"], field["type"]) for field in spark["fields"]] == [
        ("months", "integer"),
        ("days", "integer"),
        ("micros", "long"),
    ]


PHYSICAL = {
    "interval": "binary",
    "int128": "double",
    "uint128": "double",
    "time": "long",
    "timetz": "long",
    "timestamp_ns": "long",
    "uuid": "binary",
    "uint64": "decimal(20,0)",
    "geometry": "binary",
}


@pytest.mark.parametrize(("duck", "spark"), PHYSICAL.items())
def test_what_files_are_read_with(duck: str, spark: str) -> None:
    assert to_spark_json(Column("c", duck), form="read") == spark


@pytest.mark.parametrize(
    "spark", ["void", "geometry(ANY)", "interval day to second", {"type": "udt"}]
)
def test_types_that_are_refused_when_written(spark: Any) -> None:
    array = {"type": "array", "elementType": spark, "containsNull": True}
    with pytest.raises(SchemaMismatch, match=r"'c\.element'"):
        from_spark_json(array, "c")


def columns(depth: int) -> st.SearchStrategy[Column]:
    leaf = st.sampled_from(sorted(BOTH_WAYS)).map(lambda kind: Column("c", kind))
    if depth == 0:
        return leaf
    inner = columns(depth - 1)

    def named(column: Column, name: str) -> Column:
        return Column(name, column.type, children=column.children)

    lists = inner.map(lambda c: Column("c", "list", children=(named(c, "element"),)))
    maps = st.tuples(leaf, inner).map(
        lambda p: Column("c", "map", children=(named(p[0], "key"), named(p[1], "value")))
    )
    structs = st.lists(inner, min_size=1, max_size=3).map(
        lambda cs: Column(
            "c", "struct", children=tuple(named(c, f"f{i}") for i, c in enumerate(cs))
        )
    )
    return leaf | lists | maps | structs


@given(st.lists(columns(3), max_size=3))
def test_nested_types_come_back(drawn: list[Column]) -> None:
    schema = TableSchema(
        tuple(Column(f"c{i}", c.type, children=c.children) for i, c in enumerate(drawn))
    )
    assert from_spark_schema(to_spark_schema(schema)) == schema
    assert needs_mapping(schema) == any(c.type in {"list", "map"} for c in schema.walk())


def test_ids_sit_on_struct_fields() -> None:
    inner = Column("s", "struct", children=(Column("x", "int32"),))
    schema = assign_ids(
        TableSchema((inner, Column("l", "list", children=(Column("element", "date"),))))
    )
    first, second = to_spark_schema(schema)["fields"]
    assert first["metadata"] == {"parquet.field.id": 1}
    assert first["type"]["fields"][0]["metadata"] == {"parquet.field.id": 2}
    assert second["metadata"] == {"parquet.field.id": 3}
    assert second["type"] == {"type": "array", "elementType": "date", "containsNull": True}


def test_uuids_are_read_as_bytes() -> None:
    assert to_spark_json(Column("u", "uuid"), form="read") == "binary"


def test_parse() -> None:
    assert (parse("decimal(10, 2)").precision, parse("decimal(10, 2)").scale) == (10, 2)
    assert parse("INT32").name == "int32"


@pytest.mark.parametrize(
    "name",
    ["format.types", "format.schema", "format.statistics", "format.conflicts", "catalog.catalog"],
)
def test_no_spark(name: str) -> None:
    """In a process of its own: importing the catalog must not bring PySpark in."""
    code = f"import penstock.lakes.{name}, sys; sys.exit('pyspark' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(
    ("spark", "hint"),
    [
        ("geometry(OGC:CRS84)", "st_setsrid(c, 0)"),
        ("geography(OGC:CRS84, SPHERICAL)", "st_geomfromwkb(st_asbinary(c))"),
    ],
)
def test_what_to_write_instead(spark: str, hint: str) -> None:
    with pytest.raises(SchemaMismatch) as caught:
        from_spark_json(spark, "c")
    assert hint in str(caught.value)
