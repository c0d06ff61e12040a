"""The columns of a Delta table: Spark's JSON in its metadata, and the schema that a lake has.

A table with column mapping has other names in its files (physical names), at any depth.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from penstock.delta.actions import Metadata
from penstock.delta.features import COLUMN_MAPPING
from penstock.errors import ColumnNotFound, SchemaMismatch, UnsupportedFeature
from penstock.lakes.format.schema import (
    Column,
    TableSchema,
    assign_ids,
    evolve,
    type_text,
    without_columns,
)
from penstock.lakes.format.types import FIELD_ID, from_spark_schema, to_spark_json
from penstock.lazy import pa, pq
from penstock.sql.identifiers import fold

Json = dict[str, Any]
_PHYSICAL = "delta.columnMapping.physicalName"
_COMMENT = "comment"
_TYPES = frozenset({"elementType", "keyType", "valueType"})
# What a table can be partitioned by, as text that all readers read alike.
_KEYS = frozenset(
    {"int8", "int16", "int32", "int64", "boolean", "decimal", "date", "varchar"}
    | {"timestamp", "timestamptz"}
)


@lru_cache(maxsize=256)
def table_schema(schema_text: str) -> TableSchema:
    """The columns as a lake's schema, with ids by their order."""
    return assign_ids(columns_of(schema_text))


def columns_of(schema_text: str) -> TableSchema:
    """The columns as a lake's schema, without ids."""
    kind = _typed(json.loads(schema_text))
    return TableSchema(_marked(from_spark_schema(kind).columns, kind))


def _typed(kind: Any) -> Any:
    """A type of Spark with INTEGER for ``void``, which is NULL in each row and in no file."""
    if not isinstance(kind, dict):
        return "integer" if kind == "void" else kind
    typed = {key: _typed(value) if key in _TYPES else value for key, value in kind.items()}
    if "fields" in kind:
        typed["fields"] = [{**f, "type": _typed(f["type"])} for f in kind["fields"]]
    return typed


def void_columns(metadata: Metadata) -> frozenset[str]:
    """The columns of type ``void``, by their names in files."""
    fields = json.loads(metadata.schema_text)["fields"]
    mapped = is_mapped(metadata)
    return frozenset(physical_name(f, mapped) for f in fields if f["type"] == "void")


def _marked(columns: Sequence[Column], kind: Json) -> tuple[Column, ...]:
    """Columns, or those inside of one, with NOT NULL where Spark's JSON of the type has it."""
    if kind["type"] == "struct":
        pairs = [(field.get("nullable", True), field["type"]) for field in kind["fields"]]
    elif kind["type"] == "array":
        pairs = [(kind.get("containsNull", True), kind["elementType"])]
    else:  # the keys of a map are never NULL
        pairs = [(True, kind["keyType"]), (kind.get("valueContainsNull", True), kind["valueType"])]
    return tuple(
        replace(
            column,
            nullable=nullable,
            children=_marked(column.children, inner) if column.children else (),
        )
        for column, (nullable, inner) in zip(columns, pairs, strict=True)
    )


def schema_text(schema: TableSchema, before: str | None = None) -> str:
    """The columns as the metadata has them. Those that were in ``before`` keep what it says."""
    known = {} if before is None else {fold(f["name"]): f for f in json.loads(before)["fields"]}
    fields = [_field(column, known.get(fold(column.name))) for column in schema.columns]
    return json.dumps({"type": "struct", "fields": fields}, separators=(",", ":"))


def _field(column: Column, before: Json | None) -> Json:
    kind = _without_ids(to_spark_json(column))
    if before is None:
        return {"name": column.name, "type": kind, "nullable": column.nullable, "metadata": {}}
    return {**before, "type": _kept(kind, before["type"])}


def _kept(kind: Any, before: Any) -> Any:
    """The new type, with what the old one says of fields inside."""
    if not isinstance(kind, dict) or not isinstance(before, dict) or kind["type"] != before["type"]:
        return kind
    if kind["type"] == "struct":
        known = {fold(field["name"]): field for field in before["fields"]}
        fields = [
            {**known[fold(f["name"])], "type": _kept(f["type"], known[fold(f["name"])]["type"])}
            if fold(f["name"]) in known
            else f
            for f in kind["fields"]
        ]
        return {**kind, "fields": fields}
    inner = ("elementType",) if kind["type"] == "array" else ("keyType", "valueType")
    return {**before, **{key: _kept(kind[key], before[key]) for key in inner}}


