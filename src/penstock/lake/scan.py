"""Files, deletes and mappings of a table as one DataFrame.

Files are read in groups: those with deletes apart from those without, which then cost what a
plain ``spark.read.parquet`` costs; those with field ids apart from those registered under a name
mapping; those that lack a column with an initial default apart from those that have it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING

from penstock.lake.delete_files import deleted_positions
from penstock.lake.failures import explained
from penstock.lake.file_keys import FileKeys
from penstock.lake.files import DataFile, FileSet
from penstock.lake.footers import missing_columns
from penstock.lake.mapping import by_names, unmapped
from penstock.lake.parquet import read_files
from penstock.lake.schema import Column, TableSchema
from penstock.lake.spark_types import file_schema, from_files, is_converted, quoted, spark_type
from penstock.lake.types import FIELD_ID

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

# Columns of a scan with positions; no user column can have these names on DuckDB's side either.
FILE = "_penstock_file"
POSITION = "_penstock_position"
EMBEDDED_ROW_ID = "_ducklake_internal_row_id"
ROW_ID = "_penstock_row_id"
ROW_ID_FIELD = 2147483540
# Under a name mapping the real extension looks for the field's number as the column's name.
MAPPED_ROW_ID = str(ROW_ID_FIELD)

_POSITIONS = (FILE, POSITION, EMBEDDED_ROW_ID)


@dataclass(frozen=True, slots=True)
class Scan:
    """What to read: the files of ``table`` with the columns of ``schema``.

    ``snapshot_id`` bounds the deletes that a delete file with several snapshots' positions holds;
    ``None`` takes all.
    """

    table: str
    schema: TableSchema
    files: FileSet
    snapshot_id: int | None = None

    def keys(self) -> FileKeys:
        return FileKeys.of(file.path for file in self.files.files)


@dataclass(frozen=True, slots=True)
class _Group:
    """Files that are read alike. ``mapping`` -1 is the table's own names, ``None`` field ids."""

    deletes: bool
    mapping: int | None
    lacks: frozenset[int]


def read(spark: SparkSession, scan: Scan, *, positions: bool = False) -> DataFrame:
    """The rows of a scan; with ``positions`` also FILE, POSITION and EMBEDDED_ROW_ID.

    FILE is a key of ``scan.keys()``, POSITION the row's place in its file from 0.
    """
    if not scan.files.files:
        return _empty(spark, scan.schema, positions)
    with explained(table=scan.table, snapshot_id=scan.snapshot_id):
        parts = [
            _read_group(spark, scan, group, files, positions)
            for group, files in _groups(scan).items()
        ]
        return reduce(lambda a, b: a.union(b), parts)


def with_row_ids(spark: SparkSession, scan: Scan, df: DataFrame) -> DataFrame:
    """``df``, a scan with positions (or a selection of one), with ROW_ID added.

    A row's id is the one embedded in its file, else the file's first id plus its position.
    """
    import pyarrow as pa
    from pyspark.sql import functions as fn

    keys = scan.keys()
    starts = {keys.key(f.path): f.row_id_start for f in scan.files.files}
    table = pa.table(
        {
            FILE: pa.array(list(starts), pa.string()),
            "_penstock_start": pa.array(list(starts.values()), pa.int64()),
        }
    )
    joined = df.join(fn.broadcast(spark.createDataFrame(table)), FILE, "left")
    row_id = fn.coalesce(fn.col(EMBEDDED_ROW_ID), fn.col("_penstock_start") + fn.col(POSITION))
    return joined.withColumn(ROW_ID, row_id).drop("_penstock_start")


def _groups(scan: Scan) -> Mapping[_Group, list[DataFile]]:
    lacking = _lacking(scan)
    groups: dict[_Group, list[DataFile]] = {}
    for file in scan.files.files:
        mapping = -1 if file.mapping_id is None and file.uses_mapping else file.mapping_id
        group = _Group(file.delete is not None, mapping, lacking.get(file.path, frozenset()))
        groups.setdefault(group, []).append(file)
    return groups


