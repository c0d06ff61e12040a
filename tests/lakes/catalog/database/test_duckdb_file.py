"""A catalog in a DuckDB file is open for the transaction at hand, no longer."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from penstock.errors import (
    CatalogCorrupt,
    CatalogLocked,
    CatalogMissing,
    CatalogVersionUnsupported,
)
from penstock.lakes.catalog.catalog import Catalog
from tests import duck
from tests.lakes.catalog import staging

COLUMNS = staging.columns(id="int64")


@contextmanager
def held(path: Path, *, read_only: bool, statement: str = "SELECT 1") -> Iterator[None]:
    """The file open in another process, which is killed at the end."""
    program = (
        f"import duckdb; c = duckdb.connect({str(path)!r}, read_only={read_only}); "
        f"c.execute({statement!r}); print(flush=True); input()"
    )
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        other.stdout.readline()
        try:
            yield
        finally:
            other.send_signal(signal.SIGKILL)


def test_a_writer_elsewhere_is_waited_for_until_the_timeout(tmp_path: Path) -> None:
    path = tmp_path / "meta.ducklake"
    with Catalog.open(f"ducklake:{path}", lock_timeout=0.1) as lake:
        with held(path, read_only=False), pytest.raises(CatalogLocked, match="run again"):
            lake.latest()
        assert lake.latest().id == 0


def test_readers_elsewhere_let_read_but_not_write(tmp_path: Path) -> None:
    path = tmp_path / "meta.ducklake"
    with Catalog.open(f"ducklake:{path}", lock_timeout=0.1) as lake:
        with held(path, read_only=True):
            assert lake.latest().id == 0
            with pytest.raises(CatalogLocked):
                staging.create(lake, "t", COLUMNS)
        assert staging.create(lake, "t", COLUMNS).id == 1


def test_what_a_killed_writer_committed_is_read(tmp_path: Path) -> None:
    path = tmp_path / "meta.ducklake"
    statement = "UPDATE ducklake_snapshot_changes SET author = 'ada'"
    with Catalog.open(f"ducklake:{path}") as lake:
        with held(path, read_only=False, statement=statement):
            pass
        assert lake.latest().author == "ada"


def test_readers_and_a_writer_of_one_engine(tmp_path: Path) -> None:
    with Catalog.open(f"ducklake:{tmp_path}/meta.ducklake", lock_timeout=0.1) as lake:
        with lake.writing(), lake.reading():
            pass
        with lake.reading(), lake.reading(), pytest.raises(CatalogLocked), lake.writing():
            pass
        assert lake.latest().id == 0


def test_a_metadata_schema(tmp_path: Path) -> None:
    uri = f"ducklake:{tmp_path}/meta.ducklake"
    with Catalog.open(uri, metadata_schema="theirs") as lake:
        staging.create(lake, "t", COLUMNS)
    with duck.attach(uri, metadata_schema="theirs") as theirs:
        theirs.execute("INSERT INTO t VALUES (1)")
    with Catalog.open(uri, metadata_schema="theirs") as lake:
        assert lake.latest().id == 2


def test_no_catalog(tmp_path: Path) -> None:
    path = tmp_path / "meta.ducklake"
    with pytest.raises(CatalogMissing):
        Catalog.open(f"ducklake:{path}", create=False)
    path.write_text("some text" * 999)
    with pytest.raises(CatalogCorrupt, match="valid DuckDB"):
        Catalog.open(f"ducklake:{path}")


def test_without_the_library(tmp_path: Path) -> None:
    """It is an extra. Catalogs in SQLite work without it."""
    code = f"""
import sys
sys.modules["duckdb"] = None  # as if it were not installed
from penstock.errors import EnvironmentMissing
from penstock.lakes.catalog.catalog import Catalog
Catalog.open("ducklake:sqlite:{tmp_path}/meta.sqlite").close()
try:
    Catalog.open("ducklake:{tmp_path}/meta.ducklake")
except EnvironmentMissing as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install 'penstock-spark[duckdb]'" in done.stdout
    assert not (tmp_path / "meta.ducklake").exists()


def test_a_file_of_a_newer_duckdb(tmp_path: Path) -> None:
    """DuckDB 2.0 writes storage version 999 unless it is asked for an older one."""
    path = tmp_path / "meta.ducklake"
    with Catalog.open(f"ducklake:{path}", data_path=str(tmp_path)):
        pass
    content = bytearray(path.read_bytes())
    content[12:20] = (999).to_bytes(8, "little")
    path.write_bytes(content)
    with pytest.raises(CatalogVersionUnsupported, match="a newer DuckDB wrote") as caught:
        Catalog.open(f"ducklake:{path}", read_only=True)
    assert "STORAGE_VERSION 'v1.5.0'" in (caught.value.hint or "")


def test_a_copy_of_a_sqlite_catalog(tmp_path: Path) -> None:
    """DuckDB copies it with SQLite's types: times are text, and flags are numbers."""
    uri = f"ducklake:sqlite:{tmp_path}/meta.sqlite"
    with duck.attach(uri, tmp_path / "data") as connection:
        connection.execute("CREATE TABLE t AS SELECT range AS i FROM range(3)")
    with duck.connect() as connection:
        connection.execute(f"ATTACH 'sqlite:{tmp_path}/meta.sqlite' AS db (READ_ONLY)")
        connection.execute(f"ATTACH '{tmp_path}/copy.ducklake' AS backup")
        connection.execute("COPY FROM DATABASE db TO backup")
    copy = f"ducklake:{tmp_path}/copy.ducklake"
    with Catalog.open(copy) as catalog, Catalog.open(uri) as original:
        assert catalog.snapshots() == original.snapshots()
        latest = catalog.latest()
        assert catalog.count_rows("main", "t", latest.id) == 3
        staging.append(catalog, "t", {"i": [3, 4]})
    assert duck.rows(copy, "SELECT count(*), sum(i) FROM t") == [(5, 10)]
