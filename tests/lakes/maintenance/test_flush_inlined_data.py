"""Rows and deletes of the catalog as files: DuckDB reads every snapshot as before.

Tests ``lakes/catalog/inlined/flush.py``, ``lakes/maintenance/compaction.py``.

Tests ``lakes/maintenance/scope.py`` (which tables and schemas are meant).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from penstock.errors import UnsupportedFeature
from penstock.lakes.catalog.catalog import Catalog
from penstock.lakes.catalog.database.metadata import inlined_data_tables
from penstock.lakes.lake import Lake
from penstock.lakes.maintenance.flush_inlined_data import FlushedTable, flush_inlined_data
from tests import duck
from tests.lakes.catalog.conftest import Place

SCRIPT = (
    "CREATE TABLE t (a INTEGER, b VARCHAR)",
    "INSERT INTO t VALUES (1, 'x'), (2, NULL)",
    "UPDATE t SET b = 'u' WHERE a = 1",
    "DELETE FROM t WHERE a = 2",
    "ALTER TABLE t ADD COLUMN c INTEGER DEFAULT 5",
    "INSERT INTO t VALUES (0, 'zz', 1)",
    "ALTER TABLE t DROP COLUMN b",
    "UPDATE t SET c = 9 WHERE a < 2",
    "CREATE TABLE p (a INTEGER, b VARCHAR, f DOUBLE[], m MAP(VARCHAR, DOUBLE))",
    "ALTER TABLE p SET PARTITIONED BY (b, bucket(3, a))",
    "ALTER TABLE p SET SORTED BY (a DESC)",
    "INSERT INTO p VALUES (1, 'x', ['nan'], MAP {'k': 1.5}), (2, NULL, NULL, NULL), "
    "(3, 'x', [1], NULL)",
    "DELETE FROM p WHERE a = 3",
    "CREATE TABLE f (a INTEGER)",
    "INSERT INTO f SELECT i FROM range(30) r(i)",
    "DELETE FROM f WHERE a < 12",
    "DELETE FROM f WHERE a = 15",
    "DELETE FROM f WHERE a = 16",
    "CREATE TABLE gone (a INTEGER)",
    "INSERT INTO gone VALUES (1)",
    "DELETE FROM gone",
)
# The snapshots that made and changed each table; after these it stays as it is.
TABLES = {"t": range(1, 9), "p": range(9, 14), "f": range(14, 19), "gone": range(19, 22)}


@dataclass(frozen=True)
class _Lake:
    catalog: Catalog


def _states(connection: Any) -> dict[tuple[str, int], list[str]]:
    """Each table at its snapshots and the last one with its row ids, and what each changed."""
    states = {}
    for name, snapshots in TABLES.items():
        for at in sorted({*snapshots, len(SCRIPT)}):
            rows = connection.execute(f"SELECT rowid, * FROM {name} AT (VERSION => {at})")
            states[name, at] = sorted(map(repr, rows.fetchall()))
            feed = connection.execute(f"FROM lk.table_changes('{name}', {at}, {at})")
            states[f"changes of {name}", at] = sorted(map(repr, feed.fetchall()))
    return states


def test_every_snapshot_and_the_feed_stay_what_they_were(each_place: Place) -> None:
    with duck.attach(each_place.uri, each_place.data_path, inline=10) as connection:
        for statement in SCRIPT:
            connection.execute(statement)
        before = _states(connection)
    with each_place.open() as catalog:
        assert flush_inlined_data(_Lake(catalog)) == [
            FlushedTable("main", "gone", 1),
            FlushedTable("main", "p", 3),
            FlushedTable("main", "t", 6),
        ]
        assert flush_inlined_data(_Lake(catalog)) == []
        assert catalog.latest().id == len(SCRIPT) + 1
        assert "inline_flush:" in catalog.latest().changes
    with duck.attach(each_place.uri, inline=10) as connection:
        after = _states(connection)
        assert {key: rows for key, rows in after.items() if rows != before[key]} == {}
        left = connection.execute("SELECT count(*) FROM ducklake_list_files('lk', 't')").fetchone()
        assert left == (3,)  # one for each version of the columns that had rows
        connection.execute("INSERT INTO t VALUES (7, 7)")
        connection.execute("DELETE FROM t WHERE a = 1")
        assert sorted(connection.execute("FROM t").fetchall()) == [(0, 9), (7, 7)]


@pytest.mark.postgres
def test_a_duckdb_that_stays_attached_reads_on(postgres_uri: str, tmp_path: Path) -> None:
    """Its process would be lost where an inlined table that it knows is gone."""
    with duck.attach(postgres_uri, tmp_path, inline=10) as connection:
        connection.execute("CREATE TABLE t (i INTEGER); INSERT INTO t VALUES (1)")
        with Lake.attach(postgres_uri) as lake:
            lake.table("t").alter.add_column("s", "integer")
            assert connection.execute("FROM t").fetchall() == [(1, None)]
            assert lake.flush_inlined_data() == [FlushedTable("main", "t", 1)]
            assert connection.execute("FROM t").fetchall() == [(1, None)]
            connection.execute("INSERT INTO t VALUES (2, 3)")
            assert len(_inlined_tables(lake.catalog)) == 2
            lake.expire_snapshots(versions=range(10))
            assert len(_inlined_tables(lake.catalog)) == 1
    assert duck.rows(postgres_uri, "SELECT * FROM t ORDER BY i") == [(1, None), (2, 3)]


def _inlined_tables(catalog: Catalog) -> list[str]:
    with catalog.reading() as connection:
        return list(connection.execute(select(inlined_data_tables.c.table_name)).scalars())


def test_one_table_or_one_schema(place: Place) -> None:
    with duck.attach(place.uri, place.data_path, inline=10) as connection:
        connection.execute("CREATE SCHEMA s")
        for name in ("a", "b", "s.c"):
            connection.execute(f"CREATE TABLE {name} (i INTEGER)")
            connection.execute(f"INSERT INTO {name} VALUES (1)")
    with place.open() as catalog:
        lake = _Lake(catalog)
        assert flush_inlined_data(lake, "b") == [FlushedTable("main", "b", 1)]
        assert flush_inlined_data(lake, schema="s") == [FlushedTable("s", "c", 1)]
        assert flush_inlined_data(lake) == [FlushedTable("main", "a", 1)]


def test_a_type_that_is_not_written_keeps_no_other_table_back(place: Place) -> None:
    with duck.attach(place.uri, place.data_path, inline=10) as connection:
        connection.execute("CREATE TABLE a (i INTEGER)")
        connection.execute("INSERT INTO a VALUES (1)")
        connection.execute("CREATE TABLE t (i INTERVAL)")
        connection.execute("INSERT INTO t VALUES (INTERVAL '1 day')")
    with place.open() as catalog:
        with pytest.raises(UnsupportedFeature, match="interval"):
            flush_inlined_data(_Lake(catalog), "t")
        assert not [path for path in _files(catalog.data_path) if "-" in path]
        with pytest.raises(UnsupportedFeature, match="interval"):
            flush_inlined_data(_Lake(catalog))
        assert len(_files(catalog.data_path)) == 1
        assert catalog.latest().changes == "inline_flush:1"
        assert flush_inlined_data(_Lake(catalog), "a") == []


def test_in_a_lake_that_wants_messages(place: Place) -> None:
    with duck.attach(place.uri, place.data_path, inline=10) as connection:
        connection.execute("CREATE TABLE a (i INTEGER)")
        connection.execute("INSERT INTO a VALUES (1)")
        connection.execute("CALL lk.set_option('require_commit_message', true)")
    with place.open() as catalog:
        assert flush_inlined_data(_Lake(catalog)) == [FlushedTable("main", "a", 1)]
        assert catalog.latest().message == "flush of inlined data"


def _files(folder: str) -> list[str]:
    return [str(path) for path in Path(folder).rglob("*.parquet")]
