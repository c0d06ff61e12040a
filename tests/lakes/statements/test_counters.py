"""What the catalog counts after each kind of statement: ids, versions, rows and bounds.

An attached DuckDB goes by them: it holds a table's statistics until ``next_file_id`` changes.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.lakes.statements import twins

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COUNTED = (
    *("ducklake_snapshot", "ducklake_snapshot_changes"),
    *("ducklake_table_stats", "ducklake_table_column_stats"),
)
FIRST = (
    "CREATE TABLE t (k INTEGER, v VARCHAR)",
    "CREATE TABLE u (a INTEGER, b INTEGER)",
    "INSERT INTO t VALUES (1, 'a'), (2, NULL)",
)
MANY = ", ".join(f"({at}, 'x')" for at in range(10, 40))
SPARK_FREE = (
    f"INSERT INTO t VALUES {MANY}",
    "INSERT INTO t VALUES (1000, 'b'), (NULL, 'z')",
    "ALTER TABLE t ADD COLUMN c INTEGER DEFAULT 7",
    "INSERT INTO t VALUES (50, 'x', 1)",
    "ALTER TABLE t ADD COLUMN IF NOT EXISTS c INTEGER",
    "ALTER TABLE t DROP COLUMN IF EXISTS nope",
    "ALTER TABLE t RESET PARTITIONED BY",
    "ALTER TABLE t ALTER COLUMN c TYPE BIGINT",
    "ALTER TABLE t RENAME COLUMN c TO cc",
    "INSERT INTO t (k) VALUES (51)",
    "ALTER TABLE t DROP COLUMN cc",
    "ALTER TABLE t SET PARTITIONED BY (k)",
    "ALTER TABLE t SET PARTITIONED BY (k)",
    "INSERT INTO t VALUES (60, 'p')",
    "ALTER TABLE t RESET PARTITIONED BY",
    "ALTER TABLE t RENAME TO tt",
    "ALTER TABLE tt RENAME TO t",
    "COMMENT ON TABLE t IS 'x'",
    "CREATE SCHEMA s",
    "CREATE TABLE s.x (a INTEGER)",
    "INSERT INTO s.x VALUES (1)",
    "CREATE MACRO plus(a, b) AS a + b",
    *("BEGIN", "INSERT INTO t VALUES (70, 'q')", "INSERT INTO u VALUES (3, 4)", "COMMIT"),
    *("BEGIN", "INSERT INTO t VALUES (71, 'q')", "INSERT INTO t VALUES (72, 'q')", "COMMIT"),
    *("BEGIN", f"INSERT INTO t VALUES {MANY}", "INSERT INTO t VALUES (75, 'q')", "COMMIT"),
    *("BEGIN", "CREATE TABLE fresh (a INTEGER)", "INSERT INTO fresh VALUES (1)", "COMMIT"),
    *("BEGIN", "ALTER TABLE u ADD COLUMN z INTEGER", "INSERT INTO u VALUES (5, 6, 7)", "COMMIT"),
    "CALL ducklake_flush_inlined_data('lk')",
    "CALL ducklake_merge_adjacent_files('lk')",
    "INSERT INTO t VALUES (90, 'q')",
    "CALL ducklake_add_data_files('lk', 'fresh', '{dir}/fresh.parquet')",
    "DROP TABLE u",
    "DROP SCHEMA s CASCADE",
    "CREATE OR REPLACE TABLE t (k INTEGER)",
    "INSERT INTO t VALUES (1)",
)
# DuckDB 1.5.5 writes what a MERGE inserts to files, however few rows these are.
BY_SPARK = (
    "INSERT INTO t SELECT i, 'x' || i FROM range(10, 40) r(i)",
    "UPDATE t SET v = 'u' WHERE k = 1",
    "UPDATE t SET v = 'u' WHERE k = 12",
    "UPDATE t SET v = 'w' WHERE k >= 10",
    "UPDATE t SET v = 'w' WHERE k = -5",
    "DELETE FROM t WHERE k = 1",
    "DELETE FROM t WHERE k > 20",
    "MERGE INTO t USING (SELECT 2 AS k, 'm' AS v) AS s ON t.k = s.k "
    "WHEN MATCHED THEN UPDATE SET v = s.v",
    "MERGE INTO t USING (SELECT 13 AS k) AS s ON t.k = s.k WHEN MATCHED THEN DELETE",
    "CREATE TABLE w AS SELECT 1 AS a, 'x' AS b",
    "CREATE VIEW vw AS SELECT 1 AS a",
    "DROP VIEW vw",
    *("BEGIN", "DELETE FROM t WHERE k = 2", "INSERT INTO t VALUES (76, 'q')", "COMMIT"),
    f"INSERT INTO t VALUES {MANY}",
    *("BEGIN", "DELETE FROM t WHERE k > 15", "INSERT INTO t VALUES (77, 'q')", "COMMIT"),
    "CALL ducklake_flush_inlined_data('lk')",
    "DELETE FROM t",
)


def _compare(folder: Path, statements: tuple[str, ...], spark: SparkSession | None = None) -> None:
    twins.by_duckdb(folder / "theirs", (*FIRST, *statements))
    options: dict[str, Any] = {"dialect": "duckdb", "data_inlining_row_limit": 10}
    twins.by_penstock(folder / "ours", (*FIRST, *statements), spark, **options)
    for table in COUNTED:
        ours, theirs = (twins.catalog(folder / whose, table) for whose in ("ours", "theirs"))
        assert ours == theirs, table


def test_without_spark(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"a": pa.array([5, 6], pa.int32())}), tmp_path / "fresh.parquet")
    _compare(tmp_path, tuple(text.replace("{dir}", str(tmp_path)) for text in SPARK_FREE))


@pytest.mark.spark
def test_by_spark(tmp_path: Path, spark: SparkSession) -> None:
    _compare(tmp_path, BY_SPARK, spark)