def _without_ids(kind: Any) -> Any:
    if not isinstance(kind, dict):
        return kind
    made = {key: _without_ids(value) for key, value in kind.items() if key != "fields"}
    if "fields" in kind:
        made["fields"] = []
        for field in kind["fields"]:
            metadata = {key: value for key, value in field["metadata"].items() if key != FIELD_ID}
            made["fields"].append(
                {**field, "type": _without_ids(field["type"]), "metadata": metadata}
            )
    return made


def evolved(metadata: Metadata, wanted: TableSchema, table: str) -> Metadata:
    """The metadata of a table that can hold ``wanted``: its new columns are added at the end.

    Raises SchemaMismatch for a type that differs: Delta's files are not read as wider ones.
    """
    before = table_schema(metadata.schema_text)
    added = (replace(column, nullable=True) for column in without_columns(wanted, ()).columns)
    after = evolve(before, TableSchema(tuple(added)))
    for old, new in zip(before.walk(), _walked(before, after), strict=True):
        if old.type != new.type:
            raise SchemaMismatch(
                f"column {new.name} of the Delta table {table} is {type_text(old)} and would become"
                f" {type_text(new)}, and types of a Delta table are not widened here",
                hint=f"cast it in the SELECT to {type_text(old)}, or overwrite the table",
                data={"table": table, "column": new.name},
            )
    text = schema_text(after, metadata.schema_text)
    return metadata if after == before else replace(metadata, schema_text=text)


def _walked(before: TableSchema, after: TableSchema) -> list[Column]:
    """The columns of ``after`` that ``before`` has, in its order."""
    found: list[Column] = []

    def walk(olds: Sequence[Column], news: Sequence[Column]) -> None:
        by_name = {fold(column.name): column for column in news}
        for old in olds:
            new = by_name[fold(old.name)]
            found.append(new)
            walk(old.children, new.children)

    walk(before.columns, after.columns)
    return found


def partition_names(schema: TableSchema, names: Sequence[str]) -> tuple[str, ...]:
    """The columns to partition by, as the schema spells them.

    Raises ColumnNotFound, and UnsupportedFeature for types and for a table of nothing else.
    """
    found: list[str] = []
    for name in names:
        column = schema.find(name)
        if column is None:
            raise ColumnNotFound(
                f"no column {name!r} to partition by",
                hint=f"the columns are {', '.join(schema.names)}",
                data={"column": name},
            )
        if column.children or column.type.split("(")[0] not in _KEYS:
            raise UnsupportedFeature(
                f"a Delta table is not partitioned by {name}, which is {type_text(column)}",
                hint="partition it by a text, a date, a number or a time",
                data={"column": name},
            )
        found.append(column.name)
    if found and len(set(found)) >= len(schema.columns):
        raise UnsupportedFeature(
            "a Delta table cannot be partitioned by all of its columns",
            hint="leave one out of partition_by",
        )
    return tuple(found)


def commented(metadata: Metadata, text: str | None, column: str | None) -> Metadata:
    """The metadata with a comment on the table or on a column. Raises ColumnNotFound."""
    if column is None:
        return replace(metadata, description=text)
    schema = json.loads(metadata.schema_text)
    field = next((f for f in schema["fields"] if fold(f["name"]) == fold(column)), None)
    if field is None:
        names = ", ".join(f["name"] for f in schema["fields"])
        raise ColumnNotFound(
            f"no column {column!r}", hint=f"the columns are {names}", data={"column": column}
        )
    field["metadata"] = {k: v for k, v in field["metadata"].items() if k != _COMMENT}
    if text is not None:
        field["metadata"][_COMMENT] = text
    return replace(metadata, schema_text=json.dumps(schema, separators=(",", ":")))


def column_comments(metadata: Metadata) -> dict[str, str]:
    fields = json.loads(metadata.schema_text)["fields"]
    return {f["name"]: f["metadata"][_COMMENT] for f in fields if _COMMENT in f["metadata"]}


def is_mapped(metadata: Metadata) -> bool:
    """Return whether the files have other names for columns."""
    return (metadata.option(COLUMN_MAPPING) or "none") != "none"


