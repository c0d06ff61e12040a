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
# Above this many positions Spark decides itself how to join; each takes some 100 bytes broadcast.
_BROADCAST_ROWS = 5_000_000


def deleted_positions(
    spark: SparkSession,
    files: Sequence[DataFile],
    keys: FileKeys,
    columns: tuple[str, str],
    *,
    snapshot_id: int | None = None,
) -> DataFrame:
    """Key and position, named ``columns``, of the rows that the files' delete files delete.

    ``snapshot_id`` leaves out what a delete file of several snapshots deletes later.

    Which data file a delete file belongs to is what the catalog says, never the path text inside,
    which may be relative, moved or missing.
    """
    import pyarrow as pa
    from pyspark.sql import functions as fn
    from pyspark.sql.types import StructType

    pairs = {f.delete.path: keys.key(f.path) for f in files if f.delete is not None}
    delete_keys = FileKeys.of(pairs)
    partial = snapshot_id is not None and any(
        f.delete is not None and (f.delete.partial_max or -1) > snapshot_id for f in files
    )
    schema = StructType().add("pos", "long")
    if partial:
        schema = schema.add(SNAPSHOT_ID, "long")
    rows = read_files(spark, schema, list(pairs))
    if partial:
        since = fn.col(SNAPSHOT_ID)
        rows = rows.where(since.isNull() | (since <= fn.lit(snapshot_id)))
    rows = rows.select(delete_keys.column(rows).alias("_penstock_delete"), fn.col("pos"))
    owners = pa.table(
        {
            "_penstock_delete": pa.array([delete_keys.key(path) for path in pairs], pa.string()),
            columns[0]: pa.array(list(pairs.values()), pa.string()),
        }
    )
    owned = rows.join(fn.broadcast(spark.createDataFrame(owners)), "_penstock_delete")
    found = owned.select(columns[0], fn.col("pos").alias(columns[1]))
    total = sum(f.delete.delete_count for f in files if f.delete is not None)
    return fn.broadcast(found) if total <= _BROADCAST_ROWS else found
