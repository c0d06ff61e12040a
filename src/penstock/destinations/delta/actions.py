"""Turn a commit of a lake's table into actions of Delta's log, or refuse what it cannot have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from penstock.delta.actions import Add, DeletionVector, Json, encoded
from penstock.delta.schema import schema_text
from penstock.delta.statistics import loosened, stats_of
from penstock.errors import SchemaMismatch, UnsupportedFeature
from penstock.lakes.format.files import DataFile, PartitionField
from penstock.lakes.format.schema import Column, TableSchema
from penstock.lakes.format.values.bounds import base_type

# Types whose values, read by Delta, are the ones that were written.
_NUMBERS = ("int8", "int16", "int32", "int64")
_PARTITION_TYPES = frozenset({"boolean", *_NUMBERS, "decimal", "date", "varchar"})
_NESTED = ("list", "struct", "map")
_OTHERS = ("float32", "float64", "timestamp", "timestamptz", "blob")
_TYPES = frozenset({*_PARTITION_TYPES, *_NESTED, *_OTHERS})


def schema_of(schema: TableSchema, table: str, before: str | None = None) -> str:
    """The columns as Delta has them; those of ``before`` keep what it says of them. Raises
    UnsupportedFeature for a type that Delta lacks.
    """
    for column in schema.columns:
        _require(column, table)
    return schema_text(schema, before)


def _require(column: Column, table: str) -> None:
    if base_type(column.type) not in _TYPES:
        raise UnsupportedFeature(
            f"column {column.name!r} of {table} is {column.type}, a type that Delta does not have",
            hint=f"cast it in the SELECT, as in CAST({column.name} AS STRING) AS {column.name}",
            data={"column": column.name, "type": column.type},
        )
    for child in column.children:
        _require(child, table)


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


def added(
    table: str,
    file: DataFile,
    names: Sequence[str],
    schema: TableSchema,
    *,
    now: int,
    vector: DeletionVector | None = None,
) -> Json:
    """A data file with its rows, but those of ``vector``; ``names`` are the columns that Delta
    partitions by.
    """
    values = partition_values(names, file.partition_values, file.path)
    # The values of the others are those of the partition.
    others = TableSchema(tuple(each for each in schema.columns if each.name not in names))
    stats = stats_of(file, others)
    made = _file(table, file.path, file.size_bytes, values, now=now, stats=stats)
    if vector is not None:
        made = replace(made, vector=vector, stats=loosened(stats, file.record_count))
    return made.json()


def removed(
    table: str,
    path: str,
    size: int,
    names: Sequence[str],
    values: Sequence[str | None] | None,
    *,
    now: int,
) -> Json:
    return _file(table, path, size, partition_values(names, values, path), now=now).removal(now)


def _file(
    table: str,
    path: str,
    size: int,
    values: Mapping[str, str | None],
    *,
    now: int,
    stats: str | None = None,
) -> Add:
    return Add(encoded(table, path), tuple(values.items()), size, now, stats)


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
