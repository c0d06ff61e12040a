"""What a file's columns are to the table's: their names, their values, what they lack.

Files are grouped by how they are read (`FileGroup`): those with deletes apart from those without,
those with field ids apart from those registered under a name mapping, those that lack a column
with an initial default apart from those that have it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from penstock.lake.files import DataFile, FileSet
from penstock.lake.footers import missing_columns
from penstock.lake.mapping import by_names, unmapped
from penstock.lake.schema import Column, TableSchema
from penstock.lake.spark_types import file_schema, from_files, is_converted, quoted, spark_type
from penstock.lake.types import FIELD_ID

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql.types import StructType

EMBEDDED_ROW_ID = "_ducklake_internal_row_id"
ROW_ID_FIELD = 2147483540
# Under a name mapping the real extension looks for the field's number as the column's name.
MAPPED_ROW_ID = str(ROW_ID_FIELD)


@dataclass(frozen=True, slots=True)
class FileGroup:
    """Files that are read alike. ``mapping`` -1 is the table's own names, ``None`` field ids."""

    deletes: bool
    mapping: int | None
    lacks: frozenset[int]


def grouped(table: str, schema: TableSchema, files: FileSet) -> Mapping[FileGroup, list[DataFile]]:
    """The files of ``table`` by how they are read."""
    lacking = _lacking(table, schema, files)
    groups: dict[FileGroup, list[DataFile]] = {}
    for file in files.files:
        mapping = -1 if file.mapping_id is None and file.uses_mapping else file.mapping_id
        group = FileGroup(file.delete is not None, mapping, lacking.get(file.path, frozenset()))
        groups.setdefault(group, []).append(file)
    return groups


def _lacking(table: str, schema: TableSchema, files: FileSet) -> Mapping[str, frozenset[int]]:
    """For each file, the columns with an initial default that are younger than it."""
    defaulted = [c for c in schema.columns if c.initial_default is not None]
    if not defaulted:
        return {}
    by_id = [f.path for f in files.files if f.mapping_id is None and not f.uses_mapping]
    mapped = {f.path: f.mapping_id for f in files.files if f.mapping_id is not None}
    return {
        **missing_columns(by_id, defaulted, table=table),
        **{path: unmapped(files.mappings[i], defaulted) for path, i in mapped.items()},
    }


def names_in_files(schema: TableSchema, files: FileSet, group: FileGroup) -> TableSchema:
    """The schema with the names that the group's files use, columns in the same order."""
    if group.mapping is None or group.mapping == -1:
        return schema
    return by_names(schema, files.mappings[group.mapping])


def stored(named: TableSchema, group: FileGroup, *, row_ids: bool) -> StructType:
    """The columns to read, with those of embedded row ids; NULL where a file has none."""
    found = file_schema(named, ids=group.mapping is None)
    if not row_ids:
        return found
    if group.mapping is None:
        return found.add(EMBEDDED_ROW_ID, "long", True, {FIELD_ID: ROW_ID_FIELD})
    return found.add(EMBEDDED_ROW_ID, "long").add(MAPPED_ROW_ID, "long")


def embedded_row_id(group: FileGroup) -> SparkColumn:
    from pyspark.sql import functions as fn

    if group.mapping is None:
        return fn.col(EMBEDDED_ROW_ID)
    names = (EMBEDDED_ROW_ID, quoted(MAPPED_ROW_ID))
    return fn.coalesce(*(fn.col(name) for name in names)).alias(EMBEDDED_ROW_ID)


def values(
    named: TableSchema, schema: TableSchema, group: FileGroup
) -> tuple[bool, list[SparkColumn | str]]:
    """The table's columns from the stored ones, and whether they are those as they stand."""
    pairs = list(zip(named.columns, schema.columns, strict=True))
    as_read = [_is_as_read(old, new, group) for old, new in pairs]
    found: list[SparkColumn | str] = [
        quoted(new.name) if plain else _value(old, new, group)
        for plain, (old, new) in zip(as_read, pairs, strict=True)
    ]
    return all(as_read), found


def _is_as_read(old: Column, new: Column, group: FileGroup) -> bool:
    """Whether the file's value is the column's: an expression less to make, which takes time."""
    return new.id not in group.lacks and old == new and not is_converted(new)


def _value(old: Column, new: Column, group: FileGroup) -> SparkColumn:
    """The value of column ``new``, called ``old.name`` in the files."""
    from pyspark.sql import functions as fn

    if new.id in group.lacks:
        value = fn.lit(new.initial_default).cast(spark_type(new))
    else:
        value = from_files(fn.col(quoted(old.name)), old)
        if old != new:  # the names inside differ: Spark casts structs by position
            value = value.cast(spark_type(_without_ids(new)))
    return value.alias(new.name)


def _without_ids(column: Column) -> Column:
    return replace(column, id=None, children=tuple(_without_ids(c) for c in column.children))
