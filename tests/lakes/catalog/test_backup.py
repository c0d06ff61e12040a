"""A backup holds one state of a catalog, and restored it is that catalog again.

Tests ``lakes/catalog/copying.py``, ``lakes/recovery/backup.py``.
"""

from __future__ import annotations

import threading
import uuid
from pathlib import Path
from typing import Any

import pytest

from penstock.errors import ArgumentError, CatalogCorrupt
from penstock.lakes.catalog.catalog import Catalog
from penstock.lakes.methods import set_option
from penstock.lakes.recovery.backup import backup, check_files, restore
from tests import duck
from tests.lakes.catalog.conftest import Place

ROWS = "SELECT rowid, * FROM t ORDER BY rowid"


def make(place: Place) -> list[Any]:
    """A lake with files, deletes, and rows that the catalog holds itself."""
    with duck.attach(place.uri, place.data_path.rstrip("/"), inline=10) as connection:
        connection.execute("CREATE TABLE t (i INT, s VARCHAR, ts TIMESTAMP, l DOUBLE[])")
        insert = "INSERT INTO t SELECT n, 'a', '2020-01-01', [n + 0.5, NULL] FROM range({}) r(n)"
        connection.execute(insert.format(100))
        connection.execute("DELETE FROM t WHERE i < 20")
        connection.execute(insert.format(3))
        return connection.execute(ROWS).fetchall()


def other(place: Place) -> str:
    """A place without a catalog, on the same kind of database."""
    if "postgres" in place.uri:
        return place.uri  # in another schema
    return place.uri.replace("/meta.", "/other.")


@pytest.fixture
def options(place: Place) -> dict[str, Any]:
    return {"metadata_schema": f"s{uuid.uuid4().hex}"} if "postgres" in place.uri else {}


def test_there_and_back(place: Place, options: dict[str, Any], tmp_path: Path) -> None:
    duck.required()
    rows = make(place)
    target = tmp_path / "backup" / "one.bak"
    with place.open() as catalog:
        with catalog.writing() as connection:
            connection.exec_driver_sql('CREATE TABLE penstock_meta ("key" VARCHAR PRIMARY KEY)')
            connection.exec_driver_sql("INSERT INTO penstock_meta VALUES ('kept ü\t\\x')")
        said: list[tuple[int, int]] = []
        made = backup(catalog, target, check=True, progress=lambda *now: said.append(now))
        newest = catalog.latest()
    assert made.snapshot == newest.id
    assert made.files is not None
    assert (made.files.files > 1, made.files.missing) == (True, ())
    assert said[-1][0] == said[-1][1]
    with duck.attach(place.uri) as connection:
        connection.execute("DELETE FROM t")
    uri = other(place)
    restored = restore(target, uri, check=True, **options)
    assert (restored.snapshot, restored.snapshot_time) == (newest.id, newest.time)
    assert duck.rows(uri, ROWS, order=False, **options) == rows
    with Catalog.open(uri, **options) as catalog, catalog.reading() as connection:
        schema = f'"{options["metadata_schema"]}".' if options else ""
        stored = connection.exec_driver_sql(f"SELECT * FROM {schema}penstock_meta").all()
    assert stored == [("kept ü\t\\x",)]
    with pytest.raises(ArgumentError, match="there is a catalog at"):
        restore(target, uri, **options)


def test_written_to_after_it(place: Place, options: dict[str, Any], tmp_path: Path) -> None:
    """What was restored is written to by DuckDB as the lake that it was."""
    rows = make(place)
    with place.open() as catalog:
        backup(catalog, tmp_path / "one.bak")
    uri = other(place)
    restore(tmp_path / "one.bak", uri, **options)
    with duck.attach(uri, inline=10, **options) as connection:
        connection.execute("INSERT INTO t VALUES (7, 'b', NULL, NULL)")
        after = connection.execute(ROWS).fetchall()
    assert after == [*rows, (103, 7, "b", None, None)]


def test_while_others_write(place: Place, tmp_path: Path) -> None:
    make(place)
    done = threading.Event()

    def write() -> None:
        with place.open() as catalog:
            while not done.is_set():
                set_option(catalog, "target_file_size", "1MB")
                set_option(catalog, "target_file_size", None)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        with place.open() as catalog:
            made = [backup(catalog, tmp_path / f"{n}.bak") for n in range(3)]
    finally:
        done.set()
        writer.join()
    assert [copy.snapshot for copy in made] == [4] * 3


def test_files_that_are_gone(sqlite_place: Place, tmp_path: Path) -> None:
    make(sqlite_place)
    with sqlite_place.open() as catalog:
        file = next(Path(sqlite_place.data_path).rglob("*-delete.parquet"))
        file.unlink()
        check = check_files(catalog)
        moved = Path(sqlite_place.data_path).rename(tmp_path / "elsewhere")
        backup(catalog, tmp_path / "one.bak")
    assert check.missing == (str(file),)
    uri = f"ducklake:sqlite:{tmp_path / 'new.sqlite'}"
    restored = restore(tmp_path / "one.bak", uri, data_path=str(moved), check=True)
    assert restored.data_path == f"{moved}/"
    assert restored.files is not None
    assert [Path(path).name for path in restored.files.missing] == [file.name]


def test_refused(sqlite_place: Place, tmp_path: Path) -> None:
    with sqlite_place.open() as catalog:
        backup(catalog, tmp_path / "one.bak")
        with pytest.raises(ArgumentError, match="there already"):
            backup(catalog, tmp_path / "one.bak")
    (tmp_path / "text").write_text("no backup")
    with pytest.raises(CatalogCorrupt, match="is not a backup"):
        restore(tmp_path / "text", f"ducklake:{tmp_path}/x.ducklake")
    (tmp_path / "zip").write_bytes(b"PK\x03\x04" + b"\x00" * 20)  # as PostgreSQL's were once
    with pytest.raises(CatalogCorrupt, match="restored by the Penstock that made it"):
        restore(tmp_path / "zip", f"ducklake:{tmp_path}/x.ducklake")
    (tmp_path / "y.sqlite-wal").touch()
    with pytest.raises(ArgumentError, match=r"move .*y\.sqlite-wal away"):
        restore(tmp_path / "one.bak", f"ducklake:sqlite:{tmp_path}/y.sqlite")
    with pytest.raises(ArgumentError, match="cannot be read"):
        restore(tmp_path / "none", f"ducklake:{tmp_path}/x.ducklake")
