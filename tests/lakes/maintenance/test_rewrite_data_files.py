"""Rewriting: which files, what is left of the old ones, and that nothing else is to be seen."""

from __future__ import annotations

import pytest

from penstock.errors import ArgumentError
from penstock.lakes.catalog.catalog import Catalog
from penstock.lakes.maintenance.scope import Compacted
from tests import duck
from tests.lakes.catalog.conftest import Place
from tests.lakes.maintenance.lakes import maintain, play, seen

TABLE = ["CREATE TABLE t(i INT, s VARCHAR)"]
ROWS = "INSERT INTO t SELECT i, 's' || i FROM range({}, {}) x(i)"


def test_rows_ids_and_history_stay(each_place: Place) -> None:
    inserts = [ROWS.format(0, 10), ROWS.format(10, 20)]
    changes = ["DELETE FROM t WHERE i % 10 < 4", "UPDATE t SET s = 'x' WHERE i IN (5, 15)"]
    play(each_place, [*TABLE, *inserts, *changes, "DELETE FROM t WHERE i = 17"])
    before = seen(each_place)
    last = max(key for key in before if isinstance(key, int))
    rewritten = maintain(each_place, "rewrite_data_files", delete_threshold=0.5)
    assert rewritten == [Compacted("main", "t", 2, 1)]
    assert seen(each_place, last) == before
    assert seen(each_place)[last + 1] == before[last]


def test_the_rows_that_duckdb_leaves_in_the_catalog(place: Place) -> None:
    play(place, [*TABLE, ROWS.format(0, 10), "DELETE FROM t WHERE i < 5", ROWS.format(10, 12)])
    maintain(place, "rewrite_data_files", delete_threshold=0.5)
    with Catalog.open(place.uri) as catalog, catalog.reading() as connection:
        files = connection.exec_driver_sql(
            "SELECT begin_snapshot, end_snapshot, record_count, row_id_start, partial_max "
            "FROM ducklake_data_file ORDER BY data_file_id"
        ).all()
        deletes = connection.exec_driver_sql(
            "SELECT begin_snapshot, end_snapshot FROM ducklake_delete_file"
        ).all()
        rows = connection.exec_driver_sql(
            "SELECT record_count, next_row_id FROM ducklake_table_stats"
        ).one()
        assert catalog.latest().changes == "rewrite_delete:1"
    assert files == [(2, 5, 10, 0, None), (4, None, 2, 10, None), (5, None, 5, None, None)]
    assert deletes == [(3, 5)]
    assert tuple(rows) == (7, 12)


def test_deletes_that_the_catalog_holds_count(place: Place) -> None:
    deletes = ["DELETE FROM t WHERE i = 1", "DELETE FROM t WHERE i = 3"]
    play(place, [*TABLE, ROWS.format(0, 20), *deletes], inline=5)
    assert maintain(place, "rewrite_data_files") == []
    assert maintain(place, "rewrite_data_files", delete_threshold=0.1, dry_run=True)
    before = seen(place)
    maintain(place, "rewrite_data_files", delete_threshold=0.1)
    assert seen(place, 4) == before
    assert duck.rows(place.uri, "SELECT count(*), min(rowid) FROM t") == [(18, 0)]


def test_a_flush_by_duckdb_after_it_shows_no_row_twice(place: Place) -> None:
    """DuckDB 1.5.5 flushes inlined deletes of files that have ended, beside what these had."""
    deletes = ["DELETE FROM t WHERE i < 4", "CALL ducklake_flush_inlined_data('lk')"]
    play(place, [*TABLE, ROWS.format(0, 20), *deletes, "DELETE FROM t WHERE i = 7"], inline=5)
    before = seen(place)
    maintain(place, "rewrite_data_files", delete_threshold=0)
    play(place, ["CALL ducklake_flush_inlined_data('lk')"], inline=5)
    assert seen(place, 5) == before


def test_columns_that_came_and_went(place: Place) -> None:
    """The new file has the old columns, by their ids; what is new has its default."""
    more = ["ALTER TABLE t ADD COLUMN z INT DEFAULT 5", "ALTER TABLE t RENAME COLUMN s TO name"]
    play(place, [*TABLE, ROWS.format(0, 10), "DELETE FROM t WHERE i < 5", *more])
    play(place, ["ALTER TABLE t ALTER i SET DATA TYPE BIGINT", "ALTER TABLE t DROP COLUMN name"])
    before = duck.rows(place.uri, "SELECT rowid, * FROM t")
    maintain(place, "rewrite_data_files", delete_threshold=0)
    assert duck.rows(place.uri, "SELECT rowid, * FROM t") == before
    assert before[0] == (5, 5, 5)


def test_by_option(place: Place) -> None:
    play(place, [*TABLE, ROWS.format(0, 10), "DELETE FROM t WHERE i < 5"])
    play(place, ["CALL lk.set_option('rewrite_delete_threshold', '0.3')"])
    assert maintain(place, "rewrite_data_files", table="t") == [Compacted("main", "t", 1, 1)]
    with pytest.raises(ArgumentError, match="delete_threshold"):
        maintain(place, "rewrite_data_files", delete_threshold=2)
