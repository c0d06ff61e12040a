"""Mapping a file's columns to the table's: their names, their values, and missing columns.

Files are grouped by how they are read (`FileGroup`): with field ids or under a name mapping, with
columns of another kind than the table's type or not, with or without columns that have an initial
default. A file's footer shows which group it belongs to; it is read only where the catalog does not
decide that.

A column may be only in the path of a file: ``.../country=a%2Fb/file.parquet``. As in DuckDB
(measured, 1.5.5) the path wins over a column of that name in the file, escapes are undone, and
``__HIVE_DEFAULT_PARTITION__`` and ``NULL`` are NULL.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from penstock.errors import UnsupportedFeature
from penstock.lakes.format.files import DataFile, FileSet, NameMapping
from penstock.lakes.format.naming import fold
from penstock.lakes.format.schema import (
    EMBEDDED_ROW_ID,
    MAPPED_ROW_ID,
    ROW_ID_FIELD,
    Column,
    TableSchema,
)
from penstock.lakes.format.types import FIELD_ID
from penstock.lakes.format.values.bounds import base_type
from penstock.lakes.reading.conversions.spark_types import (
    MILLISECONDS,
    file_schema,
    may_differ,
    reads_itself,
    spark_type,
)
from penstock.lakes.reading.conversions.widening import from_old, is_as_read
from penstock.lakes.reading.parquet.footers import Layout, layouts
from penstock.spark.functions import fn
from penstock.sql.identifiers import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql.types import StructType


@dataclass(frozen=True, slots=True)
class FileGroup:
    """Files that are read in the same way. ``mapping`` -1 means the table's own names, ``None``
    field ids.

    ``lacks`` are ids of columns, at any depth, that have an initial default instead; ``kinds``
    those that the files have in another form; ``hive`` those whose value is in the path, with their
    name there.
    """

    mapping: int | None
    lacks: frozenset[int] = frozenset()
    kinds: frozenset[tuple[int, str]] = frozenset()
    hive: frozenset[tuple[int, str]] = frozenset()
    older: bool = False  # than the last change of the columns: names may have had other meanings


def grouped(table: str, schema: TableSchema, files: FileSet) -> Mapping[FileGroup, list[DataFile]]:
    """The files of ``table`` by how they are read."""
    by_path = layouts(_doubtful(schema, files), table=table)
    changed = max((c.versions[-1][0] for c in schema.walk() if c.versions), default=0)
    groups: dict[FileGroup, list[DataFile]] = {}
    for file in files.files:
        layout = by_path.get(file.path)
        group = _group(schema, file, layout, files) if layout else FileGroup(_mapping(file))
        began = file.begin_snapshot
        is_older = file.rewritten or (began is not None and began < changed)
        if group.mapping is None and is_older:
            group = replace(group, older=True)
        groups.setdefault(group, []).append(file)
    return groups


def _mapping(file: DataFile) -> int | None:
    return -1 if file.mapping_id is None and file.uses_mapping else file.mapping_id


def _doubtful(schema: TableSchema, files: FileSet) -> list[str]:
    """Files whose footers must be read: files under a mapping may hold nearly anything."""
    begins = {f.begin_snapshot for f in files.files}
    columns = list(schema.walk())
    asked = {begin for begin in begins if any(_is_doubtful(c, begin) for c in columns)}
    return [
        file.path
        for file in files.files
        if file.mapping_id is not None
        or file.rewritten
        or (file.begin_snapshot in asked and not file.uses_mapping)
    ]


def _is_doubtful(column: Column, begin: int | None) -> bool:
    kinds = column.types_since(begin)
    if not kinds or not column.versions:  # the file is older, or that is not known
        return column.initial_default is not None
    if begin == column.versions[0][0] and column.initial_default is not None:
        return True  # the file may have come before the column in one transaction
    if column.children or kinds == {column.type}:
        return may_differ(column.type)
    return not all(reads_itself(_WRITTEN_AS.get(kind, kind), column.type) for kind in kinds)


# How the real extension writes types.
_WRITTEN_AS = {
    "timestamp_s": "timestamp",
    "timestamp_ms": MILLISECONDS,
    "int128": "float64",
    "uint128": "float64",
}


def _group(schema: TableSchema, file: DataFile, layout: Layout, files: FileSet) -> FileGroup:
    """Return how a file is read, by its footer."""
    own_mapping = None if file.mapping_id is None else files.mappings[file.mapping_id]
    names = {path[0] for path in layout.by_path}
    mapping = in_force(own_mapping, schema, file.path, has_ids=bool(layout.by_id), names=names)
    own = _mapping(file) if mapping is own_mapping else None
    kinds = layout.by_id
    if mapping is not None:
        named = folded_paths(mapping)
        kinds = {named[path]: kind for path, kind in layout.by_path.items() if path in named}
    hive = {} if mapping is None else mapping.partitions
    lacks: set[int] = set()
    others: set[tuple[int, str]] = set()
    for column in schema.walk():
        if column.id is None or column.id in hive:
            continue
        kind = kinds.get(column.id)
        if kind is None:
            if column.initial_default is not None:
                lacks.add(column.id)
        elif not column.children and not reads_itself(kind, column.type) and kind != "nested":
            others.add((column.id, kind))  # a variant is nested, too
    return FileGroup(own, frozenset(lacks), frozenset(others), frozenset(hive.items()))


def names_in_files(schema: TableSchema, files: FileSet, group: FileGroup) -> TableSchema:
    """The schema with the group's names and kinds, columns in the same order."""
    if group.mapping is None:
        named = by_ids(schema) if group.older else schema
    elif group.mapping == -1:
        named = schema
    else:
        named = by_names(schema, files.mappings[group.mapping])
    if not group.kinds:
        return named
    kinds = dict(group.kinds)
    return TableSchema(tuple(_as_held(column, kinds) for column in named.columns))


