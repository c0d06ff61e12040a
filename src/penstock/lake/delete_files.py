"""Delete files as a DataFrame: the positions that they delete from their data files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from penstock.lake.file_keys import FileKeys
from penstock.lake.files import DataFile
from penstock.lake.parquet import read_files

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SNAPSHOT_ID = "_ducklake_internal_snapshot_id"
_DELETE, _BEGIN = "_penstock_delete", "_penstock_begin"
# Above this many positions Spark decides itself how to join; each takes some 100 bytes broadcast.
_BROADCAST_ROWS = 5_000_000


def deleted_positions(
    spark: SparkSession,
    files: Sequence[DataFile],
    keys: FileKeys,
    columns: tuple[str, str],
    *,
    snapshot_id: int | None = None,
    since: str | None = None,
) -> DataFrame:
    """Key and position, named ``columns``, of the rows that the files' delete files delete.

    ``snapshot_id`` leaves out what a delete file of several snapshots deletes later. ``since``
    names a further column: the snapshot that deleted the row.

    Which data file a delete file belongs to is what the catalog says, never the path text inside,
    which may be relative, moved or missing.
    """
    import pyarrow as pa
    from pyspark.sql import functions as fn
    from pyspark.sql.types import StructType

    owners = {f.delete.path: (keys.key(f.path), f.delete) for f in files if f.delete is not None}
    delete_keys = FileKeys.of(owners)
    partial = snapshot_id is not None and any(
        (delete.partial_max or -1) > snapshot_id for _, delete in owners.values()
    )
    schema = StructType().add("pos", "long")
    if partial or since:
        schema = schema.add(SNAPSHOT_ID, "long")
    rows = read_files(spark, schema, list(owners))
    if partial:
        told = fn.col(SNAPSHOT_ID)
        rows = rows.where(told.isNull() | (told <= fn.lit(snapshot_id)))
    rows = rows.withColumn(_DELETE, delete_keys.column(rows))
    table = pa.table(
        {
            _DELETE: pa.array([delete_keys.key(path) for path in owners], pa.string()),
            columns[0]: pa.array([key for key, _ in owners.values()], pa.string()),
            _BEGIN: pa.array([delete.begin_snapshot for _, delete in owners.values()], pa.int64()),
        }
    )
    owned = rows.join(fn.broadcast(spark.createDataFrame(table)), _DELETE)
    picked = [fn.col(columns[0]), fn.col("pos").alias(columns[1])]
    if since:
        picked.append(fn.coalesce(fn.col(SNAPSHOT_ID), fn.col(_BEGIN)).alias(since))
    found = owned.select(*picked)
    total = sum(delete.delete_count for _, delete in owners.values())
    return fn.broadcast(found) if total <= _BROADCAST_ROWS else found
