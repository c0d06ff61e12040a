"""Turn a commit of a lake's table into actions of Delta's log: columns, files, statistics.

Delta's protocol, "Actions" and "Schema Serialization Format": the schema is Spark's JSON, bounds of
statistics are JSON values, paths are relative to the table and encoded as in URIs.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any
from urllib.parse import quote

from penstock.destinations.delta.log import Action
from penstock.errors import SchemaMismatch, UnsupportedFeature
from penstock.lake.format.files import ColumnStats, DataFile, PartitionField
from penstock.lake.format.schema import Column, TableSchema
from penstock.lake.format.types import to_spark_json
from penstock.lake.format.values.bounds import base_type

_NO_ZONE = "timestampNtz"
# Types whose values, read by Delta, are the ones that were written.
_NUMBERS = ("int8", "int16", "int32", "int64")
_PARTITION_TYPES = frozenset({"boolean", *_NUMBERS, "decimal", "date", "varchar"})
_NESTED = ("list", "struct", "map")
_OTHERS = ("float32", "float64", "timestamp", "timestamptz", "blob")
_TYPES = frozenset({*_PARTITION_TYPES, *_NESTED, *_OTHERS})
_LONGEST = 32  # characters of a text that is given as a bound, as Delta's own writer has it


def schema_string(schema: TableSchema, table: str) -> str:
    """The columns as Delta has them. Raises UnsupportedFeature for a type that it has not."""
    for column in schema.columns:
        _require(column, table)
    fields = [_field(column) for column in schema.columns]
    return json.dumps({"type": "struct", "fields": fields})


def _field(column: Column) -> dict[str, Any]:
    return {
        "name": column.name,
        "type": _plain(to_spark_json(column)),
        "nullable": column.nullable,
        "metadata": {},
    }


def _plain(kind: Any) -> Any:
    """Spark's type without the metadata of its fields, which are the lake's field ids."""
    if isinstance(kind, dict):
        return {key: {} if key == "metadata" else _plain(value) for key, value in kind.items()}
    return [_plain(each) for each in kind] if isinstance(kind, list) else kind


def _require(column: Column, table: str) -> None:
    if base_type(column.type) not in _TYPES:
        raise UnsupportedFeature(
            f"column {column.name!r} of {table} is {column.type}, a type that Delta does not have",
            hint=f"cast it in the SELECT, as in CAST({column.name} AS STRING) AS {column.name}",
            data={"column": column.name, "type": column.type},
        )
    for child in column.children:
        _require(child, table)


def needs_no_zone(schema: TableSchema) -> bool:
    """Return whether any column, at any depth, is a timestamp without a zone."""

    def has(columns: Sequence[Column]) -> bool:
        return any(each.type == "timestamp" or has(each.children) for each in columns)

    return has(schema.columns)


def protocol(schema: TableSchema) -> dict[str, Any]:
    """The least protocol by which a table of these columns can be read and written."""
    if not needs_no_zone(schema):
        return {"minReaderVersion": 1, "minWriterVersion": 2}
    return {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": [_NO_ZONE],
        "writerFeatures": [_NO_ZONE, "appendOnly", "invariants"],
    }


def partition_columns(
    schema: TableSchema, fields: Sequence[PartitionField], table: str
) -> tuple[str, ...]:
    """The columns that Delta partitions by: those of a layout that has the values themselves.

    Files that are laid out by a transform (``day``, ``bucket``) are files like others to Delta.
    """
    if any(field.transform != "identity" for field in fields):
        return ()
    by_name = {column.name: column for column in schema.columns}
    for field in fields:
        kind = by_name[field.column].type
        if base_type(kind) not in _PARTITION_TYPES:
            raise UnsupportedFeature(
                f"{table} cannot be partitioned by {field.column!r}, which is {kind}, in Delta",
                hint="partition it by a date, a text, a whole number or a boolean",
                data={"column": field.column, "type": kind},
            )
    return tuple(field.column for field in fields)


def metadata(
    id_: str,
    schema: TableSchema,
    partition_by: Sequence[str],
    table: str,
    *,
    created: int,
    description: str | None,
    configuration: Mapping[str, str],
) -> dict[str, Any]:
    """``created`` is in milliseconds since 1970."""
    return {
        "id": id_,
        **({} if description is None else {"description": description}),
        "format": {"provider": "parquet", "options": {}},
        "schemaString": schema_string(schema, table),
        "partitionColumns": list(partition_by),
        "createdTime": created,
        "configuration": dict(configuration),
    }


def relative(table: str, path: str) -> str:
    """A file's path as an action names it: relative to the table's directory, encoded."""
    inside = path.removeprefix(table) if path.startswith(table) else path
    return quote(inside, safe="/=:-_.~@+,!$&'()*;")


def added(
    table: str, file: DataFile, names: Sequence[str], schema: TableSchema, *, now: int
) -> Action:
    """A data file with its rows; ``names`` are the columns that Delta partitions by."""
    return {
        "add": {
            "path": relative(table, file.path),
            "partitionValues": partition_values(names, file.partition_values, file.path),
            "size": file.size_bytes,
            "modificationTime": now,
            "dataChange": True,
            "stats": json.dumps(_stats(file, names, schema), separators=(",", ":")),
        }
    }


def removed(
    table: str,
    path: str,
    size: int,
    names: Sequence[str],
    values: Sequence[str | None] | None,
    *,
    now: int,
) -> Action:
    return {
        "remove": {
            "path": relative(table, path),
            "deletionTimestamp": now,
            "dataChange": True,
            "extendedFileMetadata": True,
            "partitionValues": partition_values(names, values, path),
            "size": size,
        }
    }


def partition_values(
    names: Sequence[str], values: Sequence[str | None] | None, path: str
) -> dict[str, str | None]:
    """Raises SchemaMismatch for an empty text, which Delta takes for NULL, and for files that are
    not in one partition.
    """
    if not names:
        return {}
    if values is None or len(values) != len(names):
        raise SchemaMismatch(
            f"the rows of {path} are of several partitions",
            hint="rebuild the table with --full-refresh: Delta cannot change how it is partitioned",
        )
    for name, value in zip(names, values, strict=True):
        if value == "":
            raise SchemaMismatch(
                f"column {name!r} has an empty text, which Delta takes for NULL in a partition",
                hint="write NULL, or another text, or do not partition by it",
                data={"column": name},
            )
    return dict(zip(names, values, strict=True))


def _stats(file: DataFile, names: Sequence[str], schema: TableSchema) -> dict[str, Any]:
    found: dict[str, Any] = {"numRecords": file.record_count}
    low, high, nulls = {}, {}, {}
    for column, stats in _of_columns(file.stats, schema):
        if column.name in names:
            continue  # their values are those of the partition
        if stats.null_count is not None:
            nulls[column.name] = stats.null_count
        bounds = _bounds(column, stats)
        if bounds is not None:
            low[column.name], high[column.name] = bounds
    return {**found, "minValues": low, "maxValues": high, "nullCount": nulls}


def _of_columns(
    stats: Sequence[ColumnStats], schema: TableSchema
) -> Iterator[tuple[Column, ColumnStats]]:
    by_id = {column.id: column for column in schema.columns if not column.children}
    return ((by_id[each.column_id], each) for each in stats if each.column_id in by_id)


def _bounds(column: Column, stats: ColumnStats) -> tuple[Any, Any] | None:
    """The bounds as JSON has them; None where Delta could read them otherwise."""
    if stats.min_value is None or stats.max_value is None:
        return None
    kind = base_type(column.type)
    if kind in {"float32", "float64"} and stats.contains_nan is not False:
        return None
    if kind == "varchar" and max(len(stats.min_value), len(stats.max_value)) > _LONGEST:
        return None  # a longer one must be cut, and the upper one then raised
    read = _JSON.get(kind)
    if read is None:
        return None
    found = read(stats.min_value), read(stats.max_value)
    is_finite = not any(isinstance(each, float) and not math.isfinite(each) for each in found)
    return found if is_finite else None


def _moment(text: str) -> str:
    """``2026-01-01 00:00:00.5+00`` to ``2026-01-01T00:00:00.500000``."""
    return datetime.fromisoformat(text).replace(tzinfo=None).isoformat(timespec="microseconds")


# Decimals have no bounds: JSON's numbers would round them.
_JSON: Mapping[str, Callable[[str], Any]] = {
    **dict.fromkeys(("int8", "int16", "int32", "int64"), int),
    **dict.fromkeys(("float32", "float64"), float),
    "varchar": str,
    "date": str,
    "timestamp": _moment,
    "timestamptz": lambda text: f"{_moment(text)}Z",
}
