"""The change feed against DuckDB's ``table_changes``: scripts, and all of them over many ranges."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from penstock.lakes.lake import Lake
from tests.lakes import feeds
from tests.lakes.feeds import FLUSH, MERGE, REWRITE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

THREE_AND_ONE = (
    "CREATE TABLE t (i INT, s VARCHAR)",
    "INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c')",
    "INSERT INTO t VALUES (4, 'd')",
)
TWENTY = (*THREE_AND_ONE, "INSERT INTO t SELECT 10 + range, 'z' FROM range(20)")

# What each does is inlined where it may be, and in files.
BOTH: dict[str, Sequence[str]] = {
    "deletes and updates of the same rows": (
        *THREE_AND_ONE,
        "DELETE FROM t WHERE i = 1",
        "DELETE FROM t WHERE i = 2",
        "UPDATE t SET s = 'x' WHERE i = 3",
        "UPDATE t SET s = 'y' WHERE i = 3",
        "UPDATE t SET s = 'd' WHERE i = 4",
        "DELETE FROM t",
    ),
    "many deletes in one file, then the whole": (
        *TWENTY,
        "DELETE FROM t WHERE i = 11",
        "DELETE FROM t WHERE i IN (12, 13)",
        "UPDATE t SET s = 'q' WHERE i = 14",
        "DELETE FROM t WHERE i > 20",
        "DELETE FROM t WHERE i = 14",
        "DELETE FROM t WHERE i >= 10",
        "TRUNCATE t",
        "INSERT INTO t VALUES (5, 'e')",
    ),
    "merge": (
        *THREE_AND_ONE,
        "MERGE INTO t USING (VALUES (1, 'm'), (10, 'new')) v(i, s) ON t.i = v.i "
        "WHEN MATCHED THEN UPDATE SET s = v.s WHEN NOT MATCHED THEN INSERT VALUES (v.i, v.s)",
    ),
    "several changes in one transaction": (
        "CREATE TABLE t (i INT, s VARCHAR)",
        "INSERT INTO t VALUES (1, 'a'), (2, 'b')",
        "BEGIN",
        "INSERT INTO t VALUES (3, 'c'), (4, 'd')",
        "DELETE FROM t WHERE i IN (1, 3)",
        "UPDATE t SET s = 'x' WHERE i = 4",
        "COMMIT",
        "BEGIN",
        "CREATE TABLE u (i INT)",
        "INSERT INTO u VALUES (1)",
        "UPDATE t SET s = 'y' WHERE i = 2",
        "UPDATE t SET s = 'z' WHERE i = 2",
        "COMMIT",
    ),
    "columns that come, go and change": (
        *THREE_AND_ONE,
        "ALTER TABLE t ADD COLUMN x INT DEFAULT 7",
        "INSERT INTO t VALUES (5, 'e', 8)",
        "UPDATE t SET s = 'u' WHERE i = 2",
        "ALTER TABLE t DROP COLUMN s",
        "DELETE FROM t WHERE i = 1",
        "ALTER TABLE t RENAME COLUMN i TO k",
        "ALTER TABLE t ALTER COLUMN k TYPE BIGINT",
        "INSERT INTO t VALUES (6000000000, 9)",
        "UPDATE t SET x = 1 WHERE k = 3",
        "ALTER TABLE t ADD COLUMN s VARCHAR",
        "INSERT INTO t VALUES (7, 7, 'new')",
    ),
    "nested types": (
        "CREATE TABLE t (i INT, l INT[], s STRUCT(a INT, b VARCHAR), m MAP(VARCHAR, INT), "
        "x TIMESTAMP, y TIMESTAMPTZ, d DECIMAL(10, 2))",
        "INSERT INTO t SELECT 1, [1, 2], {'a': 1, 'b': 'x'}, MAP {'k': 1}, "
        "'2020-01-01 01:02:03', '2020-01-01 01:02:03+00', 1.5",
        "ALTER TABLE t ADD COLUMN s.c INT",
        "UPDATE t SET l = [3] WHERE i = 1",
        "INSERT INTO t SELECT 2, NULL, NULL, NULL, NULL, NULL, NULL",
        "DELETE FROM t",
    ),
    "files from elsewhere": (
        "CREATE TABLE t (i INT, s VARCHAR)",
        "COPY (SELECT range::INT i, 'f' s FROM range(3)) TO '{dir}x.parquet'",
        "CALL ducklake_add_data_files('lk', 't', '{dir}x.parquet')",
        "DELETE FROM t WHERE i = 1",
        "UPDATE t SET s = 'q' WHERE i = 2",
        "ALTER TABLE t ADD COLUMN z INT DEFAULT 4",
    ),
    "partitions": (
        "CREATE TABLE t (i INT, s VARCHAR)",
        "ALTER TABLE t SET PARTITIONED BY (s)",
        "INSERT INTO t VALUES (1, 'a'), (2, 'b')",
        "UPDATE t SET s = 'b' WHERE i = 1",
        "DELETE FROM t WHERE s = 'b'",
    ),
    "deletion vectors": (
        "CALL lk.set_option('write_deletion_vectors', true)",
        *TWENTY,
        "DELETE FROM t WHERE i BETWEEN 10 AND 22",
        "DELETE FROM t WHERE i = 23",
        "UPDATE t SET s = 'q' WHERE i = 24",
        "DELETE FROM t WHERE i > 27",
    ),
    "rewritten files": (
        *TWENTY,
        "UPDATE t SET s = 'u' WHERE i = 15",
        "DELETE FROM t WHERE i = 11",
        FLUSH,
        REWRITE,
        "UPDATE t SET s = 'v' WHERE i = 16",
    ),
    "merged files": (*TWENTY, MERGE, "INSERT INTO t VALUES (5, 'e')", FLUSH, MERGE),
    "flushed rows and deletes": (
        *TWENTY,
        "DELETE FROM t WHERE i = 1",
        FLUSH,
        "DELETE FROM t WHERE i = 12",
        FLUSH,
        "UPDATE t SET s = 'r' WHERE i = 13",
    ),
    "a table made anew": (
        *THREE_AND_ONE,
        "DROP TABLE t",
        "CREATE TABLE t (j INT)",
        "INSERT INTO t VALUES (1)",
        "CREATE OR REPLACE TABLE t AS SELECT 5 z",
    ),
    "snapshots that expired in the middle": (
        *THREE_AND_ONE,
        "DELETE FROM t WHERE i = 1",
        "UPDATE t SET s = 'x' WHERE i = 2",
        "INSERT INTO t VALUES (9, 'n')",
        "UPDATE t SET s = 'y' WHERE i = 2",
        "DELETE FROM t WHERE i = 9",
        "CALL ducklake_expire_snapshots('lk', versions => [3, 5, 6])",
    ),
}


@pytest.mark.parametrize("inline", [0, 10])
@pytest.mark.parametrize("script", BOTH.values(), ids=BOTH)
def test_as_duckdb(script: Sequence[str], inline: int, tmp_path: Path, spark: SparkSession) -> None:
    place = feeds.sqlite_place(tmp_path)
    feeds.written(place, script, inline=inline)
    known = feeds.theirs(place)
    with Lake.attach(place.uri, data_path=place.data_path, spark=spark) as lake:
        assert feeds.ours(lake, known) == known


# Where DuckDB 1.5.5 is wrong: its feed does not lead from each snapshot to the next.
WRONG: dict[str, tuple[int, Sequence[str]]] = {
    "rows deleted in two steps of one transaction come twice": (
        0,
        (
            "CREATE TABLE t (i INT, s VARCHAR)",
            "INSERT INTO t VALUES (1, 'a'), (2, 'b')",
            "BEGIN",
            "DELETE FROM t WHERE i = 1",
            "UPDATE t SET s = 'x' WHERE i = 2",
            "COMMIT",
        ),
    ),
    "the one delete of a merged file counts for the snapshot of its row": (
        0,
        (*THREE_AND_ONE, MERGE, "UPDATE t SET s = 'x' WHERE i = 4"),
    ),
    "so does the end of a row that was flushed": (
        10,
        (
            *THREE_AND_ONE,
            "UPDATE t SET s = 'x' WHERE i = 2",
            FLUSH,
            "UPDATE t SET s = 'y' WHERE i = 2",
            FLUSH,
        ),
    ),
    "deletes of several snapshots that a flush puts into one file": (
        10,
        (
            *THREE_AND_ONE,
            "INSERT INTO t VALUES (5, 'e'), (6, 'f'), (7, 'g')",
            "UPDATE t SET s = 'x' WHERE i = 2",
            "DELETE FROM t WHERE i = 1",
            "INSERT INTO t VALUES (8, 'h')",
            "UPDATE t SET s = 'y' WHERE i = 3",
            FLUSH,
            "DELETE FROM t WHERE i = 3",
            "INSERT INTO t VALUES (9, 'i')",
        ),
    ),
    "a rewritten file without the rows that the catalog deleted is an insert of all others": (
        10,
        (*TWENTY, "DELETE FROM t WHERE i = 11", "DELETE FROM t WHERE i = 12", REWRITE),
    ),
}


@pytest.mark.parametrize(("inline", "script"), WRONG.values(), ids=WRONG)
def test_right_where_duckdb_is_wrong(
    script: Sequence[str], inline: int, tmp_path: Path, spark: SparkSession
) -> None:
    place = feeds.sqlite_place(tmp_path)
    feeds.written(place, script, inline=inline)
    right, known = feeds.differences(place), feeds.theirs(place)
    with Lake.attach(place.uri, data_path=place.data_path, spark=spark) as lake:
        contents = feeds.ours(lake, known)
    assert {at: feeds.net(feed) for at, feed in contents.items()} == {
        at: feeds.within(right, at) for at in known
    }
    assert contents != known, "DuckDB has it right now: compare with it"


def test_a_file_with_two_delete_files(tmp_path: Path, spark: SparkSession) -> None:
    """Deletes that are flushed after their file was rewritten get a delete file beside the old.

    DuckDB 1.5.5 then reads each row twice, and shows deletes that are not asked for.
    """
    place = feeds.sqlite_place(tmp_path)
    deletes = ("DELETE FROM t WHERE i BETWEEN 11 AND 25", "DELETE FROM t WHERE i = 26")
    feeds.written(place, (*TWENTY, *deletes, REWRITE), inline=10)
    right, known = feeds.differences(place), feeds.theirs(place)
    feeds.written(place, [FLUSH])
    with Lake.attach(place.uri, data_path=place.data_path, spark=spark) as lake:
        contents = feeds.ours(lake, known)
        table = lake.table("t")
        before = [table.to_df(version=version).count() for version in (4, 5, 6)]
        listed = [file for file in table.list_files(version=6) if file.delete_file]
    assert {at: feeds.net(feed) for at, feed in contents.items()} == {
        at: feeds.within(right, at) for at in known
    }
    assert before == [24, 9, 8]
    assert len(listed) == 2
    assert len({file.data_file for file in listed}) == 1
