"""Merges of a source that is brought here, against what Spark makes of the same."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from penstock.errors import MergeKeyError
from penstock.lakes.lake import Lake
from penstock.lakes.limits import Limits
from tests.duckdb_process import DuckDBProcess
from tests.lakes.conftest import Rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

SOURCE = (
    "k",
    "date'2013-01-01' + cast(k % 5 AS int) AS d",
    "if(k % 3 = 0, NULL, concat('s', k)) AS s",
    "cast(k / 4 AS decimal(9, 2)) AS m",
    "if(k % 7 = 0, double('NaN'), k / 2) AS v",
    "timestamp_seconds(1357000000 + k) AS t",
)


@pytest.fixture
def limits() -> Limits:
    return Limits(compared_rows=-1, batch_rows=7, sample_rows=3)


def numbers(rows: Rows, first: int, end: int) -> DataFrame:
    return rows("k BIGINT", [(k,) for k in range(first, end)]).selectExpr(*SOURCE)


def filled(lake: Lake, rows: Rows, name: str) -> None:
    """Rows in several files, some with ids of their own, some deleted."""
    table = lake.table(name)
    table.append(numbers(rows, 0, 40).coalesce(1))
    table.append(numbers(rows, 40, 60).coalesce(1))
    table.update({"m": "m + 1"}, "k BETWEEN 30 AND 44")
    table.delete("k % 10 = 3")


def merged(lake: Lake, name: str, df: DataFrame) -> list[Any]:
    """Counts, rows with the ids of those that were there, and the feed of the merge."""
    result = lake.table(name).merge(df, ["k", "d"])
    staged = result.staged
    counts = staged.rows_updated, staged.rows_inserted, staged.rows_deleted, staged.slice_rows
    found = lake.table(name).to_df(row_ids=True).toArrow().to_pylist()
    new = [row["k"] for row in found if row["rowid"] >= 60]
    for row in found:
        row["rowid"] = min(row["rowid"], 60)  # which of the new ones is which is not told
    feed = []
    if result.snapshot is not None:
        changes = lake.table(name).changes(result.snapshot.id, result.snapshot.id)
        feed = [(row["change_type"], row["k"], str(row["m"])) for row in changes.collect()]
    return [counts, sorted(map(str, found)), sorted(new), sorted(feed)]


@pytest.fixture
def source(request: pytest.FixtureRequest, rows: Rows) -> DataFrame:
    kinds = {
        "all change": numbers(rows, 20, 80).withColumn("s", new_text()),
        "none changes": numbers(rows, 50, 60),
        "some change": numbers(rows, 20, 80),
        "only new": numbers(rows, 70, 80),
    }
    found: DataFrame = kinds[request.param]
    return found


def new_text() -> Any:
    from pyspark.sql import functions as fn

    return fn.concat(fn.lit("new "), fn.col("k"))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Path:
    """The directory of a lake with three tables that are the same."""
    folder = tmp_path_factory.mktemp("merged") / "lake"
    folder.mkdir()
    with attached(folder, spark, Limits()) as lake:
        for name in ("t", "u", "w"):
            filled(lake, lambda columns, values: spark.createDataFrame(values, columns), name)
    shutil.copytree(folder, folder.with_name("made"))
    return folder


def attached(folder: Path, spark: SparkSession, limits: Limits) -> Lake:
    uri = f"ducklake:sqlite:{folder}/meta.sqlite"
    return Lake.attach(uri, data_path=f"{folder}/data", spark=spark, limits=limits)


@pytest.fixture
def three(made: Path, spark: SparkSession, limits: Limits) -> Iterator[Lake]:
    """As it was made: a copy, in the same place, as the catalog names that."""
    shutil.rmtree(made)
    shutil.copytree(made.with_name("made"), made)
    with attached(made, spark, limits) as lake:
        yield lake


@pytest.mark.parametrize(
    "source", ["all change", "none changes", "some change", "only new"], indirect=True
)
def test_what_spark_makes_of_the_same(three: Lake, source: DataFrame, tmp_path: Path) -> None:
    """As a query, as files, and by Spark. (Of assumed changes more may be rewritten.)"""
    lake = three
    source.coalesce(2).write.parquet(str(tmp_path / "source"))
    files = source.sparkSession.read.parquet(str(tmp_path / "source"))
    by_query = merged(lake, "t", source)
    assert merged(lake, "u", files) == by_query
    lake.limits = replace(lake.limits, source_rows=-1, source_file_bytes=-1)
    assert merged(lake, "w", source) == by_query


def test_of_many_rows_that_change_one_that_does_not_is_written_anew(lake: Lake, rows: Rows) -> None:
    lake.limits = replace(lake.limits, sample_rows=2)
    table = lake.table("t")
    table.append(rows("k BIGINT, s STRING", [(1, "a"), (2, "b"), (3, "c")]).coalesce(1))
    result = table.merge(rows("k BIGINT, s STRING", [(1, "x"), (2, "y"), (3, "c")]), ["k"])
    assert result.staged.rows_updated == 3
    assert [row["s"] for row in table.to_df().orderBy("k").collect()] == ["x", "y", "c"]
    lake.limits = replace(lake.limits, sample_rows=3)
    result = table.merge(rows("k BIGINT, s STRING", [(1, "x"), (2, "z"), (3, "d")]), ["k"])
    assert result.staged.rows_updated == 2


@pytest.mark.parametrize(
    ("values", "said"),
    [([(1, "a"), (1, "b")], "1 values that come more than once"), ([(None, "a")], "a NULL in it")],
)
def test_keys_that_are_refused(
    lake: Lake, rows: Rows, tmp_path: Path, values: list[Any], said: str
) -> None:
    lake.table("t").append(rows("k BIGINT, s STRING", [(1, "a")]))
    df = rows("k BIGINT, s STRING", values)
    df.write.parquet(str(tmp_path / "source"))
    files = df.sparkSession.read.parquet(str(tmp_path / "source"))
    for one in (df, files):
        with pytest.raises(MergeKeyError, match=said):
            lake.table("t").merge(one, ["k"])
    assert len(lake.snapshots()) == 2
    data = [path for path in tmp_path.rglob("*.parquet") if "source" not in path.parts]
    assert len(data) == len(lake.table("t").list_files())


def test_small_files_where_the_lake_wants_them(lake: Lake, rows: Rows) -> None:
    table = lake.table("t")
    table.append(numbers(rows, 0, 10).coalesce(1))
    lake.sql("CALL set_option('target_file_size', '1KB', table_name => 't')")
    before = len(table.list_files())
    table.merge(numbers(rows, 10, 200), ["k", "d"])
    assert len(table.list_files()) > before + 2
    assert table.to_df().count() == 200


@pytest.fixture
def duckdb() -> Iterator[DuckDBProcess]:
    process = DuckDBProcess("1.5.5")
    yield process
    process.close()


def test_duckdb_reads_it(lake: Lake, rows: Rows, tmp_path: Path, duckdb: DuckDBProcess) -> None:
    filled(lake, rows, "t")
    changed = numbers(rows, 20, 80).withColumn("s", new_text())
    snapshot = lake.table("t").merge(changed, ["k", "d"]).snapshot
    assert snapshot is not None
    duckdb.execute(f"ATTACH 'ducklake:sqlite:{tmp_path / 'meta.sqlite'}' AS lake (READ_ONLY)")
    theirs = duckdb.rows("SELECT rowid, k, s, m FROM lake.t ORDER BY k")
    ours = lake.table("t").to_df(row_ids=True).select("rowid", "k", "s", "m").orderBy("k").collect()
    assert theirs == [tuple(row) for row in ours]
    at = snapshot.id
    kinds = duckdb.rows(
        "SELECT change_type, count(*) FROM "
        f"ducklake_table_changes('lake', 'main', 't', {at}, {at}) GROUP BY ALL ORDER BY ALL"
    )
    assert kinds == [("insert", 24), ("update_postimage", 36), ("update_preimage", 36)]
