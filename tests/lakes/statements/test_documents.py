"""The SQL of the documents, as it stands there, but for the lake's name before a table's.

What needs values that Spark spells otherwise (``unnest([...])``) is written in its spelling.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from penstock.errors import UnsupportedFeature
from penstock.lakes.lake import Lake
from tests import duck
from tests.lakes.conftest import table_of
from tests.lakes.statements import twins

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

# By the names of their sections; each runs on what those before left.
SECTIONS = {
    "commit message": """
        CREATE SCHEMA earlier;
        CREATE TABLE people (a INTEGER, b VARCHAR);
        -- Begin Transaction
        BEGIN;
        INSERT INTO people VALUES (1, 'pedro');
        CALL ducklake.set_commit_message('Pedro', 'Inserting myself',
            extra_info => '{''foo'': 7, ''bar'': 10}');
        COMMIT;
        -- End transaction
        DROP TABLE people""",
    "schema evolution": """
        CREATE TABLE tbl (col1 INTEGER, nested_column STRUCT(a INTEGER), ts TIMESTAMP);
        ALTER TABLE tbl ADD COLUMN new_column INTEGER;
        ALTER TABLE tbl DROP COLUMN new_column;
        ALTER TABLE tbl ADD COLUMN new_column VARCHAR DEFAULT 'my_default';
        ALTER TABLE tbl ADD COLUMN nested_column.new_field INTEGER;
        ALTER TABLE tbl RENAME new_column TO new_name;
        ALTER TABLE tbl RENAME new_name TO new_column;
        ALTER TABLE tbl DROP COLUMN new_column;
        ALTER TABLE tbl ALTER col1 SET TYPE BIGINT;
        ALTER TABLE tbl ALTER nested_column.new_field SET TYPE BIGINT""",
    "partitioning": """
        ALTER TABLE tbl SET PARTITIONED BY (col1);
        ALTER TABLE tbl SET PARTITIONED BY (year(ts), month(ts));
        ALTER TABLE tbl RESET PARTITIONED BY""",
    "constraints and defaults": """
        CREATE TABLE constrained (col INTEGER NOT NULL);
        CREATE TABLE t1 (id INTEGER, d DATE DEFAULT '2025-08-08');
        INSERT INTO t1 (id) VALUES (2);
        CREATE OR REPLACE TABLE t1 (id INTEGER, d DATE);
        INSERT INTO t1 VALUES (2, now());
        DROP TABLE t1; DROP TABLE constrained; DROP TABLE tbl""",
    "upserts": """
        CREATE TABLE people (id INTEGER, name VARCHAR, salary FLOAT);
        INSERT INTO people VALUES (1, 'John', 92_000.0), (2, 'Anna', 100_000.0);
        MERGE INTO people
           USING (
                SELECT * FROM VALUES
                    (3, 'Sarah', 95000.0), (1, 'John', 105000.0) AS u(id, name, salary)
           ) AS upserts
           ON (upserts.id = people.id)
           WHEN MATCHED THEN UPDATE
           WHEN NOT MATCHED THEN INSERT;
        MERGE INTO people
        USING (
            SELECT
            1 AS id
        ) AS deletes
        ON (deletes.id = people.id)
        WHEN MATCHED THEN DELETE;""",
    "update": "UPDATE people SET name = 'Johan Cruijff ArenA' WHERE id = 3;",
    "transactions": "BEGIN TRANSACTION; DELETE FROM people WHERE id = 2; ROLLBACK; BEGIN; ABORT",
    "views and comments": """
        CREATE VIEW v1 AS SELECT * FROM people;
        CREATE TABLE test_table (test_table_column INTEGER);
        COMMENT ON TABLE test_table IS 'very nice table';
        COMMENT ON COLUMN test_table.test_table_column IS 'very nice column'""",
    "access control": """
        CREATE SCHEMA IF NOT EXISTS some_schema;
        CREATE TABLE IF NOT EXISTS some_schema.some_table (id INTEGER, name VARCHAR);
        INSERT INTO some_schema.some_table VALUES (1, 'test')""",
    "options": """
        CALL my_ducklake.set_option('parquet_compression', 'zstd');
        CALL my_ducklake.set_option('parquet_compression', 'zstd', schema => 'some_schema');
        CALL my_ducklake.set_option('parquet_compression', 'zstd', table_name => 'people');
        CALL ducklake.set_option('expire_older_than', '1 month');
        CALL ducklake.set_option('delete_older_than', '1 week');
        CALL my_ducklake.set_option('rewrite_delete_threshold', 0.5);
        CALL my_ducklake.set_option('hive_file_pattern', false)""",
    "maintenance": """
        CALL ducklake_merge_adjacent_files('my_ducklake');
        CALL ducklake_merge_adjacent_files('my_ducklake', 'some_table', schema => 'some_schema');
        CALL ducklake_expire_snapshots('ducklake', versions => [2]);
        CALL ducklake_expire_snapshots('ducklake', older_than => now() - INTERVAL '1 week');
        CALL ducklake_expire_snapshots('ducklake', dry_run => true,
            older_than => now() - INTERVAL '1 week');
        CALL ducklake_cleanup_old_files('ducklake', cleanup_all => true);
        CALL ducklake_cleanup_old_files('ducklake', older_than => now() - INTERVAL '1 week');
        CALL ducklake_cleanup_old_files('ducklake', dry_run => true,
            older_than => now() - INTERVAL '1 week');
        CALL ducklake_delete_orphaned_files('ducklake', cleanup_all => true);
        CALL ducklake_delete_orphaned_files('ducklake', older_than => now() - INTERVAL '1 week');
        CALL ducklake_rewrite_data_files('my_ducklake');
        CALL ducklake_rewrite_data_files('my_ducklake', 'people');
        CALL ducklake_rewrite_data_files('my_ducklake', 'people', delete_threshold => 0.5);
        CHECKPOINT""",
}
# What belongs elsewhere, each refused with the nearest.
ELSEWHERE = (
    "ATTACH 'ducklake:my_ducklake.ducklake' AS my_ducklake",
    "DETACH my_ducklake",
    "CREATE SECRET (TYPE ducklake, METADATA_PATH 'a')",
    "DROP SECRET s",
    "COPY FROM DATABASE my_duckdb TO my_ducklake",
    "INSTALL ducklake",
    "GRANT CREATE ON DATABASE access_control TO ducklake_superuser",
    "CREATE USER ducklake_superuser WITH PASSWORD 'simple'",
    "CREATE TABLE t (id INTEGER PRIMARY KEY)",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    duck.required()
    return tmp_path_factory.mktemp("documents")


@pytest.fixture(scope="module")
def lake(folder: Path, spark: SparkSession) -> Iterator[Lake]:
    with Lake.attach(
        twins.uri(folder), data_path=f"{folder}/data", spark=spark, name="my_ducklake"
    ) as attached:
        yield attached


@pytest.mark.parametrize("section", SECTIONS)
def test_runs(lake: Lake, section: str) -> None:
    lake.sql(SECTIONS[section])


def test_is_what_the_documents_say(lake: Lake, folder: Path) -> None:
    people: list[tuple[Any, ...]] = [(2, "Anna", 100000.0), (3, "Johan Cruijff ArenA", 95000.0)]
    assert table_of(lake.sql("FROM people")) == people
    description = lake.table("test_table").describe()
    assert (description.comment, description.column_comment("test_table_column")) == (
        "very nice table",
        "very nice column",
    )
    (named,) = [snapshot for snapshot in lake.snapshots() if snapshot.author == "Pedro"]
    assert (named.message, named.extra) == ("Inserting myself", "{'foo': 7, 'bar': 10}")
    assert twins.rows(folder, "FROM v1") == people


@pytest.mark.parametrize("statement", ELSEWHERE)
def test_what_belongs_elsewhere(lake: Lake, statement: str) -> None:
    with pytest.raises(UnsupportedFeature) as caught:
        lake.sql(statement)
    assert caught.value.hint
