"""Penstock and DuckDB write one lake in turn: each builds on what the other left."""

from __future__ import annotations

import multiprocessing
import sqlite3
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.errors import CommitConflict
from penstock.lakes.lake import Lake
from tests import duck
from tests.lakes.catalog.conftest import Place
from tests.lakes.differential.conftest import Rows
from tests.lakes.differential.content import assert_feed, assert_same, expected, row_ids

pytestmark = pytest.mark.spark

KV = "k INT, v STRING"


def run(place: Place, *statements: str) -> None:
    with duck.attach(place.uri, place.data_path) as connection:
        for statement in statements:
            connection.execute(statement)


def test_rows_in_turn(each_lake: Lake, each_place: Place, rows: Rows) -> None:
    table = each_lake.table("t")
    table.append(rows(KV, [(i, "a") for i in range(6)]))
    run(each_place, "DELETE FROM t WHERE k = 0", "UPDATE t SET v = 'duck' WHERE k = 1")
    table.merge(rows(KV, [(1, "ours"), (2, "ours"), (7, "ours")]), ["k"])
    run(each_place, "UPDATE t SET v = 'again' WHERE k IN (1, 7)", "DELETE FROM t WHERE k = 2")
    table.merge(rows(KV, [(1, "last"), (3, "last")]), ["k"])
    history = assert_same(each_lake, each_place)
    assert history[7]["main.t"] == expected(
        ("k", "v"), [(1, "last"), (3, "last"), (4, "a"), (5, "a"), (7, "again")]
    )
    before, after = (row_ids(each_place, "t", "k", version) for version in (1, 7))
    assert [after[key] for key in (1, 3, 4, 5)] == [before[key] for key in (1, 3, 4, 5)]
    assert_feed(each_place, "t", 1, 7)


def test_columns_in_turn(lake: Lake, place: Place, rows: Rows) -> None:
    table = lake.table("t")
    table.append(rows("k INT, v STRING, l ARRAY<INT>", [(1, "a", [1, None]), (2, "b", None)]))
    run(place, "ALTER TABLE t ADD COLUMN n INT DEFAULT 5", "ALTER TABLE t RENAME COLUMN v TO w")
    table.append(rows("k INT, w STRING", [(3, "c")]))
    run(place, "ALTER TABLE t DROP COLUMN l", "ALTER TABLE t ALTER k SET DATA TYPE BIGINT")
    table.merge(rows("k BIGINT, n INT", [(1, 6), (4, 7)]), ["k"])
    run(place, "UPDATE t SET w = 'duck' WHERE k IN (1, 2, 3)")
    table.replace(rows("k BIGINT, w STRING, n INT", [(9, "all", None)]))
    history = assert_same(lake, place)
    assert history[7]["main.t"] == expected(
        ("k", "w", "n"), [(1, "a", 6), (2, "b", 5), (3, "c", 5), (4, None, 7)]
    )


def test_partitions_in_turn(lake: Lake, place: Place, rows: Rows) -> None:
    run(place, "CREATE TABLE t(k INT, p VARCHAR)", "ALTER TABLE t SET PARTITIONED BY (p)")
    run(place, "INSERT INTO t VALUES (1, 'a b/%'), (2, NULL), (3, '')")
    table = lake.table("t")
    table.replace_slice(rows("k INT", [(10,)]), "p", "a b/%")
    table.append(rows("k INT, p STRING", [(11, "c"), (12, None)]))
    run(place, "UPDATE t SET p = 'moved' WHERE k = 11", "DELETE FROM t WHERE p IS NULL AND k = 2")
    table.replace_slice(rows("k INT", [(13,)]), "p", "moved")
    table.replace_slice(rows("k INT", [(14,)]), "p", "")
    history = assert_same(lake, place)
    last = max(history)
    assert history[last]["main.t"] == expected(
        ("k", "p"), [(10, "a b/%"), (12, None), (13, "moved"), (14, "")]
    )
    assert_feed(place, "t", 3, last)


