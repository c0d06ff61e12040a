"""Snapshots named by an expression, and values of dates and untyped NULLs, as DuckDB has them.

Tests ``lakes/queries/travel.py``.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from penstock.lakes.lake import Lake
from tests import duck
from tests.lakes.statements import twins
from tests.quick import no_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MAKE = (
    "CREATE TABLE n (a INT)",
    "INSERT INTO n VALUES (1)",
    "INSERT INTO n VALUES (2)",
    "CREATE TABLE times (id INT, moment TIMESTAMP, zoned TIMESTAMPTZ, day DATE)",
    "INSERT INTO times SELECT 1, DATE '2024-02-29', DATE '2024-02-29', "
    "TIMESTAMP_NTZ '2024-03-01 12:30:00'",
    "INSERT INTO times VALUES (2, DATE '2024-02-29', DATE '2024-02-29', "
    "TIMESTAMP_NTZ '2024-03-01 12:30:00')",
    "INSERT INTO times SELECT 3, NULL, NULL, DATE '2024-07-08'",
    "UPDATE times SET moment = day, zoned = day WHERE id = 3",
    "MERGE INTO times USING (SELECT 2 AS id, DATE '2025-01-02' AS d) AS s ON times.id = s.id "
    "WHEN MATCHED THEN UPDATE SET moment = s.d, zoned = s.d",
    "MERGE INTO times USING (SELECT 4 AS id, DATE '2025-01-02' AS d) AS s ON times.id = s.id "
    "WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.d, s.d, s.d)",
    "CREATE TABLE named (first) AS SELECT a, a + 1 AS second FROM n",
    "CREATE TABLE nulls AS SELECT 1 AS a, NULL AS b, array(NULL) AS c, "
    "named_struct('x', NULL) AS d, array() AS e, map('k', NULL) AS f",
)
THEIRS = {
    text: text.replace("TIMESTAMP_NTZ '", "TIMESTAMP '") for text in MAKE if "TIMESTAMP_NTZ" in text
} | {
    MAKE[-1]: "CREATE TABLE nulls AS SELECT 1 AS a, NULL AS b, [NULL] AS c, {'x': NULL} AS d, "
    "[] AS e, MAP {'k': NULL} AS f"
}
SEEN = (
    "FROM named ORDER BY ALL",
    "DESCRIBE named",
    "FROM times ORDER BY id",
    "FROM nulls",
    "DESCRIBE nulls",
    "DESCRIBE times",
)
# What is read of n; the expressions are DuckDB's or Spark's.
MOMENTS = {
    "AT (TIMESTAMP => now())": 2,
    "AT (TIMESTAMP => now() + interval 1 day)": 2,
    "AT (TIMESTAMP => current_timestamp)": 2,
    "AT (TIMESTAMP => TIMESTAMP '2100-01-01')": 2,
    "AT (TIMESTAMP => '2100-01-01'::TIMESTAMP)": 2,
    "AT (TIMESTAMP => CAST('2100-01-01' AS TIMESTAMP))": 2,
    "AT (TIMESTAMP => DATE '2100-01-01')": 2,
    "AT (TIMESTAMP => date_trunc('day', now()) + interval 1 day)": 2,
    "AT (VERSION => 1 + 1)": 1,
    "AT (VERSION => '2')": 1,
    "AT (VERSION => 2::BIGINT) AS x": 1,
    "VERSION AS OF 1 + 1": 1,
    "VERSION AS OF 2 AS x": 1,
    "VERSION AS OF :v x": 1,
    "AT (VERSION => :v + 1)": 2,
    "TIMESTAMP AS OF current_timestamp()": 2,
    "TIMESTAMP AS OF now() + INTERVAL 1 DAY x": 2,
    "TIMESTAMP AS OF date_add(current_date(), 1) WHERE a > 0": 2,
    "FOR TIMESTAMP AS OF CAST('2100-01-01' AS TIMESTAMP) AS x": 2,
}


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> tuple[Path, Path]:
    duck.required()
    folder = tmp_path_factory.mktemp("moments")
    twins.by_duckdb(folder / "duckdb", (THEIRS.get(text, text) for text in MAKE))
    twins.by_penstock(folder / "penstock", MAKE, spark)
    return folder / "penstock", folder / "duckdb"


@pytest.mark.parametrize("query", SEEN)
def test_as_duckdb_has_it(pair: tuple[Path, Path], query: str) -> None:
    ours, theirs = pair
    rows = twins.rows(ours, query)
    if "nulls" in query:  # a key of a map that is written out is VARCHAR in both
        assert "VARCHAR" in str(twins.rows(theirs, "DESCRIBE nulls"))
    assert rows == twins.rows(theirs, query) != []


@pytest.mark.parametrize(("clause", "rows"), MOMENTS.items())
def test_snapshots(pair: tuple[Path, Path], spark: SparkSession, clause: str, rows: int) -> None:
    with Lake.attach(twins.uri(pair[0]), spark=spark, read_only=True) as lake:
        for picked in ("count(*)", "count(a + 0)"):  # by the catalog, and of the rows
            row = lake.sql(f"SELECT {picked} FROM n {clause}", args={"v": 2}).first()
            assert row is not None
            assert row[0] == rows


def test_all_tables_lists_views(pair: tuple[Path, Path], spark: SparkSession) -> None:
    with Lake.attach(twins.uri(pair[0]), spark=spark) as lake:
        lake.sql("CREATE VIEW seen AS SELECT a, a + 1 AS more FROM n")
        tables = {row[2]: tuple(row[3:]) for row in lake.sql("SHOW ALL TABLES").collect()}
    assert tables.keys() == {"n", "named", "nulls", "seen", "times"}
    assert tables["seen"] == (["a", "more"], ["INTEGER", "INTEGER"], False)
    with Lake.attach(twins.uri(pair[0])) as lake:  # takes the session of this process
        shown = [row[2:5] for row in lake.sql("SHOW ALL TABLES").collect()]
        assert ("seen", ["a", "more"], ["INTEGER", "INTEGER"]) in shown
    with Lake.attach(twins.uri(pair[0]), spark=no_session) as lake:  # columns of a view need Spark
        assert ("seen", None, None) in [row[2:5] for row in lake.sql("SHOW ALL TABLES").collect()]
    assert sorted(tables) == [row[2] for row in twins.rows(pair[0], "SHOW ALL TABLES")]
