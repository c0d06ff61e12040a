"""Counts and extremes from the catalog equal those of the rows, or the catalog gives none.

Tests ``lakes/catalog/answers.py`` (counts and bounds without files).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from penstock.lakes.lake import Lake
from penstock.lakes.queries.sparkless import read_aggregates as wanted
from penstock.sql.tables import analyse
from tests import duck

pytestmark = pytest.mark.spark

COLUMNS = {
    "i": "integer", "l": "bigint", "d": "date", "ts": "timestamp", "tz": "timestamptz",
    "x": "decimal(10,2)", "s": "varchar", "f": "double", "u": "ubigint", "n": "integer",
}  # fmt: skip
STEPS = [
    f"CREATE TABLE t ({', '.join(f'{name} {kind}' for name, kind in COLUMNS.items())})",
    "INSERT INTO t SELECT i - 5, i * 1000000000000, date '2020-01-01' + i::int,"
    " timestamp '2020-01-01' + to_microseconds(i * 500000), timestamptz '1969-12-31 23:59:59.5+00',"
    " i / 8, 'é' || i, i / 4 - 0.0, i, NULL FROM range(3, 11) r(i)",
    "INSERT INTO t (i, s, x) VALUES (9, repeat('z', 300), -10.5), (10, 'aa', 100)",
    "INSERT INTO t (d) VALUES ('infinity'), ('0044-03-15 (BC)')",
    "DELETE FROM t WHERE i = 9",
    "CREATE TABLE e (i integer)",
    "CREATE TABLE o (i integer); INSERT INTO o VALUES (1)",
    "ALTER TABLE o ADD COLUMN added integer DEFAULT 7",
]


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Any:
    duck.required()
    folder: Path = tmp_path_factory.mktemp("answers")
    uri = f"ducklake:sqlite:{folder / 'meta.sqlite'}"
    with duck.attach(uri, folder / "data") as connection:
        for step in STEPS:
            connection.execute(step)
    with Lake.attach(uri, spark=spark, read_only=True) as attached:
        yield attached


def texts(df: Any) -> Any:
    """Python has no infinite dates."""
    return df.selectExpr(*(f"CAST(`{name}` AS string)" for name in df.columns)).collect()


def is_scan(plan: Any) -> bool:
    return bool(plan.inputFiles())


@pytest.mark.parametrize(
    ("query", "known"),
    [
        ("SELECT COUNT(*) FROM t", True),
        ("SELECT count(1) AS n, COUNT(*) m FROM main.t AS x", True),
        ("SELECT COUNT(*) FROM t AT (VERSION => 2)", True),
        ("SELECT COUNT(*) FROM e", True),
        ("SELECT MIN(i), max(i), min(T.l) FROM t AT (VERSION => 2)", True),
        ("SELECT MIN(ts), MAX(ts), MIN(tz), MAX(x), MAX(d) FROM t AT (VERSION => 2)", True),
        ("SELECT MIN(s) lo, MAX(s) hi, MAX(u), MAX(n) FROM t AT (VERSION => 2)", True),
        ("SELECT MIN(f) FROM t AT (VERSION => 2)", False),
        ("SELECT MAX(s) FROM t AT (VERSION => 3)", False),
        ("SELECT MAX(x), COUNT(*) FROM t AT (VERSION => 3)", True),
        ("SELECT COUNT(*) FROM t AT (VERSION => 5)", False),
        ("SELECT MAX(d) FROM t AT (VERSION => 4)", False),
        ("SELECT MAX(i) FROM t", False),
        ("SELECT MIN(i) FROM e", True),
        ("SELECT MIN(added), MIN(i) FROM o", False),
        ("SELECT COUNT(*) FROM t WHERE i > 3", False),
    ],
)
def test_answers_are_those_of_the_rows(lake: Lake, query: str, known: bool) -> None:
    df = lake.sql(query)
    forced = (
        query.replace("FROM t", "FROM (SELECT * FROM t", 1)
        .replace("FROM main.t", "FROM (SELECT * FROM main.t", 1)
        .replace("FROM e", "FROM (SELECT * FROM e", 1)
        .replace("FROM o", "FROM (SELECT * FROM o", 1)
    )
    forced = forced.replace(" AS x", "").replace("T.l", "l") + ")"
    if "WHERE" not in query:
        rows = lake.sql(forced)
        assert (df.columns, df.dtypes) == (rows.columns, rows.dtypes)
        assert texts(df) == texts(rows)
    assert is_scan(df) is not known or "FROM e" in query


@pytest.mark.parametrize(
    "query",
    [
        "SELECT COUNT(DISTINCT i) FROM t",
        "SELECT COUNT(i) FROM t",
        "SELECT COUNT(*) FILTER (WHERE i > 3) FROM t",
        "SELECT COUNT(*) + 1 FROM t",
        "SELECT i, COUNT(*) FROM t GROUP BY i",
        "SELECT COUNT(*) OVER () FROM t",
        "SELECT MIN(i + 1) FROM t",
        "SELECT MIN(s.x) FROM t",
        "SELECT COUNT(*) FROM t LIMIT 0",
        "SELECT COUNT(*) FROM t TABLESAMPLE (3 ROWS)",
        "SELECT COUNT(*) FROM t, t AS u",
        "SELECT COUNT(*) FROM t HAVING COUNT(*) > 100",
        "SELECT COUNT(*) FROM t LATERAL VIEW explode(array(1, 2)) x AS y",
        "SELECT COUNT(*) FROM t |> WHERE 1 = 0",
        "SELECT MIN(i) FROM t AS x(j)",
        "SELECT COUNT(*), 1 FROM t",
        "WITH a AS (SELECT 1) SELECT COUNT(*) FROM t",
    ],
)
def test_other_questions_are_sparks(query: str) -> None:
    analysis = analyse(query)
    assert wanted(analysis.tree, analysis.tables[0].node) is None


def test_deletes_that_a_flush_put_into_one_file(spark: SparkSession, tmp_path: Path) -> None:
    """DuckDB flushes rows that were deleted in several snapshots, and does not say which."""
    uri = f"ducklake:sqlite:{tmp_path / 'meta.sqlite'}"
    with duck.attach(uri, tmp_path / "data", inline=10) as connection:
        connection.execute("CREATE TABLE t (i integer)")
        connection.execute("INSERT INTO t FROM range(5)")
        for value in (1, 3):
            connection.execute(f"DELETE FROM t WHERE i = {value}")
        connection.execute("CALL ducklake_flush_inlined_data('lk')")
        expected = {
            version: connection.execute(
                f"SELECT count(*) FROM t AT (VERSION => {version})"
            ).fetchall()[0][0]
            for (version,) in connection.execute(
                "SELECT snapshot_id FROM lk.snapshots() WHERE snapshot_id > 0"
            ).fetchall()
        }
    assert len(set(expected.values())) == 4
    with Lake.attach(uri, spark=spark, read_only=True) as lake:
        counts = {
            version: lake.sql(f"SELECT count(*) FROM t AT (VERSION => {version})").collect()[0][0]
            for version in expected
        }
    assert counts == expected