def test_types_of_duckdb_are_written_by_us(lake: Lake, place: Place, rows: Rows) -> None:
    run(place, "CREATE TABLE t(u UUID, j JSON, b UTINYINT, s TIMESTAMP_S, m MAP(INT, UUID))")
    first, second = "00112233-4455-6677-8899-aabbccddeeff", "f0112233-4455-6677-8899-aabbccddeeff"
    columns = "u STRING, j STRING, b SHORT, m MAP<INT, STRING>"
    table = lake.table("t")
    table.append(rows(columns, [(first, "{}", 255, {1: second}), (second, "[1]", 0, {})]))
    run(place, f"INSERT INTO t(u, b) VALUES ('{second}', 7)", "DELETE FROM t WHERE b = 0")
    table.merge(rows("u STRING, b SHORT", [(first.upper(), 1), (second, 2)]), ["u"])
    assert_same(lake, place)


def test_compacted_by_duckdb(lake: Lake, place: Place, rows: Rows) -> None:
    table = lake.table("t")
    table.append(rows(KV, [(i, "a") for i in range(6)]))
    table.merge(rows(KV, [(1, "b"), (7, "b")]), ["k"])
    table.merge(rows(KV, [(1, "c"), (2, "c")]), ["k"])
    before = row_ids(place, "t", "k", 3)
    run(place, "CALL ducklake_rewrite_data_files('lk', delete_threshold => 0)")
    assert_same(lake, place)
    run(place, "CALL ducklake_merge_adjacent_files('lk')")
    table.merge(rows(KV, [(0, "d"), (8, "d")]), ["k"])
    last = lake.snapshots()[-1].id
    assert {k: i for k, i in row_ids(place, "t", "k", last).items() if k != 8} == before


def _delete(place: Place) -> None:
    run(place, "DELETE FROM t WHERE k = 1")


def test_their_commit_between_ours(lake: Lake, place: Place, rows: Rows) -> None:
    """Rows that both change conflict; rows that are added do not."""
    lake.table("t").append(rows(KV, [(i, "a") for i in range(4)]))
    merging, adding = lake.transaction(), lake.transaction()
    merging.table("t").merge(rows(KV, [(2, "b")]), ["k"])
    adding.table("t").append(rows(KV, [(9, "z")]))
    process = multiprocessing.get_context("spawn").Process(target=_delete, args=(place,))
    process.start()
    process.join(60)
    assert process.exitcode == 0
    with pytest.raises(CommitConflict):
        merging.commit()
    assert adding.commit() is not None
    history = assert_same(lake, place)
    assert history[3]["main.t"] == expected(("k", "v"), [(0, "a"), (2, "a"), (3, "a"), (9, "z")])


def test_files_without_ids_and_mapping(lake: Lake, place: Place, rows: Rows) -> None:
    """As 0.3 added them: read, deleted from and compacted by the names that columns had."""
    added = place.data_path + "elsewhere.parquet"
    run(place, "CREATE TABLE t (k INT, v VARCHAR)")
    Path(added).parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"k": pa.array(range(6), pa.int32()), "v": list("abcdef")}), added)
    run(place, f"CALL ducklake_add_data_files('lk', 't', '{added}')")
    with closing(sqlite3.connect(place.uri.removeprefix("ducklake:sqlite:"))) as catalog:
        catalog.execute("UPDATE ducklake_data_file SET mapping_id = NULL")
        catalog.commit()
    run(place, "ALTER TABLE t RENAME v TO w", "ALTER TABLE t RENAME k TO v")
    assert lake.sql("DELETE FROM t WHERE v = 1").collect()
    run(place, "DELETE FROM t WHERE v = 2", "ALTER TABLE t RENAME v TO id")
    lake.sql("UPDATE t SET w = 'new' WHERE id = 3")
    history = assert_same(lake, place)
    assert history[max(history)]["main.t"] == expected(
        ("id", "w"), [(0, "a"), (3, "new"), (4, "e"), (5, "f")]
    )
    lake.rewrite_data_files("main.t", delete_threshold=0)
    assert_same(lake, place)
