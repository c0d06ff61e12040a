"""Expiry: which snapshots, and that the catalog holds afterwards what DuckDB's would.

Tests ``lakes/catalog/snapshots/expiry.py`` (which snapshots go).
"""

from __future__ import annotations

import datetime as dt
import shutil
from pathlib import Path
from typing import Any

import pytest

from penstock.errors import ArgumentError, SnapshotNotFound
from penstock.lakes.catalog.catalog import Catalog
from penstock.lakes.catalog.database import metadata as t
from tests.lakes.catalog.conftest import Place
from tests.lakes.maintenance.lakes import maintain, play

MANY = (
    *("CREATE TABLE t(i INT, s VARCHAR, r STRUCT(a INT))", "CREATE TABLE keep(i INT, s VARCHAR)"),
    *("INSERT INTO keep VALUES (1, 'a')", "INSERT INTO t VALUES (1, 'a', {'a': 1})"),
    *("COMMENT ON TABLE t IS 'x'", "COMMENT ON COLUMN t.i IS 'y'", "COMMENT ON TABLE keep IS 'z'"),
    *("ALTER TABLE t SET PARTITIONED BY (s)", "ALTER TABLE keep SET PARTITIONED BY (s)"),
    *("INSERT INTO keep VALUES (2, 'b')", "ALTER TABLE keep RESET PARTITIONED BY"),
    *("ALTER TABLE t SET SORTED BY (i ASC)", "INSERT INTO t VALUES (2, 'b', NULL)"),
    *("DELETE FROM t WHERE i = 1", "ALTER TABLE keep ADD COLUMN j INT"),
    *("ALTER TABLE keep DROP COLUMN j", "ALTER TABLE keep RENAME TO kept"),
    *("CREATE VIEW v AS SELECT 1 AS x", "COMMENT ON VIEW v IS 'v'", "DROP VIEW v"),
    *("CREATE MACRO m(a) AS a + 1", "DROP MACRO m", "CREATE SCHEMA sc"),
    *("CREATE TABLE sc.x(i INT)", "INSERT INTO sc.x VALUES (1)", "DROP TABLE sc.x"),
    *("DROP SCHEMA sc", "UPDATE kept SET s = 'q' WHERE i = 2", "DROP TABLE t"),
)


def _content(uri: str) -> dict[str, Any]:
    """Every row of every table of the format, but when files were scheduled."""
    with Catalog.open(uri) as catalog, catalog.reading() as connection:
        content: dict[str, Any] = {
            table.name: sorted(map(str, connection.execute(table.select()).all()))
            for table in t.METADATA.tables.values()
        }
        c = t.files_scheduled_for_deletion.c
        listed = connection.execute(t.files_scheduled_for_deletion.select().order_by(c.path)).all()
        content[t.files_scheduled_for_deletion.name] = [tuple(row[:3]) for row in listed]
    return content


def test_as_duckdb_does_it(place: Place, tmp_path: Path) -> None:
    play(place, ["CALL lk.set_option('data_inlining_row_limit', 0)", *MANY])
    shutil.copy(tmp_path / "meta.sqlite", tmp_path / "theirs.sqlite")
    theirs = Place(f"ducklake:sqlite:{tmp_path / 'theirs.sqlite'}", place.data_path)
    play(theirs, ["CALL ducklake_expire_snapshots('lk', older_than => now())"])
    maintain(place, "expire_snapshots", older_than=dt.datetime.now(dt.UTC))
    assert _content(place.uri) == _content(theirs.uri)


def test_inlined_rows_that_nobody_sees(each_place: Place) -> None:
    rows = ["CREATE TABLE t(i INT)", "INSERT INTO t VALUES (1), (2)", "DELETE FROM t WHERE i = 1"]
    gone = ["CREATE TABLE gone(i INT)", "INSERT INTO gone VALUES (1)", "DROP TABLE gone"]
    play(each_place, [*rows, *gone], inline=10)
    expired = maintain(each_place, "expire_snapshots", older_than=dt.datetime.now(dt.UTC))
    assert [row.snapshot_id for row in expired] == [0, 1, 2, 3, 4, 5]
    with Catalog.open(each_place.uri) as catalog, catalog.reading() as connection:
        (name,) = connection.execute(t.inlined_data_tables.select()).scalars("table_name").all()
        left = connection.exec_driver_sql(f"SELECT i FROM {name}").all()
    assert [tuple(row) for row in left] == [(2,)]


def test_which_snapshots(place: Place) -> None:
    play(place, ["CREATE TABLE t(i INT)", "INSERT INTO t VALUES (1)", "INSERT INTO t VALUES (2)"])
    assert maintain(place, "expire_snapshots") == []
    would = maintain(place, "expire_snapshots", versions=[1, 3, 99], dry_run=True)
    assert [(row.snapshot_id, row.changes) for row in would] == [(1, 'created_table:"main"."t"')]
    play(place, ["CALL lk.set_option('expire_older_than', '1 day')"])
    assert maintain(place, "expire_snapshots") == []
    play(place, ["CALL lk.set_option('expire_older_than', '0 seconds')"])
    assert [row.snapshot_id for row in maintain(place, "expire_snapshots")] == [0, 1, 2]
    with pytest.raises(ArgumentError, match="not both"):
        maintain(place, "expire_snapshots", versions=[1], older_than=dt.datetime.now(dt.UTC))
    with pytest.raises(ArgumentError, match="zone"):
        maintain(place, "expire_snapshots", older_than=dt.datetime(2026, 1, 1))  # noqa: DTZ001 - refused
    with pytest.raises(ArgumentError, match="'2026-01-01', which is not a datetime"):
        maintain(place, "expire_snapshots", older_than="2026-01-01")


def test_a_snapshot_that_expires_under_a_reader_is_no_table_with_fewer_rows(place: Place) -> None:
    play(
        place,
        [
            "CALL lk.set_option('data_inlining_row_limit', 0)",
            "CREATE TABLE t(i INT)",
            "INSERT INTO t VALUES (1)",
            "DELETE FROM t",
            "INSERT INTO t VALUES (2)",
        ],
    )
    with Catalog.open(place.uri) as catalog:
        old = next(
            snapshot.id for snapshot in catalog.snapshots() if "inserted" in snapshot.changes
        )
        table = catalog.table("main", "t", old)
        assert len(catalog.files(table, old).files) == 1
        maintain(place, "expire_snapshots", versions=[old])
        with pytest.raises(SnapshotNotFound, match=f"snapshot {old} does not exist"):
            catalog.files(table, old)
