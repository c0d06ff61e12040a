"""Changes of rows by SQL and by the methods of a table: the same files, jobs and snapshots."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pyarrow as pa
import pytest

from penstock.errors import CommitConflict, MergeKeyError
from penstock.lakes.lake import Lake
from tests import duck
from tests.lakes.conftest import Rows, table_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from penstock.lakes.transaction import Transaction

pytestmark = pytest.mark.spark

Change = Callable[["Transaction"], Any]
MERGES = {
    "all columns": "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
    "of DuckDB": "WHEN MATCHED THEN UPDATE WHEN NOT MATCHED THEN INSERT",
    "named": (
        "WHEN NOT MATCHED THEN INSERT (v, k) VALUES (s.v, s.k) WHEN MATCHED THEN UPDATE SET v = s.v"
    ),
}


@pytest.fixture
def filled(lake: Lake) -> Lake:
    """Four files of a hundred rows, k from 0."""
    lake.sql("CREATE TABLE t (k INT, v STRING)")
    for first in range(0, 400, 100):
        keys = pa.array(range(first, first + 100), pa.int32())
        lake.table("t").append(pa.table({"k": keys, "v": ["a"] * 100}))
    return lake


def numbered(spark: SparkSession, first: int, end: int, value: str = "'a'") -> DataFrame:
    return spark.range(first, end, 1, 1).selectExpr("int(id) AS k", f"{value} AS v")


def jobs(spark: SparkSession) -> int:
    """How many jobs began so far: the number that Spark gives to one more, which is awaited."""
    context, group = spark.sparkContext, f"counted {uuid4()}"
    context.setJobGroup(group, "")
    spark.range(1).collect()
    context.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type] # takes it away
    while not (ids := context.statusTracker().getJobIdsForGroup(group)):
        time.sleep(0.01)
    return int(ids[0])


@contextmanager
def only(lake: Lake, wanted: set[int]) -> Iterator[None]:
    """Whoever opens another file than these, by number, fails."""
    files = [Path(file.data_file) for file in lake.list_files("t")]
    others = [file for number, file in enumerate(files) if number not in wanted]
    for file in others:
        file.rename(f"{file}.hidden")
    try:
        yield
    finally:
        for file in others:
            Path(f"{file}.hidden").rename(file)


def staged(lake: Lake, spark: SparkSession, change: Change) -> tuple[Any, ...]:
    """What a transaction would commit, the rows it leaves, and the jobs that took."""
    with lake.transaction() as transaction:
        before = jobs(spark)
        change(transaction)
        took = jobs(spark) - before
        candidate = transaction.table("t").candidate
        deletes = {id_: one.delete_count for id_, one in candidate.deletes.items()}
        added = sorted((one.record_count, one.has_row_ids) for one in candidate.added)
        depends = candidate.depends_on_rows
        rows = transaction.table("t").to_df().orderBy("k").collect()
        transaction.rollback()
    return sorted(candidate.ended), deletes, candidate.inline, added, depends, rows, took


@pytest.mark.parametrize(
    ("where", "opened"),
    [
        ("k >= 200", set()),
        ("k BETWEEN 100 AND 199 OR k > 299", set()),
        ("k IS NOT NULL", set()),
        ("k >= 200 AND v = 'a'", set()),
        ("k >= 250", {2}),
        ("k IN (7, 9)", {0}),
        ("v = 'b' OR k < 100", set()),
        ("upper(v) = 'A' AND k >= 300", {3}),
    ],
)
def test_deletes(filled: Lake, spark: SparkSession, where: str, opened: set[int]) -> None:
    """A file is opened where the catalog does not tell that all of its rows go, or none."""
    qualified = where.replace("k ", "x.k ").replace("v ", "x.v ").replace("(v)", "(x.v)")
    changes: list[Change] = [
        lambda t: t.table("t").delete(where),
        lambda t: t.sql(f"DELETE FROM t WHERE {where}"),
        lambda t: t.sql(f"DELETE FROM main.t AS x WHERE {qualified}"),
    ]
    outcomes = []
    for change in changes:
        with filled.transaction() as transaction, only(filled, opened):
            change(transaction)
            transaction.rollback()
        outcomes.append(staged(filled, spark, change))
    assert outcomes[0] == outcomes[1] == outcomes[2]


@pytest.mark.parametrize("where", ["k = 5", "v = 'b' AND k IN (1, 2)", "k > 100"])
def test_rows_in_the_catalog_take_no_job(lake: Lake, spark: SparkSession, where: str) -> None:
    lake.sql("CREATE TABLE t (k INT, v STRING)")
    lake.sql("INSERT INTO t VALUES (1, 'b'), (5, 'a'), (2, 'a')")
    deletes: list[Change] = [
        lambda t: t.table("t").delete(where),
        lambda t: t.sql(f"DELETE FROM t WHERE {where}"),
    ]
    updates: list[Change] = [
        lambda t: t.table("t").update({"v": "'c'"}, where),
        lambda t: t.sql(f"UPDATE t SET v = 'c' WHERE {where}"),
    ]
    for changes in (deletes, updates):
        method, statement = (staged(lake, spark, change) for change in changes)
        assert method == statement
        assert method[-1] == 1  # which counts them


@pytest.mark.parametrize(
    ("where", "value", "opened"),
    [("k = 7", "'b'", {0}), ("k > 298", "upper(v)", {2, 3}), ("k > 1000", "'b'", set())],
)
def test_updates(
    filled: Lake, spark: SparkSession, where: str, value: str, opened: set[int]
) -> None:
    changes: list[Change] = [
        lambda t: t.table("t").update({"v": value}, where),
        lambda t: t.sql(f"UPDATE t SET v = {value} WHERE {where}"),
        lambda t: t.sql(f"UPDATE t AS x SET v = {value} WHERE x.{where}"),
    ]
    outcomes = []
    for change in changes:
        with filled.transaction() as transaction, only(filled, opened):
            change(transaction)
            transaction.rollback()
        outcomes.append(staged(filled, spark, change))
    assert outcomes[0] == outcomes[1] == outcomes[2]


@pytest.mark.parametrize("where", ["k < 100", "k < 50", "k > 1000"])
def test_replacing(filled: Lake, spark: SparkSession, where: str) -> None:
    news = numbered(spark, 1001, 1003) if where == "k > 1000" else numbered(spark, 1, 3)
    statement = f"INSERT INTO t REPLACE WHERE {where} SELECT * FROM news"
    changes: list[Change] = [
        lambda t: t.table("t").overwrite(news, where),
        lambda t: t.sql(statement, views={"news": news}),
    ]
    first, second = (staged(filled, spark, change) for change in changes)
    assert first == second


def test_two_that_replace_the_same_nothing(filled: Lake, spark: SparkSession) -> None:
    """Both would leave their rows."""
    statement = "INSERT INTO t REPLACE WHERE k > 1000 VALUES (1001, 'x')"

    def both() -> None:
        with filled.transaction() as transaction:
            transaction.sql(statement)
            filled.sql(statement)

    with pytest.raises(CommitConflict):
        both()


@pytest.mark.parametrize("clauses", MERGES.values(), ids=list(MERGES))
@pytest.mark.parametrize("first", [380, 1000])
def test_merges_by_key(filled: Lake, spark: SparkSession, clauses: str, first: int) -> None:
    source = numbered(spark, first, first + 30, "if(id < 390, 'a', 'b')")
    views = {"s": source}
    changes: list[Change] = [
        lambda t: t.table("t").merge(source, "k"),
        lambda t: t.sql(f"MERGE INTO t USING s ON t.k = s.k {clauses}", views=views),
        lambda t: t.sql(f"MERGE INTO t AS x USING s ON s.k = x.k {clauses}", views=views),
    ]
    outcomes = [staged(filled, spark, change) for change in changes]
    assert outcomes[0] == outcomes[1] == outcomes[2]


@pytest.mark.parametrize("clauses", MERGES.values(), ids=list(MERGES))
def test_equal_rows_make_no_snapshot(filled: Lake, spark: SparkSession, clauses: str) -> None:
    last = filled.catalog.latest().id
    source = numbered(spark, 90, 110)
    answer = filled.sql(f"MERGE INTO t USING s ON t.k = s.k {clauses}", views={"s": source})
    assert tuple(answer.collect()[0]) == (0, 0, 0, 0)
    filled.table("t").merge(source, ["k"])
    assert filled.catalog.latest().id == last


def test_merges_that_no_key_tells(lake: Lake, rows: Rows) -> None:
    """MERGE inserts each row that matches nothing and updates each that one matches."""
    lake.table("t").append(rows("k INT, v STRING", [(1, "a"), (1, "b"), (2, "c"), (None, "n")]))
    merge = f"MERGE INTO t USING s ON t.k = s.k {MERGES['all columns']}"
    source = rows("k INT, v STRING", [(1, "x"), (8, "y"), (8, "z"), (None, "m")])
    lake.sql(merge, views={"s": source})
    assert table_of(lake.table("t").to_df()) == [
        *((1, "x"), (1, "x"), (2, "c"), (8, "y"), (8, "z"), (None, "m"), (None, "n"))
    ]
    ids = duck.rows(lake.catalog.uri, "SELECT rowid FROM t WHERE k = 1")
    assert ids == [(0,), (1,)]
    with pytest.raises(MergeKeyError, match="matched by several rows"):
        lake.sql(merge, views={"s": rows("k INT, v STRING", [(2, "x"), (2, "y")])})


def test_merges_of_other_types_and_columns(lake: Lake, rows: Rows) -> None:
    """Values are cast, columns that only the source has are left, as in any MERGE."""
    lake.table("t").append(rows("k INT, v STRING, n INT", [(1, "a", 1), (2, "b", 2)]))
    source = rows("k INT, n DOUBLE, more STRING", [(1, 9.7, "x"), (3, 3.2, "y")])
    merge = f"MERGE INTO t USING s ON t.k = s.k {MERGES['all columns']}"
    lake.sql(merge, views={"s": source})
    expected = [(1, "a", 10), (2, "b", 2), (3, None, 3)]
    assert table_of(lake.table("t").to_df()) == expected