def _as_held(column: Column, kinds: Mapping[int, str]) -> Column:
    kind = column.type if column.id is None else kinds.get(column.id, column.type)
    children = tuple(_as_held(child, kinds) for child in column.children)
    return replace(column, type=kind, children=children)


def stored(named: TableSchema, group: FileGroup, *, row_ids: bool) -> StructType:
    """The columns to read, with those of embedded row ids; NULL where a file has none."""
    columns = file_schema(named, ids=group.mapping is None)
    if not row_ids:
        return columns
    if group.mapping is None:
        return columns.add(EMBEDDED_ROW_ID, "long", True, {FIELD_ID: ROW_ID_FIELD})
    return columns.add(EMBEDDED_ROW_ID, "long").add(MAPPED_ROW_ID, "long")


def embedded_row_id(group: FileGroup) -> SparkColumn:
    if group.mapping is None:
        return fn.col(EMBEDDED_ROW_ID)
    names = (EMBEDDED_ROW_ID, quoted(MAPPED_ROW_ID))
    return fn.coalesce(*(fn.col(name) for name in names)).alias(EMBEDDED_ROW_ID)


def values(
    named: TableSchema, schema: TableSchema, group: FileGroup
) -> tuple[bool, list[SparkColumn | str]]:
    """The table's columns from the stored ones, and whether none needs a conversion."""
    hive = dict(group.hive)
    pairs = list(zip(named.columns, schema.columns, strict=True))
    as_read = [new.id not in hive and is_as_read(old, new, group.lacks) for old, new in pairs]
    columns: list[SparkColumn | str] = [
        quoted(new.name) if plain else _value(old, new, group, hive)
        for plain, (old, new) in zip(as_read, pairs, strict=True)
    ]
    return all(as_read), columns


def _value(old: Column, new: Column, group: FileGroup, hive: Mapping[int, str]) -> SparkColumn:
    """The value of column ``new``, whose name in the files is ``old.name``."""
    name = None if new.id is None else hive.get(new.id)
    if name is not None:
        return in_path(name, new).alias(new.name)
    return from_old(quoted(old.name), old, new, group.lacks).alias(new.name)


_NULL = ("__HIVE_DEFAULT_PARTITION__", "NULL")  # letter case aside
_TYPES = frozenset(
    {"int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"}
    | {"boolean", "float32", "float64", "decimal", "varchar", "json", "date"}
    | {"timestamp", "timestamp_s", "timestamp_ms", "timestamptz"}
)


