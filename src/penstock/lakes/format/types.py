"""DuckLake types and Spark types, as values: Spark's side is its DataType JSON.

Widths follow Spark's own Parquet reader: an unsigned integer needs the next wider signed type, and
``uint64`` a decimal. Types that Spark lacks are represented as follows, at any depth
(docs/types.md):

* ``time``, ``time_ns``, ``timetz``: DuckDB's own text (``01:02:03.5``, ``01:02:03.5+02``), which
  sorts as the times do where zones agree. Spark's TIME is off by default, ends before 24:00:00,
  which DuckDB has, and knows no zone.
* ``interval``: a struct of months, days and microseconds, as DuckDB holds it. Spark's calendar
  interval can be neither collected nor stored; its two others hold a part each.
* ``int128``, ``uint128``: decimal(38,0); reading a value of 39 digits is an error.
* ``geometry``: binary, well-known bytes, which Spark can cache and compare. Files get Spark's own
  type of reference system 0, as which DuckDB reads it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Literal

from penstock.errors import SchemaMismatch, UnsupportedFeature
from penstock.lakes.format.schema import Column, TableSchema
from penstock.lakes.format.values.bounds import parse

FIELD_ID = "parquet.field.id"

SparkType = str | dict[str, Any]
# Who a type is for: users, the reader of the Parquet files, or their writer.
Form = Literal["shown", "read", "written"]
GEOMETRY = "geometry(SRID:0)"

_SPARK_TEXT = re.compile(r"(string|varchar|char)\b.*")

_PRIMITIVES = {
    "boolean": "boolean",
    "int8": "byte",
    "int16": "short",
    "int32": "integer",
    "int64": "long",
    "uint8": "short",
    "uint16": "integer",
    "uint32": "long",
    "uint64": "decimal(20,0)",
    "float32": "float",
    "float64": "double",
    "date": "date",
    "timestamp": "timestamp_ntz",
    "timestamp_s": "timestamp_ntz",
    "timestamp_ms": "timestamp_ntz",
    "timestamp_ns": "timestamp_ntz",
    "timestamptz": "timestamp",
    "varchar": "string",
    "json": "string",
    "uuid": "string",
    "blob": "binary",
    "int128": "decimal(38,0)",
    "uint128": "decimal(38,0)",
    "time": "string",
    "time_ns": "string",
    "timetz": "string",
    "geometry": "binary",
    "variant": "variant",
}

# What the Parquet files are read with, where it is not what users see.
_READ = {
    "uuid": "binary",  # 16 raw bytes in DuckDB's files, text in Spark's: both read as bytes
    "interval": "binary",
    "int128": "double",
    "uint128": "double",
    "time": "long",
    "timetz": "long",
    "timestamp_ns": "long",
    "timestamptz in nanoseconds": "long",  # kinds of files that the format has no type for
    "milliseconds": "long",
    "int96": "timestamp_ntz",
}
_FORMS: Mapping[Form, Mapping[str, str]] = {
    "shown": {},
    "read": _READ,
    "written": {"geometry": GEOMETRY},
}

# Types that Spark writes as something else, or not at all. Reading them is another matter.
NOT_WRITTEN = frozenset(
    {"int128", "uint128", "time", "time_ns", "timetz", "timestamp_ns", "interval"}
)

INTERVAL = (("months", "integer"), ("days", "integer"), ("micros", "long"))

_FROM_SPARK = {
    "boolean": "boolean",
    "byte": "int8",
    "short": "int16",
    "integer": "int32",
    "long": "int64",
    "float": "float32",
    "double": "float64",
    "date": "date",
    "timestamp": "timestamptz",
    "timestamp_ntz": "timestamp",
    "binary": "blob",
    "variant": "variant",
    GEOMETRY: "geometry",
}


# What Spark's SQL calls types, where that is not what its JSON calls them.
_SQL_NAMES = {"integer": "int", "long": "bigint", "short": "smallint", "byte": "tinyint"}


def simple_string(column: Column) -> str:
    """The type of a column without columns inside as Spark's SQL names it: ``bigint``."""
    kind = to_spark_json(column)
    assert isinstance(kind, str), "a struct, list or map has its types inside"
    return _SQL_NAMES.get(kind, kind)


def to_spark_json(column: Column, *, form: Form = "shown", path: str = "") -> SparkType:
    """Spark's DataType JSON for a column, field ids on the struct fields inside.

    Raises UnsupportedFeature naming the type and the column.
    """
    column_path = path or column.name
    nested = _TO_NESTED.get(column.type)
    if nested is not None:
        return nested(column, form, column_path)
    parsed = parse(column.type)
    if parsed.name == "decimal" and parsed.precision is not None:
        return f"decimal({parsed.precision},{parsed.scale})"
    if parsed.name in _FORMS[form]:
        return _FORMS[form][parsed.name]
    spark = _interval() if parsed.name == "interval" else _PRIMITIVES.get(parsed.name)
    if spark is None:
        raise UnsupportedFeature(
            f"column {column_path!r} has type {column.type}, which this version does not read "
            "on Spark",
            hint="leave the column out of the table, or store it as varchar",
            data={"column": column_path, "type": column.type},
        )
    return spark