def _lacking(scan: Scan) -> Mapping[str, frozenset[int]]:
    """For each file, the columns with an initial default that are younger than it."""
    defaulted = [c for c in scan.schema.columns if c.initial_default is not None]
    if not defaulted:
        return {}
    by_id = [f.path for f in scan.files.files if f.mapping_id is None and not f.uses_mapping]
    mapped = {f.path: f.mapping_id for f in scan.files.files if f.mapping_id is not None}
    return {
        **missing_columns(by_id, defaulted, table=scan.table),
        **{path: unmapped(scan.files.mappings[i], defaulted) for path, i in mapped.items()},
    }


def _read_group(
    spark: SparkSession,
    scan: Scan,
    group: _Group,
    files: Sequence[DataFile],
    positions: bool,
) -> DataFrame:

    schema = _names_in_files(scan, group)
    stored = file_schema(schema, ids=group.mapping is None)
    if positions:
        stored = _with_row_ids_of_files(stored, group)
    paths = [file.path for file in files]
    df = read_files(spark, stored, paths, table=scan.table, snapshot_id=scan.snapshot_id)
    pairs = list(zip(schema.columns, scan.schema.columns, strict=True))
    as_read = [_is_as_read(old, new, group) for old, new in pairs]
    if all(as_read) and not positions and not group.deletes:
        return df
    values = [
        quoted(new.name) if plain else _value(old, new, group)
        for plain, (old, new) in zip(as_read, pairs, strict=True)
    ]
    if not positions and not group.deletes:
        return df.select(*values)
    keys = scan.keys()
    position = df.metadataColumn("_metadata")["row_index"]
    place = [keys.column(df).alias(FILE), position.alias(POSITION)]
    embedded = [_embedded_row_id(group)] if positions else []
    df = df.select(*values, *place, *embedded)
    if group.deletes:
        deleted = deleted_positions(
            spark, files, keys, (FILE, POSITION), snapshot_id=scan.snapshot_id
        )
        df = df.join(deleted, [FILE, POSITION], "left_anti")
    names = (*scan.schema.names, *(_POSITIONS if positions else ()))
    return df.select(*(quoted(name) for name in names))


def _with_row_ids_of_files(stored: StructType, group: _Group) -> StructType:
    """The columns to read with the one of row ids; NULL where a file has none."""
    if group.mapping is None:
        return stored.add(EMBEDDED_ROW_ID, "long", True, {FIELD_ID: ROW_ID_FIELD})
    return stored.add(EMBEDDED_ROW_ID, "long").add(MAPPED_ROW_ID, "long")


def _embedded_row_id(group: _Group) -> SparkColumn:
    from pyspark.sql import functions as fn

    if group.mapping is None:
        return fn.col(EMBEDDED_ROW_ID)
    names = (EMBEDDED_ROW_ID, quoted(MAPPED_ROW_ID))
    return fn.coalesce(*(fn.col(name) for name in names)).alias(EMBEDDED_ROW_ID)


def _names_in_files(scan: Scan, group: _Group) -> TableSchema:
    """The schema with the names that the group's files use, columns in the same order."""
    if group.mapping is None or group.mapping == -1:
        return scan.schema
    return by_names(scan.schema, scan.files.mappings[group.mapping])


def _is_as_read(old: Column, new: Column, group: _Group) -> bool:
    """Whether the file's value is the column's: an expression less to make, which takes time."""
    return new.id not in group.lacks and old == new and not is_converted(new)


def _value(old: Column, new: Column, group: _Group) -> SparkColumn:
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


def _empty(spark: SparkSession, schema: TableSchema, positions: bool) -> DataFrame:
    from pyspark.sql import functions as fn

    values = [fn.lit(None).cast(spark_type(c)).alias(c.name) for c in schema.columns]
    if positions:
        kinds = {FILE: "string", POSITION: "long", EMBEDDED_ROW_ID: "long"}
        values += [fn.lit(None).cast(kind).alias(name) for name, kind in kinds.items()]
    return spark.range(0).select(*values)