def in_path(name: str, column: Column) -> SparkColumn:
    """The value of ``column``, called ``name`` in the path of the file that the row is from; or the
    value in ``name`` itself (`NameMapping`).

    Raises UnsupportedFeature for types that the two engines read from text differently.
    """
    if base_type(column.type) not in _TYPES:
        raise UnsupportedFeature(
            f"column {column.name!r} is {column.type}, and is only in the paths of its files",
            hint="read it with DuckDB, or rewrite the files there",
            data={"column": column.name, "type": column.type},
        )
    if name.startswith("="):
        return fn.lit(name[1:] or None).cast(spark_type(column))
    path = _unescaped(fn.col("_metadata.file_path"))
    pattern = f"(?i)(?:^|.*/){re.escape(name)}=([^/]*)/.*"
    text = _unescaped(fn.regexp_extract(path, pattern, 1))
    return fn.when(~fn.upper(text).isin(*_NULL), text).cast(spark_type(column))


def _unescaped(text: SparkColumn) -> SparkColumn:
    """Unescape a path, in which a plus is a plus; Spark's function would make it a space."""
    return fn.url_decode(fn.replace(text, fn.lit("+"), fn.lit("%2B")))


# Names that a mapping gives to the children of lists and maps, which have none in a schema.
_UNNAMED = {"list": ("list",), "map": ("key", "value")}


def in_force(
    mapping: NameMapping | None,
    schema: TableSchema,
    path: str,
    *,
    has_ids: bool,
    names: Iterable[str],
) -> NameMapping | None:
    """The mapping by which the file at ``path`` is read, whose top-level columns are ``names``.

    Raises UnsupportedFeature where the names that columns had are no longer on record.
    """
    if mapping is None or not mapping.unless_ids:
        return mapping
    if has_ids:
        return None
    known = {fold(field[0]) for field in mapping.fields}
    unknown = [name for name in names if fold(name) not in known]
    mapped = set(mapping.fields.values())
    if unknown and any(column.id not in mapped for column in schema.columns):
        raise UnsupportedFeature(
            f"{path} has no field ids and no name mapping, and which column its {unknown[0]!r} is "
            "is no longer on record",
            hint="read the table with DuckDB, and rewrite it there",
            data={"path": path, "columns": unknown},
        )
    return mapping


def by_names(schema: TableSchema, mapping: NameMapping) -> TableSchema:
    """``schema`` with the names that its columns have in the files of this mapping.

    A column that the mapping does not know is not in those files: it gets a name that no file has,
    so that it reads as NULL.
    """
    sources = {field_id: path for path, field_id in mapping.fields.items()}
    return TableSchema(tuple(_renamed(column, sources) for column in schema.columns))


def by_ids(schema: TableSchema) -> TableSchema:
    """``schema`` with names that no file has, so that Spark finds its fields by their ids alone.

    Spark finds values by id, but takes the type from the requested field with the file's name,
    which may be another column since a rename (measured, 4.3).
    """
    return TableSchema(tuple(_by_id(column) for column in schema.columns))


def _by_id(column: Column) -> Column:
    children = tuple(_by_id(child) for child in column.children)
    if column.type in _UNNAMED:
        inside = zip(children, column.children, strict=True)
        children = tuple(replace(child, name=old.name) for child, old in inside)
    return replace(column, name=f"_penstock_{column.id}", children=children)


def folded_paths(mapping: NameMapping) -> Mapping[tuple[str, ...], int]:
    """The ids of the mapping's fields by their paths, letter case aside."""
    return {
        tuple(fold(name) for name in path): field_id for path, field_id in mapping.fields.items()
    }


def _renamed(column: Column, sources: dict[int, tuple[str, ...]]) -> Column:
    path = None if column.id is None else sources.get(column.id)
    name = path[-1] if path else f"_penstock_absent_{column.id}"
    if column.type in _UNNAMED:
        children = tuple(_inside(child, sources) for child in column.children)
    else:
        children = tuple(_renamed(child, sources) for child in column.children)
    return replace(column, name=name, children=children)


def _inside(child: Column, sources: dict[int, tuple[str, ...]]) -> Column:
    """An element, key or value: Spark finds it by position; only its inner fields have names."""
    renamed = _renamed(child, sources)
    return replace(renamed, name=child.name)
