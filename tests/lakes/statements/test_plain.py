"""Statements that Arrow does: without a job of Spark's, unless they mean something of the lake."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from penstock.errors import QueryFailed
from penstock.lakes.lake import Lake
from tests.lakes.conftest import Rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.fixture
def filled(lake: Lake, rows: Rows) -> Lake:
    lake.table("t").append(rows("k INT, v STRING", [(k, f"v{k}") for k in range(10)]).coalesce(1))
    return lake


def changed(lake: Lake, statement: str) -> int:
    (row,) = lake.sql(statement).collect()
    return int(row[0])


def contents(lake: Lake) -> dict[int, str]:
    return {row["k"]: row["v"] for row in lake.table("t").to_df().collect()}


@pytest.mark.parametrize(
    ("statement", "count", "after"),
    [
        ("DELETE FROM t WHERE k IN (1, 2) AND v <> 'v2'", 1, {1: None}),
        ("DELETE FROM t WHERE k > 100", 0, {}),
        ("UPDATE t SET v = 'new' WHERE k = 3", 1, {3: "new"}),
        ("UPDATE t AS a SET v = 'new', k = k + 100 WHERE pmod(k, 5) = 4", 2, {104: "new"}),
    ],
)
def test_no_job(
    filled: Lake, spark: SparkSession, statement: str, count: int, after: dict[int, str | None]
) -> None:
    tracker = spark.sparkContext.statusTracker()
    jobs = len(tracker.getJobIdsForGroup(None))
    answer = filled.sql(statement)
    assert len(tracker.getJobIdsForGroup(None)) == jobs
    assert answer.collect()[0][0] == count
    rows = contents(filled)
    assert {k: rows.get(k) for k in after} == after


def test_what_means_something_else_here(filled: Lake) -> None:
    filled.sql("CREATE MACRO nvl(a, b) AS a + 100")
    assert changed(filled, "DELETE FROM t WHERE nvl(k, 0) = 105") == 1
    assert changed(filled, "UPDATE t SET k = nvl(k, 0) WHERE k = 6") == 1
    assert changed(filled, "WITH k AS (SELECT 7 AS n) DELETE FROM t WHERE k = 8") == 1
    assert sorted(contents(filled)) == [0, 1, 2, 3, 4, 7, 9, 106]


def test_rows_of_this_transaction(filled: Lake) -> None:
    filled.sql("BEGIN")
    filled.sql("INSERT INTO t SELECT id + 20 AS k, 'more' AS v FROM range(20)")
    assert changed(filled, "UPDATE t SET v = 'new' WHERE k = 25 OR k = 5") == 2
    assert changed(filled, "DELETE FROM t WHERE v = 'new' AND k > 20") == 1
    filled.sql("COMMIT")
    rows = contents(filled)
    assert (rows[5], 25 in rows, len(rows)) == ("new", False, 29)


def test_a_part_that_is_replaced(filled: Lake) -> None:
    filled.sql("INSERT INTO t REPLACE WHERE k < 5 SELECT 1 AS k, 'again' AS v")
    assert contents(filled)[1] == "again"
    assert len(contents(filled)) == 6


def test_a_part_that_a_subquery_names_is_replaced(filled: Lake) -> None:
    replaces = "INSERT INTO t REPLACE WHERE k IN (SELECT id FROM range(5))"
    with pytest.raises(QueryFailed, match=r"a new row of main\.t is not what REPLACE WHERE says"):
        filled.sql(f"{replaces} SELECT 7 AS k, 'again' AS v")
    assert len(contents(filled)) == 10
    filled.sql(f"{replaces} SELECT 1 AS k, 'again' AS v")
    assert contents(filled)[1] == "again"
    assert len(contents(filled)) == 6
