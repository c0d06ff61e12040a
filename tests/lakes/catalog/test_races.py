"""Writers side by side: threads, processes, DuckDB, and a connection cut during COMMIT.

Tests ``lakes/catalog/commits/retry.py`` and ``lakes/catalog/commits/commit.py``.
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pyarrow as pa
import pytest
from sqlalchemy import Connection, event

from penstock.errors import CommitConflict, CommitUnknown
from penstock.lakes.catalog.catalog import Catalog
from penstock.lakes.catalog.commits.retry import RetryPolicy
from penstock.lakes.format.changes import ChangeSet, NewView
from tests import duck
from tests.lakes.catalog import staging
from tests.lakes.catalog.conftest import Place

IV = staging.columns(id="int64")


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64())})


def _append_many(place: Place, start: int, count: int) -> None:
    with place.open() as lake:
        for at in range(start, start + count):
            staging.append(lake, "t", rows(at))


def test_two_processes_append_at_once(place: Place) -> None:
    with place.open() as lake:
        staging.create(lake, "t", IV, rows(0))
    context = multiprocessing.get_context("spawn")
    processes = [
        context.Process(target=_append_many, args=(place, start, 15)) for start in (100, 200)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0, 0]
    expected = [(0,), *((i,) for start in (100, 200) for i in range(start, start + 15))]
    assert duck.rows(place.uri, "SELECT id FROM t") == sorted(expected, key=repr)
    ids = duck.rows(place.uri, "SELECT count(DISTINCT rowid), count(*), max(rowid) FROM t")
    assert ids == [(31, 31, 30)]


def test_threads_share_a_catalog(lake: Catalog) -> None:
    base = staging.create(lake, "t", IV, rows(0))
    table = lake.table("main", "t", base.id)

    def add(at: int) -> int:
        file = staging.stage(table.path, IV, rows(at))
        return staging.change(lake, table, base, add=(file,)).id

    with ThreadPoolExecutor(8) as pool:
        ids = list(pool.map(add, range(24)))
    assert sorted(ids) == list(range(2, 26))
    files = lake.files(table, 25).files
    assert sorted(f.row_id_start or 0 for f in files) == list(range(25))


def _attached(uri: str) -> duckdb.DuckDBPyConnection:
    """DuckDB gives up at once where another process has the file, which ours has now and then."""
    for _ in range(200):
        try:
            return duck.attach(uri)
        except duckdb.Error:
            time.sleep(0.05)
    return duck.attach(uri)


def _insert_many(uri: str, count: int) -> None:
    theirs = _attached(uri)
    theirs.execute("SET ducklake_max_retry_count = 100")
    left = list(range(count))
    while left:
        try:
            theirs.execute(f"INSERT INTO t VALUES ({left[0]})")
        except duckdb.Error:  # "database is locked": on SQLite it gives up where we wait
            continue
        left.pop(0)


def test_duckdb_and_we_append_at_once(place: Place) -> None:
    with place.open() as lake:
        staging.create(lake, "t", IV, rows(0))
        # In a process of its own: two SQLite libraries in one process undo each other's locks.
        context = multiprocessing.get_context("spawn")
        process = context.Process(target=_insert_many, args=(place.uri, 20))
        process.start()
        while lake.latest().id == 1 and process.is_alive():
            time.sleep(0.05)
        for at in range(100, 110):
            staging.append(lake, "t", rows(at))
        process.join(60)
        assert process.exitcode == 0
    expected = sorted([(0,), *((i,) for i in [*range(20), *range(100, 110)])], key=repr)
    assert duck.rows(place.uri, "SELECT id FROM t") == expected
    assert duck.rows(place.uri, "SELECT count(DISTINCT rowid) FROM t") == [(31,)]


def test_appends_follow_each_other_but_deletes_do_not(lake: Catalog) -> None:
    base = staging.create(lake, "t", IV, rows(0, 1))
    table = lake.table("main", "t", base.id)
    (file,) = lake.files(table, base.id).files

    def delete() -> None:
        deletes = staging.stage_deletes(table.path, file.path, [1])
        staging.change(lake, table, base, deletes={0: deletes})

    staging.change(lake, table, base, add=(staging.stage(table.path, IV, rows(5)),))
    delete()  # an insert does not conflict
    with pytest.raises(CommitConflict, match=r"snapshot 3.*deleted rows of main\.t"):
        delete()
    staging.change(lake, table, base, add=(staging.stage(table.path, IV, rows(6)),))
    with pytest.raises(CommitConflict, match="changed rows of"):
        staging.change(lake, table, base, end=(0,), depends_on_rows=True)
    assert lake.latest().id == 4


def test_two_create_one_table(lake: Catalog) -> None:
    base = lake.latest()
    staging.create(lake, "t", IV)
    with pytest.raises(CommitConflict, match=r"created main\.T"):
        lake.commit(base, staging.change_set("T", create=staging.new_table(lake, "T", IV)))


def _cut(uri: str, *, after_commit: bool, for_good: bool = False) -> Callable[..., None]:
    """Makes the next COMMIT of a snapshot lose its connection, before or after it has worked."""
    conninfo = uri.removeprefix("ducklake:postgres:")
    left = [1]

    def cut(connection: Connection) -> None:
        raw: Any = connection.connection.dbapi_connection
        written = "SELECT 1 FROM ducklake_snapshot WHERE xmin = pg_current_xact_id()::xid"
        # Asked of the driver: what was sent before may not have been answered yet.
        if not left or raw.execute(written).fetchone() is None:
            return
        left.clear()
        pid = raw.info.backend_pid
        if after_commit:
            raw.commit()
            raw.execute("SELECT 1")  # else there would be nothing left to commit
        with psycopg.connect(conninfo.replace(raw.info.dbname, "postgres", 1)) as other:
            other.autocommit = True
            if for_good:
                other.execute(f"ALTER DATABASE {raw.info.dbname} ALLOW_CONNECTIONS false")
            other.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])

    return cut


@pytest.mark.postgres
@pytest.mark.parametrize("landed", [True, False])
def test_connection_lost_at_commit(postgres_uri: str, tmp_path: Path, landed: bool) -> None:
    with Catalog.open(postgres_uri, data_path=str(tmp_path)) as lake:
        event.listen(lake._engine, "commit", _cut(postgres_uri, after_commit=landed))
        done = staging.create(lake, "t", IV, rows(1))
        assert done == lake.latest()
        assert [s.id for s in lake.snapshots()] == [0, 1]
        assert len(lake.files(lake.table("main", "t", 1), 1).files) == 1


@pytest.mark.postgres
@pytest.mark.parametrize("landed", [True, False])
def test_a_definition_alone_is_found_too(postgres_uri: str, tmp_path: Path, landed: bool) -> None:
    with Catalog.open(postgres_uri, data_path=str(tmp_path)) as lake:
        event.listen(lake._engine, "commit", _cut(postgres_uri, after_commit=landed))
        changes = ChangeSet(create_schemas=("s",), create_views=(NewView("s", "v", "SELECT 1"),))
        done = lake.commit(lake.latest(), changes)
        assert done == lake.latest()
        assert [s.id for s in lake.snapshots()] == [0, 1]
        assert lake.schemas(1) == ["main", "s"]


@pytest.mark.postgres
def test_nobody_to_ask_is_unknown(postgres_uri: str, tmp_path: Path) -> None:
    quick = RetryPolicy(wait=0.01)
    with Catalog.open(postgres_uri, data_path=str(tmp_path), retry=quick) as lake:
        cut = _cut(postgres_uri, after_commit=False, for_good=True)
        event.listen(lake._engine, "commit", cut)
        with pytest.raises(CommitUnknown, match="snapshot 1") as caught:
            staging.create(lake, "t", IV)
    assert caught.value.data["snapshot"] == 1
