"""Errors of a catalog have a clear message, chosen by error codes.

Tests ``lakes/catalog/database/engine.py`` (engines and transactions of the three databases).
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import cast

import duckdb
import psycopg
import pyarrow as pa
import pytest
from sqlalchemy import Connection, exc, text

from penstock.errors import (
    CatalogCancelled,
    CatalogCorrupt,
    CatalogFull,
    CatalogLocked,
    CatalogMissing,
    CatalogUnreachable,
    CatalogVersionUnsupported,
    ConfigError,
    DataPathError,
    ReadOnlyLake,
    UnsupportedFeature,
)
from penstock.lakes.catalog.catalog import Catalog
from penstock.lakes.methods import set_option
from penstock.lakes.recovery.backup import backup
from tests import duck
from tests.lakes.catalog import staging
from tests.lakes.catalog.conftest import Place

IV = staging.columns(id="int64")


def test_locked_by_another_connection(sqlite_place: Place) -> None:
    path = sqlite_place.uri.removeprefix("ducklake:sqlite:")
    with sqlite_place.open(lock_timeout=0.1) as lake:
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        assert lake.latest().id == 0  # reading goes on
        with pytest.raises(CatalogLocked, match="run again"):
            staging.create(lake, "t", IV)
        other.execute("ROLLBACK")
        assert staging.create(lake, "t", IV).id == 1
        other.close()


@pytest.mark.parametrize("write", ["commit", "option"])
def test_a_reader_that_stays_keeps_a_commit_out_and_nothing_else(
    sqlite_place: Place, write: str
) -> None:
    reader, third = (
        sqlite3.connect(sqlite_place.uri.removeprefix("ducklake:sqlite:"), timeout=0.1)
        for _ in range(2)
    )
    with sqlite_place.open(lock_timeout=0.1) as lake:
        acts: dict[str, Callable[[], object]] = {
            "commit": lambda: staging.create(lake, "t", IV),
            "option": lambda: set_option(lake, "parquet_compression", "zstd"),
        }
        with closing(reader), closing(third):
            reader.execute("BEGIN")
            reader.execute("SELECT * FROM ducklake_snapshot").fetchall()
            with pytest.raises(CatalogLocked, match="run again"):
                acts[write]()
            assert third.execute("SELECT max(snapshot_id) FROM ducklake_snapshot").fetchone() == (
                0,
            )
            assert lake.latest().id == 0
            reader.rollback()
            acts[write]()


def test_a_commit_is_tried_again_when_the_reader_goes(sqlite_place: Place) -> None:
    path = sqlite_place.uri.removeprefix("ducklake:sqlite:")
    with sqlite_place.open(lock_timeout=0.4) as lake:
        reader = sqlite3.connect(path, check_same_thread=False)
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM ducklake_snapshot").fetchall()
        later = threading.Timer(0.6, reader.close)  # after the first COMMIT, before the second ends
        later.start()
        assert staging.create(lake, "t", IV).id == 1
        later.join()


HOT = """
import os, sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("PRAGMA cache_size = 1")
connection.execute("BEGIN IMMEDIATE")
connection.execute("UPDATE ducklake_metadata SET value = 'x'")
connection.execute("CREATE TABLE filler AS SELECT randomblob(100000) AS b")
os._exit(9)
"""


def _killed_in_commit(place: Place) -> Path:
    """The catalog of a writer that was killed when it had written to it."""
    path = Path(place.uri.removeprefix("ducklake:sqlite:"))
    place.open().close()
    subprocess.run([sys.executable, "-c", HOT, path], check=False)
    assert Path(f"{path}-journal").stat().st_size
    return path


def test_what_a_killed_writer_began_is_undone_by_a_reader(
    sqlite_place: Place, tmp_path: Path
) -> None:
    path = _killed_in_commit(sqlite_place)
    with Catalog.open(sqlite_place.uri, read_only=True) as lake:
        assert lake.latest().id == 0
        assert not Path(f"{path}-journal").exists()
        _killed_in_commit(sqlite_place)
        assert lake.latest().id == 0  # by a connection that was there before
        _killed_in_commit(sqlite_place)
        assert backup(lake, tmp_path / "b.bak").snapshot == 0


def test_a_reader_that_may_not_undo_it_says_who_may() -> None:
    with tempfile.TemporaryDirectory() as folder:  # that any user may enter
        place = Place(f"ducklake:sqlite:{folder}/meta.sqlite", f"{folder}/data/")
        path = _killed_in_commit(place)
        for target, mode in ((path, 0o444), (Path(f"{path}-journal"), 0o444), (path.parent, 0o555)):
            target.chmod(mode)
        user = os.geteuid()
        if user == 0:
            os.seteuid(65534)
        try:
            with pytest.raises(CatalogUnreachable, match="killed while it committed") as caught:
                Catalog.open(place.uri, read_only=True)
        finally:
            os.seteuid(user)
            path.parent.chmod(0o755)
    assert "nothing is lost" in str(caught.value)


@pytest.mark.postgres
def test_locked_on_postgres(postgres_uri: str, tmp_path: Path) -> None:
    first = Catalog.open(postgres_uri, data_path=str(tmp_path), lock_timeout=0.1)
    with first as lake, Catalog.open(postgres_uri) as other:
        with other.writing():
            assert lake.latest().id == 0
            with pytest.raises(CatalogLocked):
                staging.create(lake, "t", IV)
        assert staging.create(lake, "t", IV).id == 1


# What the server cancels: a wait for a lock, by its timeout, and a trigger that COMMIT runs.
_SLOW = {
    "a statement": ["LOCK TABLE ducklake_snapshot IN ACCESS EXCLUSIVE MODE"],
    "its COMMIT": [
        "CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS "
        "'BEGIN PERFORM pg_cancel_backend(pg_backend_pid()); PERFORM pg_sleep(5); "
        "RETURN NULL; END'",
        "CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON ducklake_snapshot "
        "DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION wait()",
        "COMMIT",
    ],
}


@pytest.mark.postgres
@pytest.mark.parametrize("slow", _SLOW)
def test_cancelled_by_the_server(postgres_uri: str, tmp_path: Path, slow: str) -> None:
    conninfo = postgres_uri.removeprefix("ducklake:postgres:")
    Catalog.open(postgres_uri, data_path=str(tmp_path)).close()
    impatient = f"{postgres_uri} options='-c statement_timeout=300'"
    with psycopg.connect(conninfo) as other, Catalog.open(impatient) as lake:
        for statement in _SLOW[slow]:
            other.execute(statement)
        with pytest.raises(CatalogCancelled, match="statement_timeout") as caught:
            staging.create(lake, "t", IV)
        assert "nothing was changed" in str(caught.value)
        other.execute("ROLLBACK")
        other.execute("DROP TRIGGER IF EXISTS slow ON ducklake_snapshot")
        other.commit()
        assert [snapshot.id for snapshot in lake.snapshots()] == [0]
        assert staging.create(lake, "t", IV).id == 1


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (b"no database at all, just some text" * 40, CatalogCorrupt),
        (None, CatalogUnreachable),  # a directory
    ],
)
def test_no_catalog(tmp_path: Path, content: bytes | None, error: type[Exception]) -> None:
    path = tmp_path / "meta.sqlite"
    if content is None:
        path.mkdir()
    else:
        path.write_bytes(content)
    with pytest.raises(error, match=r"meta\.sqlite"):
        Catalog.open(f"ducklake:sqlite:{path}")


def test_a_parent_that_is_not_there_is_made(tmp_path: Path) -> None:
    with Catalog.open(f"ducklake:sqlite:{tmp_path}/a/b/meta.sqlite") as lake:
        assert lake.latest().id == 0


def test_empty_file_is_missing_without_creation(tmp_path: Path) -> None:
    (tmp_path / "meta.sqlite").touch()
    with pytest.raises(CatalogMissing):
        Catalog.open(f"ducklake:sqlite:{tmp_path}/meta.sqlite", create=False)


def test_damaged_pages(sqlite_place: Place) -> None:
    with sqlite_place.open() as lake:
        for name in "abc":
            staging.create(lake, name, IV)
    path = Path(sqlite_place.uri.removeprefix("ducklake:sqlite:"))
    content = bytearray(path.read_bytes())
    content[4096:] = b"\xff" * (len(content) - 4096)
    path.write_bytes(content)
    with pytest.raises(CatalogCorrupt, match="backup"):
        sqlite_place.open()


@pytest.mark.parametrize(
    ("statement", "error"),
    [
        (
            "UPDATE ducklake_metadata SET value = '0.2' WHERE key = 'version'",
            "0.3, 0.4, 1.0 and 1.1 are read",
        ),
        ("UPDATE ducklake_metadata SET value = '7.0' WHERE key = 'version'", "newer|version"),
        ("DELETE FROM ducklake_metadata WHERE key = 'version'", "no version"),
    ],
)
def test_other_versions(place: Place, statement: str, error: str) -> None:
    with place.open() as lake, lake.writing() as connection:
        connection.execute(text(statement))
    with pytest.raises(CatalogVersionUnsupported, match=error):
        place.open()


def test_lost_rows(place: Place) -> None:
    with place.open() as lake:
        with lake.writing() as connection:
            connection.execute(text("DELETE FROM ducklake_snapshot"))
        with pytest.raises(CatalogCorrupt, match="no snapshot"):
            lake.latest()
        with lake.writing() as connection:
            connection.execute(text("DROP TABLE ducklake_snapshot"))
        with pytest.raises(CatalogCorrupt):
            lake.latest()


def test_two_delete_files_at_once_are_corrupt(lake: Catalog) -> None:
    import pyarrow as pa

    staging.create(lake, "t", IV, pa.table({"id": [1, 2]}))
    table = lake.table("main", "t", 1)
    delete = staging.stage_deletes(table.path, "x", [0])
    staging.change(lake, table, deletes={0: delete})
    with lake.writing() as connection:
        connection.execute(
            text(
                "INSERT INTO ducklake_delete_file (delete_file_id, table_id, begin_snapshot, "
                "data_file_id, path, path_is_relative, format, delete_count, file_size_bytes) "
                "VALUES (99, 1, 2, 0, 'y', :yes, 'parquet', 1, 1)"
            ),
            {"yes": connection.dialect.name != "sqlite" or 1},
        )
    with pytest.raises(CatalogCorrupt, match="two delete files"):
        lake.files(table, 2)


def test_no_server(postgres_server: str) -> None:
    del postgres_server
    with pytest.raises(CatalogUnreachable) as caught:
        Catalog.open("ducklake:postgres:dbname=x host=localhost port=1 password=secret")
    assert "secret" not in str(caught.value)


@pytest.mark.postgres
def test_a_user_that_the_server_does_not_know(postgres_uri: str) -> None:
    with pytest.raises(CatalogUnreachable, match="refuses the user or the password") as caught:
        Catalog.open(f"{postgres_uri} user=nobody_there")
    assert "PGPASSWORD" in str(caught.value.hint)
    assert "disk" not in str(caught.value.hint)


@pytest.mark.postgres
def test_privileges_on_postgres(postgres_uri: str, tmp_path: Path) -> None:
    Catalog.open(postgres_uri, data_path=str(tmp_path)).close()
    conninfo = postgres_uri.removeprefix("ducklake:postgres:")
    with psycopg.connect(conninfo, autocommit=True) as connection:
        connection.execute("DROP ROLE IF EXISTS reader")
        connection.execute("CREATE ROLE reader LOGIN")
        connection.execute("GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader")
    with Catalog.open(postgres_uri.replace("user=penstock", "user=reader")) as lake:
        assert lake.latest().id == 0
        with pytest.raises(ReadOnlyLake):
            staging.create(lake, "t", IV)
    with psycopg.connect(conninfo, autocommit=True) as connection:
        connection.execute("DROP OWNED BY reader")
        connection.execute("DROP ROLE reader")


@pytest.mark.parametrize(
    ("uri", "error"),
    [
        ("ducklake:", ConfigError),
        ("ducklake:sqlte:meta.sqlite", ConfigError),
        ("ducklake:sqlite:", ConfigError),
        ("ducklake:duckdb:", ConfigError),
        ("ducklake:mysql:host=x", UnsupportedFeature),
    ],
)
def test_uris(uri: str, error: type[Exception]) -> None:
    with pytest.raises(error, match="ducklake:sqlite:PATH"):
        Catalog.open(uri)


def test_a_path_alone_is_no_sqlite_file(sqlite_place: Place) -> None:
    """DuckDB 1.5.5 does not attach it either."""
    sqlite_place.open().close()
    path = sqlite_place.uri.removeprefix("ducklake:sqlite:")
    with pytest.raises(ConfigError, match=f"write ducklake:sqlite:{path}"):
        Catalog.open(f"ducklake:{path}")
    with pytest.raises(duckdb.Error):
        duck.attach(f"ducklake:{path}")


def test_a_connection_string_with_a_mistake() -> None:
    with pytest.raises(ConfigError, match="bogus") as caught:
        Catalog.open("ducklake:postgres:bogus=1 password=secret")
    assert "secret" not in str(caught.value)


def test_a_lake_that_was_moved_as_a_whole(tmp_path: Path) -> None:
    """A lake that moved: its files are in the given path, not in the catalog's."""
    uri = f"ducklake:sqlite:{tmp_path}/meta.sqlite"
    with Catalog.open(uri, data_path=f"{tmp_path}/old") as lake:
        staging.create(lake, "t", IV, pa.table({"id": [1]}))
    shutil.copytree(tmp_path / "old", tmp_path / "new")
    with pytest.raises(DataPathError, match="override_data_path = true"):
        Catalog.open(uri, data_path=f"{tmp_path}/new")  # a copy: which one is meant?
    shutil.rmtree(tmp_path / "old")
    with Catalog.open(uri, data_path=f"{tmp_path}/new") as lake:
        assert lake.data_path == f"{tmp_path}/new/"
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataPathError, match="keeps its files in"):
        Catalog.open(uri, data_path=f"{tmp_path}/empty")


