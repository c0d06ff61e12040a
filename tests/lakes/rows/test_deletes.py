"""Positions written as delete files, by both writers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from penstock.lakes.candidate.state import Removed
from penstock.lakes.lake import Lake
from penstock.lakes.reading import scan
from penstock.lakes.rows.deletes import remove
from tests.lakes.conftest import Rows, table_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

EVERY_WRITER = pytest.mark.parametrize("collect", [1_000, 0], ids=["here", "spark"])


def source_of(lake: Lake) -> scan.Scan:
    at = lake.catalog.latest()
    info = lake.table("t").info()
    return scan.Scan("main.t", info.schema, lake.catalog.files(info, at.id), at.id)


def delete(spark: SparkSession, lake: Lake, where: str, collect: int) -> tuple[Removed, scan.Scan]:
    source = source_of(lake)
    found = scan.read(spark, source, positions=True).where(where)
    counts = {row[0]: row[1] for row in found.groupBy(scan.FILE).count().collect()}
    places = found.select(scan.FILE, scan.POSITION)
    path = lake.table("t").info().path
    return remove(spark, source, places, counts, path, collect=collect), source


def commit(lake: Lake, removed: Removed) -> None:
    with lake.transaction() as tx:
        table = tx.table("t")
        table.stage(table.candidate.without(removed.files, removed.deletes))


@EVERY_WRITER
def test_positions_are_sorted_and_name_their_file(
    spark: SparkSession, lake: Lake, collect: int
) -> None:
    lake.table("t").append(spark.range(0, 100, 1, 1))
    removed, source = delete(spark, lake, "id IN (50, 3, 7)", collect)
    (file,) = source.files.files
    (found,) = removed.deletes.values()
    assert (removed.rows, found.delete_count, found.partial_max) == (3, 3, None)
    content = pq.ParquetFile(found.path)
    assert content.read(["file_path", "pos"]).to_pylist() == [
        {"file_path": file.path, "pos": position} for position in (3, 7, 50)
    ]
    ids = [content.schema_arrow.field(at).metadata[b"PARQUET:field_id"] for at in (0, 1)]
    assert ids == [b"2147483646", b"2147483645"]
    assert "required" not in str(content.schema).split("{", 1)[1]


def test_positions_are_written_as_differences(spark: SparkSession, lake: Lake) -> None:
    lake.table("t").append(spark.range(0, 100_000, 1, 1))
    removed, _ = delete(spark, lake, "id % 10 = 3", 1_000_000)
    (found,) = removed.deletes.values()
    assert found.size_bytes < 0.5 * found.delete_count
    commit(lake, removed)
    left = lake.table("t").to_df().toArrow()["id"].to_pylist()
    assert left == [at for at in range(100_000) if at % 10 != 3]


@EVERY_WRITER
def test_a_delete_file_holds_what_the_one_before_does(
    spark: SparkSession, lake: Lake, collect: int
) -> None:
    lake.table("t").append(spark.range(0, 10, 1, 1))
    commit(lake, delete(spark, lake, "id = 4", collect)[0])
    removed, _ = delete(spark, lake, "id = 2", collect)
    (found,) = removed.deletes.values()
    assert (found.delete_count, found.begin_snapshot, found.partial_max) == (2, 2, 3)
    rows = pq.read_table(found.path).to_pylist()
    assert [(r["pos"], r["_ducklake_internal_snapshot_id"]) for r in rows] == [(2, 3), (4, 2)]
    commit(lake, removed)
    assert [len(table_of(lake.table("t").to_df(version=v))) for v in (1, 2, 3)] == [10, 9, 8]


@EVERY_WRITER
def test_files_without_rows_left_end_whole(spark: SparkSession, lake: Lake, collect: int) -> None:
    for start in (0, 10):
        lake.table("t").append(spark.range(start, start + 4, 1, 1))
    commit(lake, delete(spark, lake, "id = 1", collect)[0])
    removed, _ = delete(spark, lake, "id < 11", collect)
    assert [file.record_count for file in removed.files] == [4]
    assert (len(removed.deletes), removed.rows) == (1, 4)
    commit(lake, removed)
    assert table_of(lake.table("t").to_df()) == [(11,), (12,), (13,)]


def test_nothing_found(spark: SparkSession, lake: Lake, rows: Rows) -> None:
    lake.table("t").append(rows("id INT", [(1,)]))
    assert delete(spark, lake, "id = 5", 10)[0] == Removed()
