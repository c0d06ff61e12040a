"""Positions of rows to delete, written as delete files; the data files are never rewritten.

A delete file is cumulative: it holds what the one in force deletes as well, and takes its place.
A data file that loses its last row ends whole and needs none. Few positions are written here, many
by Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from penstock.errors import UnsupportedFeature
from penstock.lake.candidate import live_rows
from penstock.lake.delete_files import deleted_positions
from penstock.lake.failures import explained
from penstock.lake.files import DataFile, DeleteFile
from penstock.lake.footers import describe, list_files, remove_directory
from penstock.lake.naming import new_uuid7
from penstock.lake.scan import FILE, POSITION, Scan
from penstock.lake.schema import TableSchema
from penstock.lake.types import FIELD_ID

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PATH_FIELD, POSITION_FIELD = 2147483646, 2147483645
_NUMBER = "_penstock_number"
# Collected as Arrow, a position takes some 20 bytes, and no shuffle.
_COLLECTED_ROWS = 2_000_000
_ARROW_FIELD_ID = "PARQUET:field_id"
_SCHEMA = pa.schema(
    [
        pa.field("file_path", pa.string(), metadata={_ARROW_FIELD_ID: str(PATH_FIELD)}),
        pa.field("pos", pa.int64(), metadata={_ARROW_FIELD_ID: str(POSITION_FIELD)}),
    ]
)


@dataclass(frozen=True, slots=True)
class Removed:
    """``files`` end whole; ``deletes`` are new delete files by data file id; ``rows`` go in all."""

    files: tuple[DataFile, ...] = ()
    deletes: Mapping[int, DeleteFile] = field(default_factory=dict)
    rows: int = 0
    directory: str | None = None

    def and_files(self, files: Sequence[DataFile]) -> Removed:
        """These whole files removed too."""
        return replace(self, files=(*self.files, *files), rows=self.rows + live_rows(files))


def remove(
    spark: SparkSession,
    source: Scan,
    found: DataFrame,
    counts: Mapping[str, int],
    table_path: str,
) -> Removed:
    """Delete the rows ``found`` (FILE and POSITION, each once) from the files of ``source``.

    ``counts`` is the number of rows found by FILE. Raises UnsupportedFeature for rows of files
    that the same transaction staged: they are in no catalog yet.
    """
    keys = source.keys()
    files = {keys.key(f.path): f for f in source.files.files}
    hit = {key: files[key] for key in counts}
    if any(file.id is None for file in hit.values()):
        raise UnsupportedFeature(
            f"rows of {source.table} that this transaction itself wrote cannot be changed again",
            hint="commit in between, or stage each table's change in one call",
            data={"table": source.table},
        )
    whole = tuple(f for key, f in hit.items() if counts[key] == live_rows([f]))
    partial = [f for key, f in hit.items() if counts[key] < live_rows([f])]
    rows = sum(counts.values())
    if not partial:
        return Removed(whole, {}, rows)
    before = [file for file in partial if file.delete is not None]
    if before:
        old = deleted_positions(
            spark, before, keys, (FILE, POSITION), snapshot_id=source.snapshot_id
        )
        found = found.unionByName(old)
    total = rows + sum(f.delete.delete_count for f in before if f.delete)
    directory = f"{table_path}{new_uuid7()}"
    try:
        with explained(table=source.table):
            _writer(total, directory)(spark, source, found, partial, directory)
        return Removed(whole, _described(directory, partial), rows, directory)
    except BaseException:
        remove_directory(directory)
        raise


_Writer = Callable[["SparkSession", Scan, "DataFrame", Sequence[DataFile], str], None]


def _writer(rows: int, directory: str) -> _Writer:
    return _write_here if rows <= _COLLECTED_ROWS and "://" not in directory else _write_by_spark


def _write_here(
    spark: SparkSession,  # noqa: ARG001 - as `_write_by_spark`
    source: Scan,
    found: DataFrame,
    partial: Sequence[DataFile],
    directory: str,
) -> None:
    keys = source.keys()
    places = found.select(FILE, POSITION).toArrow()
    for number, file in enumerate(partial):
        mine = places.filter(pc.equal(places[FILE], keys.key(file.path)))[POSITION]
        positions = mine.take(pc.sort_indices(mine)).combine_chunks()
        paths = pa.repeat(pa.scalar(file.path), len(positions))
        folder = Path(directory) / f"{_NUMBER}={number}"
        folder.mkdir(parents=True)
        table = pa.table([paths, positions], schema=_SCHEMA)
        pq.write_table(table, folder / "deletes.parquet", compression="snappy")


def _write_by_spark(
    spark: SparkSession,
    source: Scan,
    found: DataFrame,
    partial: Sequence[DataFile],
    directory: str,
) -> None:
    """One file of sorted positions per data file, in a directory named by its number."""
    from pyspark.sql import functions as fn

    keys = source.keys()
    owners = pa.table(
        {
            FILE: pa.array([keys.key(file.path) for file in partial], pa.string()),
            _NUMBER: pa.array(range(len(partial)), pa.int32()),
            "_penstock_path": pa.array([file.path for file in partial], pa.string()),
        }
    )
    joined = found.join(fn.broadcast(spark.createDataFrame(owners)), FILE)
    # Spark must not know the columns as never NULL: the format has them optional.
    shown = fn.spark_partition_id() >= 0
    path = fn.when(shown, fn.col("_penstock_path"))
    rows = (
        joined.repartition(_NUMBER)
        .sortWithinPartitions(_NUMBER, POSITION)
        .select(
            _NUMBER,
            path.alias("file_path", metadata={FIELD_ID: PATH_FIELD}),
            fn.when(shown, fn.col(POSITION)).alias("pos", metadata={FIELD_ID: POSITION_FIELD}),
        )
    )
    options = {"mapreduce.fileoutputcommitter.marksuccessfuljobs": "false"}
    rows.write.mode("append").options(**options).partitionBy(_NUMBER).parquet(directory)


def _described(directory: str, partial: Sequence[DataFile]) -> dict[int, DeleteFile]:
    """The delete files by data file id. AQE never splits one data file's positions."""
    found: dict[int, DeleteFile] = {}
    for file in describe(list_files(directory), TableSchema(())):
        number = int(file.path.rsplit("/", 2)[1].removeprefix(f"{_NUMBER}="))
        data_file_id = partial[number].id
        assert data_file_id is not None, "checked by the caller"
        assert data_file_id not in found, "two delete files for one data file"
        found[data_file_id] = DeleteFile(
            path=file.path,
            delete_count=file.record_count,
            size_bytes=file.size_bytes,
            footer_size=file.footer_size,
        )
    return found
