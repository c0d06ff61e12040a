"""Statements that define things leave in the catalog what DuckDB's leave. No Spark in these.

Tests ``lakes/statements/create.py``, ``lakes/statements/create_table.py``,
``lakes/statements/create_view.py``, ``lakes/statements/create_macro.py``,
``lakes/statements/alter.py``, ``lakes/statements/drop.py``.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import duck
from tests.lakes.statements import twins

STATEMENTS = (
    "CREATE SCHEMA s",
    "CREATE TABLE types (a TINYINT, b HUGEINT, c UHUGEINT, d TIME, e TIMETZ, g TIMESTAMP_S, "
    "h TIMESTAMP_MS, i TIMESTAMP_NS, j UUID, k JSON, n BLOB, o DECIMAL, p DECIMAL(5), q INTERVAL, "
    "r STRUCT(a INT, b VARCHAR[]), s MAP(VARCHAR, INT), t REAL, u TIMESTAMP(3), "
    "v NUMERIC(38,10), w TIMESTAMP, x TIMESTAMP WITH TIME ZONE, y DOUBLE PRECISION, z UBIGINT)",
    "CREATE TABLE defaults (i INTEGER DEFAULT 5, s VARCHAR DEFAULT 'it''s', d DATE DEFAULT "
    "'2025-08-08', n INT DEFAULT NULL, m INT DEFAULT -5, f DOUBLE DEFAULT 1.5, "
    "t VARCHAR DEFAULT 1)",
    "CREATE TABLE s.t (a INT NOT NULL, b INT NULL, st STRUCT(x INT), l STRUCT(q INT)[])",
    'CREATE TABLE "My T" ("Col A" INT)',
    'CREATE OR REPLACE TABLE "My T" ("Col A" BIGINT, b INT)',
    "COMMENT ON TABLE s.t IS 'a table'",
    "COMMENT ON COLUMN s.t.a IS 'a column'",
    "COMMENT ON COLUMN s.t.a IS NULL",
    "ALTER TABLE s.t ADD COLUMN c INTEGER DEFAULT 7",
    "ALTER TABLE s.t ADD c3 VARCHAR",
    "ALTER TABLE s.t ADD COLUMN st.y VARCHAR",
    "ALTER TABLE s.t ADD COLUMN l.element.w INT",
    "ALTER TABLE s.t DROP COLUMN c",
    "ALTER TABLE s.t DROP COLUMN st.x",
    "ALTER TABLE s.t RENAME b TO bb",
    "ALTER TABLE s.t RENAME COLUMN st.y TO yy",
    "ALTER TABLE s.t ALTER bb SET DATA TYPE BIGINT",
    "ALTER TABLE s.t ALTER bb SET DEFAULT 9",
    "ALTER TABLE s.t ALTER COLUMN bb DROP DEFAULT",
    "ALTER TABLE s.t ALTER a DROP NOT NULL",
    "ALTER TABLE s.t SET PARTITIONED BY (a, bucket(4, c3))",
    "ALTER TABLE s.t RESET PARTITIONED BY",
    "ALTER TABLE s.t SET SORTED BY (a DESC NULLS FIRST, c3 ASC)",
    "ALTER TABLE s.t RESET SORTED BY",
    "ALTER TABLE s.t RENAME TO t2",
    "CREATE MACRO plus(a, b := 2) AS a + b",
    "CREATE MACRO typed(a INTEGER, b VARCHAR := 'x', c DATE := DATE '2020-01-01') AS a",
    "CREATE OR REPLACE MACRO plus(a) AS a, (a, b) AS a + b",
    "CREATE MACRO rows_of(n) AS TABLE SELECT * FROM s.t2 WHERE a > n",
    "DROP MACRO plus",
    "DROP MACRO TABLE rows_of",
    "DROP TABLE IF EXISTS nothing",
    'DROP TABLE "My T"',
    "DROP SCHEMA s CASCADE",
)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    duck.required()
    folder = tmp_path_factory.mktemp("definitions")
    twins.by_duckdb(folder / "duckdb", STATEMENTS)
    twins.by_penstock(folder / "penstock", STATEMENTS)
    return folder / "penstock", folder / "duckdb"


@pytest.mark.parametrize("table", twins.DEFINITIONS)
def test_as_duckdb_leaves_it(pair: tuple[Path, Path], table: str) -> None:
    ours, theirs = pair
    assert twins.catalog(ours, table) == twins.catalog(theirs, table)


@pytest.mark.parametrize("table", ["types", "defaults"])
def test_as_duckdb_reads_it(pair: tuple[Path, Path], table: str) -> None:
    ours, theirs = pair
    assert twins.rows(ours, f"DESCRIBE {table}") == twins.rows(theirs, f"DESCRIBE {table}")


ROWS = ", ".join(f"({n})" for n in range(12))
EMPTIED = (
    "CREATE TABLE t (a INT)",
    f"INSERT INTO t VALUES {ROWS}",
    "CALL lk.set_option('data_inlining_row_limit', 0, table_name => 't')",
    "INSERT INTO t VALUES (20), (21)",
    "CALL lk.set_option('data_inlining_row_limit', 10, table_name => 't')",
    "INSERT INTO t VALUES (30)",
)


@pytest.mark.parametrize("statement", ["TRUNCATE t", "DELETE FROM t"])
def test_a_table_that_is_emptied(tmp_path: Path, statement: str) -> None:
    """Files end, or get inlined deletes, and the feed is the same; without Spark."""
    ours, theirs = tmp_path / "penstock", tmp_path / "duckdb"
    twins.by_duckdb(theirs, (*EMPTIED, statement, statement))
    twins.by_penstock(ours, (*EMPTIED, statement, statement))
    for table in (
        *("ducklake_data_file", "ducklake_delete_file", "ducklake_snapshot_changes"),
        *("ducklake_table_stats", "ducklake_inlined_delete_1", "ducklake_inlined_data_1_1"),
    ):
        assert twins.catalog(ours, table) == twins.catalog(theirs, table), table
    ((last,),) = twins.rows(theirs, "SELECT max(snapshot_id) FROM snapshots()")
    feed = f"FROM table_changes('t', 2, {last})"
    assert twins.rows(ours, feed) == twins.rows(theirs, feed) != []
    assert twins.rows(ours, "FROM t") == []