def physical_name(field: Mapping[str, Any], mapped: bool) -> str:
    name = field["metadata"][_PHYSICAL] if mapped else field["name"]
    return str(name)


def physical_columns(schema: TableSchema, metadata: Metadata) -> TableSchema:
    """The columns by their names in files, which fields inside of them have as well."""
    if not is_mapped(metadata):
        return schema
    return TableSchema(_in_files(schema.columns, json.loads(metadata.schema_text)["fields"]))


def _in_files(columns: Sequence[Column], fields: Sequence[Json]) -> tuple[Column, ...]:
    known = {fold(field["name"]): field for field in fields}
    pairs = ((column, known[fold(column.name)]) for column in columns)
    return tuple(
        replace(
            column,
            name=physical_name(field, mapped=True),
            children=_inside(column.children, field["type"]),
        )
        for column, field in pairs
    )


def _inside(children: Sequence[Column], kind: Any) -> tuple[Column, ...]:
    """The fields of a struct; elements, keys and values have their own names."""
    if not children:
        return ()
    if kind["type"] == "struct":
        return _in_files(children, kind["fields"])
    names = ("elementType",) if kind["type"] == "array" else ("keyType", "valueType")
    return tuple(
        replace(child, children=_inside(child.children, kind[name]))
        for child, name in zip(children, names, strict=True)
    )


def physical_partitions(metadata: Metadata) -> tuple[str, ...]:
    """The columns that a table is partitioned by, by their names in files."""
    physical = {name: in_files for name, in_files, _ in physical_fields(metadata)}
    return tuple(physical[name] for name in metadata.partition_by)


def physical_fields(metadata: Metadata) -> list[tuple[str, str, Any]]:
    """Of each column its name, its name in files, and Spark's JSON of its type in files."""
    mapped = is_mapped(metadata)
    return [
        (f["name"], physical_name(f, mapped), _physical(f["type"], mapped))
        for f in _typed(json.loads(metadata.schema_text))["fields"]
    ]


def _physical(kind: Any, mapped: bool) -> Any:
    if not isinstance(kind, dict):
        return kind
    made = {key: _physical(value, mapped) for key, value in kind.items() if key != "fields"}
    if "fields" in kind:
        made["fields"] = [
            {
                "name": physical_name(f, mapped),
                "type": _physical(f["type"], mapped),
                "nullable": True,
                "metadata": {},
            }
            for f in kind["fields"]
        ]
    return made


def columns_written_again(content: pq.ParquetFile, path: str) -> pa.Schema:
    """Return the columns of a file as Arrow writes them again.

    INT96, which Spark has for times in UTC, has no zone to Arrow. Views of texts, as delta-rs'
    files have them, cannot be filtered.

    Args:
        content: The file.
        path: Its path.

    Returns:
        The columns.

    Raises:
        UnsupportedFeature: A column has INT96 inside.
    """
    leaves = (content.schema.column(index) for index in range(len(content.schema)))
    zoned = {leaf.path for leaf in leaves if leaf.physical_type == "INT96"}
    schema = content.schema_arrow
    if zoned - set(schema.names):
        raise UnsupportedFeature(
            f"{path} has times of INT96 inside of other columns, and is not written again",
            hint="rewrite the table with the engine that made it, with times in microseconds",
            data={"path": path, "columns": sorted(zoned)},
        )
    for name in zoned:
        index = schema.get_field_index(name)
        schema = schema.set(index, schema.field(index).with_type(pa.timestamp("us", "UTC")))
    return pa.schema(list(map(_without_views, schema)))


def _without_views(field: pa.Field) -> pa.Field:
    """The field, and those inside of it, with texts and bytes that are not views."""
    kind, types = field.type, pa.types
    if types.is_string_view(kind):
        return field.with_type(pa.string())
    if types.is_binary_view(kind):
        return field.with_type(pa.binary())
    if types.is_struct(kind):
        return field.with_type(pa.struct(list(map(_without_views, kind.fields))))
    if types.is_map(kind):
        inner = _without_views(kind.key_field), _without_views(kind.item_field)
        return field.with_type(pa.map_(*inner))
    if types.is_list(kind):
        return field.with_type(pa.list_(_without_views(kind.value_field)))
    return field
