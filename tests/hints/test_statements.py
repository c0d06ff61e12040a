"""Hints about SQL statements. Each row: a statement, part of its hint, and what that leads to."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock import Lake
from penstock.errors import PenstockError

CASES = (
    (
        "INSERT INTO t VALUES (1)",
        "INSERT INTO t (a, b) VALUES ...",
        "INSERT INTO t (id) VALUES (1)",
    ),
    ("INSERT INTO t VALUES (1)", "DEFAULT", "INSERT INTO t VALUES (1, DEFAULT)"),
    ("INSERT INTO t (id, nme) VALUES (1, 'a')", "name", "INSERT INTO t (id, name) VALUES (1, 'a')"),
    (
        "INSERT INTO tt VALUES (1, 'a')",
        "did you mean main.t?",
        "INSERT INTO main.t VALUES (1, 'a')",
    ),
    ("CREATE TABLE t (a INT)", "OR REPLACE", "CREATE OR REPLACE TABLE t (a INT)"),
    (
        "CREATE TABLE s.u (a INT)",
        'CREATE SCHEMA "s"',
        'CREATE SCHEMA "s"; CREATE TABLE s.u (a INT)',
    ),
    (
        "ALTER TABLE t ADD COLUMN x INT NOT NULL",
        "give it a default",
        "ALTER TABLE t ADD COLUMN x INT DEFAULT 1",
    ),
    (
        "ALTER TABLE t ALTER id SET DATA TYPE SMALLINT",
        "int64",
        "ALTER TABLE t ALTER id SET DATA TYPE BIGINT",
    ),
    ("ALTER TABLE t ADD COLUMN id INT", "another name", "ALTER TABLE t ADD COLUMN id2 INT"),
    ("ALTER VIEW t RENAME TO w", "write ALTER TABLE", "ALTER TABLE t RENAME TO w"),
    (
        "ALTER TABLE t SET PARTITIONED BY (week(id))",
        "a column",
        "ALTER TABLE t SET PARTITIONED BY (id)",
    ),
    ("DROP VIEW nope", "DROP VIEW IF EXISTS", "DROP VIEW IF EXISTS nope"),
    ("COMMENT ON TABEL t IS 'x'", "TABLE", "COMMENT ON TABLE t IS 'x'"),
    ("DROP VIEW t", "DROP TABLE", "DROP TABLE t"),
    ("COMMIT", "BEGIN", "BEGIN; COMMIT"),
    (
        "CALL set_option('parquet_compression', 'zip')",
        "zstd",
        "CALL set_option('parquet_compression', 'zstd')",
    ),
    ("CALL rollback_to_snapshot('t')", "a version (3)", "CALL rollback_to_snapshot('t', 1)"),
    (
        "VACUUM t",
        "CALL ducklake_cleanup_old_files('lake', cleanup_all => true)",
        "CALL ducklake_cleanup_old_files('lake', cleanup_all => true)",
    ),
    ("USE nope", "CREATE SCHEMA", "CREATE SCHEMA nope; USE nope"),
    (
        "ALTER TABLE t SET (parquet_compression = 'zstd')",
        "set_option",
        "CALL set_option('parquet_compression', 'zstd', table_name => 't')",
    ),
    ("SET x = 1", "CALL set_option(...)", "CALL set_option('parquet_compression', 'zstd')"),
)


@pytest.mark.parametrize(("wrong", "hint", "right"), CASES, ids=[case[2] for case in CASES])
def test_the_statement_as_hinted_works(wrong: str, hint: str, right: str, tmp_path: Path) -> None:
    with Lake.attach(f"ducklake:sqlite:{tmp_path}/m", data_path=str(tmp_path / "d")) as lake:
        lake.sql("CREATE TABLE t (id INT, name VARCHAR)")
        with pytest.raises(PenstockError) as caught:
            lake.sql(wrong)
        assert hint in str(caught.value.hint)
        lake.sql(right)
