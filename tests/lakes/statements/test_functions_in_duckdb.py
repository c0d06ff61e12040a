"""Functions of a lake in DuckDB's dialect: called as in Spark's, with the same rows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from penstock.errors import QueryFailed, UnsupportedFeature
from penstock.lakes.lake import Lake

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DUCKDB: dict[str, Any] = {"dialect": "duckdb"}
CALLS = (
    "FROM table_changes('t', 1, 3)",
    "SELECT k FROM lake.table_insertions('t', :since, now()) AS c WHERE c.k > 1",
    "FROM main.table_deletions('t', 0, 3)",
    "SELECT snapshot_id, changes FROM lake.snapshots() ORDER BY snapshot_id",
    "SELECT c.id, l.id AS last FROM current_snapshot() c, last_committed_snapshot() l",
    "SELECT option_name FROM options() UNION ALL SELECT catalog_type FROM settings()",
    "SELECT table_name, file_count FROM ducklake_table_info('lake')",
    "SELECT count(*) AS n FROM ducklake_list_files('lake', 't', snapshot_version => 2)",
)


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Iterator[Lake]:
    folder: Path = tmp_path_factory.mktemp("functions")
    uri = f"ducklake:sqlite:{folder / 'meta.sqlite'}"
    with Lake.attach(uri, data_path=str(folder / "data"), spark=spark) as lake:
        lake.sql("CREATE TABLE t (k INTEGER, values VARCHAR)", **DUCKDB)
        lake.sql("INSERT INTO t SELECT i, 'v' FROM range(3) r(i)", **DUCKDB)
        lake.sql("INSERT INTO t SELECT i, 'w' FROM range(3, 5) r(i)", **DUCKDB)
        yield lake


@pytest.mark.spark
def test_each_is_called_as_in_sparks_dialect(lake: Lake) -> None:
    for text in CALLS:
        args = {"since": 2} if ":since" in text else {}
        rows = lake.sql(text, args=args, **DUCKDB).collect()
        assert sorted(map(str, rows)) == sorted(map(str, lake.sql(text, args=args).collect())), text


@pytest.mark.spark
def test_markers_times_and_columns_that_need_names(lake: Lake, spark: SparkSession) -> None:
    """A marker as an item, a moment before now, ``values`` and ``* REPLACE`` of a table."""
    assert lake.sql("SELECT :x AS x, $y AS y", args={"x": 1, "y": "a"}, **DUCKDB).collect() == [
        (1, "a")
    ]
    text = "FROM t AT (TIMESTAMP => now() - INTERVAL '1 week')"
    with pytest.raises(Exception, match="snapshot"):
        lake.sql(text, **DUCKDB)
    text = "SELECT * REPLACE (k + 1 AS k) FROM t WHERE k < 2 ORDER BY k, values"
    assert lake.sql(text, **DUCKDB).collect() == [(1, "v"), (2, "v")]
    views = {"t": spark.sql("SELECT 5 AS z, 6 AS y")}
    text = "SELECT * REPLACE (z + y AS y) FROM t"
    assert lake.sql(text, views=views, **DUCKDB).collect() == [(5, 11)]
    text = "SELECT max(COLUMNS('k|val')) FROM lake.main.t"
    assert lake.sql(text, **DUCKDB).collect() == [(4, "w")]
    text = "PIVOT t ON values IN ('v', 'w') USING count(*) GROUP BY k % 2"
    assert len(lake.sql(text, **DUCKDB).columns) == 3


@pytest.mark.spark
def test_maintenance_is_run_by_the_query_that_reads_it(lake: Lake) -> None:
    text = "SELECT table_name, files_created FROM ducklake_merge_adjacent_files('lake')"
    assert lake.sql(text, **DUCKDB).collect() == [("t", 1)]
    assert lake.sql(text).collect() == []
    two = f"{text}, lake.cleanup_old_files(dry_run => true)"
    with pytest.raises(QueryFailed, match=r"a statement runs one function, at line 1:78"):
        lake.sql(two)
    with pytest.raises(UnsupportedFeature, match="snapshots as a value"):
        lake.sql("SELECT snapshots()", **DUCKDB)


@pytest.mark.spark
def test_a_merge_of_constants(lake: Lake) -> None:
    lake.sql("CREATE TABLE people (id INTEGER, v VARCHAR)", **DUCKDB)
    lake.sql("INSERT INTO people VALUES (1, 'a'), (2, 'b'), (3, 'c')", **DUCKDB)
    merge = "MERGE INTO people USING (VALUES (2), (3)) AS d(id) ON d.id = people.id "
    lake.sql(merge + "WHEN MATCHED THEN DELETE", **DUCKDB)
    assert [tuple(row) for row in lake.sql("FROM people", **DUCKDB).collect()] == [(1, "a")]
    with pytest.raises(UnsupportedFeature) as raised:
        lake.sql("SELECT DATE '2026-01-01' + INTERVAL (i) HOUR AS t FROM range(3) r(i)", **DUCKDB)
    assert "INTERVAL (n::INT) HOUR" in str(raised.value.hint)
