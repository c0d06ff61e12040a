"""Files, deletes and mappings of a table as one DataFrame.

Files without deletes are read apart from those with, and cost what a plain ``spark.read.parquet``
of them costs; what else sets files apart, `file_columns` says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

from penstock.lake.delete_files import deleted_positions
from penstock.lake.failures import explained
from penstock.lake.file_columns import (
    EMBEDDED_ROW_ID,
    FileGroup,
    embedded_row_id,
    grouped,
    names_in_files,
    stored,
    values,
)
from penstock.lake.file_keys import FileKeys
from penstock.lake.files import DataFile, FileSet
from penstock.lake.parquet import read_files
from penstock.lake.schema import TableSchema
from penstock.lake.spark_types import quoted, spark_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Columns of a scan with positions; no user column can have these names on DuckDB's side either.
FILE = "_penstock_file"
POSITION = "_penstock_position"
ROW_ID = "_penstock_row_id"

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


def read(spark: SparkSession, scan: Scan, *, positions: bool = False) -> DataFrame:
    """The rows of a scan; with ``positions`` also FILE, POSITION and EMBEDDED_ROW_ID.

    FILE is a key of ``scan.keys()``, POSITION the row's place in its file from 0.
    """
    if not scan.files.files:
        return _empty(spark, scan.schema, positions)
    with explained(table=scan.table, snapshot_id=scan.snapshot_id):
        parts = [
            _read_group(spark, scan, group, files, positions)
            for group, files in grouped(scan.table, scan.schema, scan.files).items()
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


def _read_group(
    spark: SparkSession,
    scan: Scan,
    group: FileGroup,
    files: Sequence[DataFile],
    positions: bool,
) -> DataFrame:
    named = names_in_files(scan.schema, scan.files, group)
    paths = [file.path for file in files]
    columns = stored(named, group, row_ids=positions)
    df = read_files(spark, columns, paths, table=scan.table, snapshot_id=scan.snapshot_id)
    as_they_stand, found = values(named, scan.schema, group)
    if not positions and not group.deletes:
        return df if as_they_stand else df.select(*found)
    keys = scan.keys()
    position = df.metadataColumn("_metadata")["row_index"]
    place = [keys.column(df).alias(FILE), position.alias(POSITION)]
    embedded = [embedded_row_id(group)] if positions else []
    df = df.select(*found, *place, *embedded)
    if group.deletes:
        deleted = deleted_positions(
            spark, files, keys, (FILE, POSITION), snapshot_id=scan.snapshot_id
        )
        df = df.join(deleted, [FILE, POSITION], "left_anti")
    names = (*scan.schema.names, *(_POSITIONS if positions else ()))
    return df.select(*(quoted(name) for name in names))


def _empty(spark: SparkSession, schema: TableSchema, positions: bool) -> DataFrame:
    from pyspark.sql import functions as fn

    values = [fn.lit(None).cast(spark_type(c)).alias(c.name) for c in schema.columns]
    if positions:
        kinds = {FILE: "string", POSITION: "long", EMBEDDED_ROW_ID: "long"}
        values += [fn.lit(None).cast(kind).alias(name) for name, kind in kinds.items()]
    return spark.range(0).select(*values)