def _interval() -> SparkType:
    fields = [
        {"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in INTERVAL
    ]
    return {"type": "struct", "fields": fields}


def to_spark_field(column: Column, *, form: Form = "shown", path: str = "") -> dict[str, Any]:
    """Spark's JSON of one struct field. Always nullable: the files are, whatever the table says."""
    return {
        "name": column.name,
        "type": to_spark_json(column, form=form, path=path),
        "nullable": True,
        "metadata": {} if column.id is None else {FIELD_ID: column.id},
    }


def to_spark_schema(schema: TableSchema, *, form: Form = "shown") -> dict[str, Any]:
    """Spark's JSON of the StructType of a whole table."""
    fields = [to_spark_field(column, form=form) for column in schema.columns]
    return {"type": "struct", "fields": fields}


def _list_to_spark(column: Column, form: Form, path: str) -> SparkType:
    (element,) = column.children
    spark = to_spark_json(element, form=form, path=f"{path}.{element.name}")
    return {"type": "array", "elementType": spark, "containsNull": True}


def _map_to_spark(column: Column, form: Form, path: str) -> SparkType:
    key, value = column.children
    return {
        "type": "map",
        "keyType": to_spark_json(key, form=form, path=f"{path}.{key.name}"),
        "valueType": to_spark_json(value, form=form, path=f"{path}.{value.name}"),
        "valueContainsNull": True,
    }


def _struct_to_spark(column: Column, form: Form, path: str) -> SparkType:
    fields = [
        to_spark_field(child, form=form, path=f"{path}.{child.name}") for child in column.children
    ]
    return {"type": "struct", "fields": fields}


_TO_NESTED: Mapping[str, Callable[[Column, Form, str], SparkType]] = {
    "list": _list_to_spark,
    "map": _map_to_spark,
    "struct": _struct_to_spark,
}


def from_spark_json(json: SparkType, name: str, *, path: str = "") -> Column:
    """The column that a DataFrame's column of this DataType JSON creates; ids unset.

    Raises SchemaMismatch for types that a table cannot hold.
    """
    column_path = path or name
    if isinstance(json, dict):
        nested = _FROM_NESTED.get(str(json.get("type")))
        if nested is None:
            raise _no_such_type(json.get("type"), column_path)
        return nested(json, name, column_path)
    if _SPARK_TEXT.fullmatch(json):
        return Column(name, "varchar")
    parsed = parse(json)
    if parsed.name == "decimal" and parsed.precision is not None:
        return Column(name, f"decimal({parsed.precision},{parsed.scale})")
    duck = _FROM_SPARK.get(json)
    if duck is None:
        raise _no_such_type(json, column_path)
    return Column(name, duck)


def from_spark_schema(json: Mapping[str, Any]) -> TableSchema:
    """The table schema that a DataFrame's StructType JSON creates; ids unset."""
    fields = json["fields"]
    return TableSchema(tuple(from_spark_json(f["type"], f["name"]) for f in fields))


# What to write in a SELECT instead of a value of a type, by the beginning of the type's name.
_INSTEAD = {
    "interval": (
        "write a number, as in datediff(b, a) or unix_seconds(b) - unix_seconds(a), or a text: "
        "CAST({name} AS STRING)"
    ),
    "time": "write it as text: CAST({name} AS STRING)",
    "geometry": "a column holds geometries of SRID 0: write st_setsrid({name}, 0)",
    "geography": "write it as a geometry: st_geomfromwkb(st_asbinary({name}))",
}


def _no_such_type(spark: object, path: str) -> SchemaMismatch:
    instead = next((h for kind, h in _INSTEAD.items() if str(spark).startswith(kind)), None)
    return SchemaMismatch(
        f"column {path!r} is of Spark type {spark}, which a table cannot hold",
        hint=(instead or "cast it in the SELECT: CAST({name} AS STRING)").format(name=path),
        data={"column": path, "type": spark},
    )


def _list_from_spark(json: dict[str, Any], name: str, path: str) -> Column:
    element = from_spark_json(json["elementType"], "element", path=f"{path}.element")
    return Column(name, "list", children=(element,))


def _map_from_spark(json: dict[str, Any], name: str, path: str) -> Column:
    key = from_spark_json(json["keyType"], "key", path=f"{path}.key")
    value = from_spark_json(json["valueType"], "value", path=f"{path}.value")
    return Column(name, "map", children=(key, value))


def _struct_from_spark(json: dict[str, Any], name: str, path: str) -> Column:
    children = tuple(
        from_spark_json(f["type"], f["name"], path=f"{path}.{f['name']}") for f in json["fields"]
    )
    return Column(name, "struct", children=children)


_FROM_NESTED: Mapping[str, Callable[[dict[str, Any], str, str], Column]] = {
    "array": _list_from_spark,
    "map": _map_from_spark,
    "struct": _struct_from_spark,
}


def needs_mapping(schema: TableSchema) -> bool:
    """Return whether Spark cannot write every field id: list elements and map
    entries carry none.
    """
    return any(column.type in {"list", "map"} for column in schema.walk())