def test_lake_that_was_moved(sqlite_place: Place, tmp_path: Path) -> None:
    """The stored data path is absolute, so the new one must be named."""
    with duck.attach(sqlite_place.uri, sqlite_place.data_path) as theirs:
        theirs.execute("CREATE TABLE t AS SELECT 1 AS i")
    shutil.move(sqlite_place.data_path, tmp_path / "moved")
    with Catalog.open(
        sqlite_place.uri, data_path=f"{tmp_path}/moved", override_data_path=True
    ) as lake:
        (file,) = lake.files(lake.table("main", "t", 1), 1).files
    assert Path(file.path).exists()
    assert duckdb.read_parquet(file.path).fetchall() == [(1,)]


def test_a_race_that_was_lost_is_run_again(place: Place) -> None:
    """PostgreSQL ends one of two transactions that wait for each other, by its code."""
    ended = [psycopg.errors.DeadlockDetected(), psycopg.errors.SerializationFailure()]

    def act(connection: Connection) -> int:
        if ended:
            raise exc.OperationalError("DELETE", None, ended.pop())
        return int(connection.execute(text("SELECT 1")).scalar_one())

    def fail(_: Connection) -> None:
        raise exc.OperationalError("DELETE", None, psycopg.errors.DiskFull())

    with place.open() as catalog:
        assert catalog.write_alone(act) == 1
        with pytest.raises(CatalogFull, match="free some space"):
            catalog.write_alone(fail)


@pytest.mark.postgres
def test_a_lost_server_is_noticed_unless_told_otherwise(postgres_uri: str, tmp_path: Path) -> None:
    uri = f"{postgres_uri} tcp_user_timeout=5000"
    with Catalog.open(uri, data_path=str(tmp_path)) as catalog, catalog.reading() as connection:
        driver = cast(psycopg.Connection, connection.connection.dbapi_connection)
        parameters = driver.info.get_parameters()
    assert (parameters["keepalives_idle"], parameters["tcp_user_timeout"]) == ("30", "5000")
