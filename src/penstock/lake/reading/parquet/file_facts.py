"""Facts of the catalog about a file: its key in a scan, its first row id, its snapshots."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.lake.format.files import DataFile

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame, SparkSession


_START, _FIRST = "_penstock_start", "_penstock_first"
_SNAPSHOTS, _ENDS = "_penstock_snapshots", "_penstock_ends"


def with_facts(
    spark: SparkSession, files: Sequence[DataFile], keys: FileKeys, df: DataFrame, column: str
) -> DataFrame:
    """``df``, rows of these files with their keys in ``column``, with what the others here need."""
    import pyarrow as pa
    from pyspark.sql import functions as fn

    counts = [file.partial.counts if file.partial else () for file in files]
    table = pa.table(
        {
            column: pa.array([keys.key(file.path) for file in files], pa.string()),
            _START: pa.array([file.row_id_start for file in files], pa.int64()),
            _FIRST: pa.array([file.begin_snapshot for file in files], pa.int64()),
            _SNAPSHOTS: pa.array([[s for s, _ in c] or None for c in counts], pa.list_(pa.int64())),
            _ENDS: pa.array([[n for _, n in c] or None for c in counts], pa.list_(pa.int64())),
        }
    )
    return df.join(fn.broadcast(spark.createDataFrame(table)), column, "left")


def with_row_id(df: DataFrame, name: str, embedded: str, position: str) -> DataFrame:
    """With the row's id as ``name``: the one in the file, else the file's first plus the place.

    To be asked for last: what `with_facts` added goes.
    """
    from pyspark.sql import functions as fn

    row_id = fn.expr(f"coalesce({embedded}, {_START} + {position})")
    return df.withColumn(name, row_id).drop(_START, _FIRST, _SNAPSHOTS, _ENDS)


def with_begin(df: DataFrame, name: str, embedded: str, position: str) -> DataFrame:
    """With the snapshot that made the row as ``name``: the one in the file, else by its place."""
    from pyspark.sql import functions as fn

    return df.withColumn(name, fn.coalesce(embedded, _by_place(position), fn.col(_FIRST)))


def within_counts(df: DataFrame, position: str, snapshot_id: int | None) -> DataFrame:
    """Only the rows that were there at the snapshot; of a file without counts, all."""
    from pyspark.sql import functions as fn

    return df.where(fn.coalesce(_by_place(position) <= fn.lit(snapshot_id), fn.lit(True)))


def _by_place(position: str) -> SparkColumn:
    """The snapshot of the part of the file that the row is in; NULL where there are no counts."""
    from pyspark.sql import functions as fn

    before = fn.size(fn.filter(_ENDS, lambda end: end <= fn.col(position)))
    return fn.element_at(fn.col(_SNAPSHOTS), before + 1)


_SCHEME = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]*:/+")


@dataclass(frozen=True, slots=True)
class FileKeys:
    """Keys of files: their names where these differ, else their whole paths."""

    by_name: bool

    @classmethod
    def of(cls, paths: Iterable[str]) -> FileKeys:
        names = [_name(path) for path in paths]
        return cls(by_name=len(set(names)) == len(names))

    def key(self, path: str) -> str:
        return _name(path) if self.by_name else "/" + _SCHEME.sub("/", path).lstrip("/")

    def column(self, df: DataFrame) -> SparkColumn:
        """The key of the file that a row of ``df`` comes from, a frame just read from Parquet."""
        from pyspark.sql import functions as fn

        metadata = df.metadataColumn("_metadata")  # also where a table has a column of this name
        if self.by_name:
            return metadata["file_name"]
        # Spark gives a URI. url_decode takes + for a space, as forms do and paths do not.
        path = fn.replace(metadata["file_path"], fn.lit("+"), fn.lit("%2B"))
        return fn.regexp_replace(fn.url_decode(path), "^[A-Za-z][A-Za-z0-9+.-]*:/+", "/")


def _name(path: str) -> str:
    return path.rsplit("/", 1)[-1]
