"""A disk without room: what was there stays, nothing is left over, and the message says so."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import psycopg
import pyarrow as pa
import pytest

from penstock.errors import CatalogFull, DataPathError
from penstock.lakes.lake import Lake
from penstock.spark.failures import explain
from tests import postgres
from tests.lakes.catalog.conftest import postgres_server

__all__ = ["postgres_server"]

ROWS = pa.table({"i": pa.array(range(100_000), pa.int64())})


@pytest.fixture
def small() -> Iterator[Path]:
    """A disk of 16 MB, where a server may enter, too."""
    place = Path(tempfile.mkdtemp(prefix="penstock-small-"))
    place.chmod(0o755)
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", place], capture_output=True, check=False
    )
    if done.returncode:
        pytest.skip("needs the right to mount a file system")
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", place], check=True)
        place.rmdir()


def _fill(disk: Path) -> None:
    with (disk / "filler").open("wb", buffering=0) as file, suppress(OSError):
        while file.write(bytes(4096)):
            pass


def _append(lake: Lake, rows: pa.Table) -> None:
    with lake.transaction() as tx:
        tx.table("t").append(rows)


def test_of_the_data(small: Path, tmp_path: Path) -> None:
    uri = f"ducklake:sqlite:{tmp_path}/meta.sqlite"
    with Lake.attach(uri, data_path=f"{small}/data", data_inlining_row_limit=0) as lake:
        lake.sql("CREATE TABLE t(i BIGINT)")
        for _ in range(2):
            _append(lake, ROWS.slice(0, 10))
        files = sorted(small.rglob("*.parquet"))
        _fill(small)
        for act in (lambda: _append(lake, ROWS), lake.merge_adjacent_files):
            with pytest.raises(DataPathError, match="No space left") as caught:
                act()
            assert "free some space" in str(caught.value)
        assert sorted(small.rglob("*.parquet")) == files
        (small / "filler").unlink()
        _append(lake, ROWS)
        assert len(lake.merge_adjacent_files()) == 1


@pytest.mark.parametrize("kind", ["sqlite", "duckdb"])
def test_of_the_catalog(small: Path, tmp_path: Path, kind: str) -> None:
    uri = f"ducklake:{kind}:{small}/meta"
    with Lake.attach(uri, data_path=f"{tmp_path}/data", data_inlining_row_limit=10**6) as lake:
        lake.sql("CREATE TABLE t(i BIGINT)")
        before = lake.snapshots()
        _fill(small)
        with pytest.raises(CatalogFull, match=r"disk of the catalog .* is full"):
            _append(lake, ROWS.slice(0, 2_000))
        with pytest.raises(CatalogFull, match=r"disk of the backup .* is full"):
            lake.backup(small / "backup")
        assert lake.snapshots() == before
        assert not list(small.glob("*backup*"))
        (small / "filler").unlink()
        _append(lake, ROWS.slice(0, 2_000))
        assert len(lake.snapshots()) == len(before) + 1


@pytest.mark.postgres
def test_of_a_server(small: Path, tmp_path: Path, postgres_server: str) -> None:
    """Its database is on the disk; the server runs on, as its WAL is elsewhere."""
    if os.environ.get(postgres.VARIABLE):
        pytest.skip("needs a server on this machine that it may give a directory to")
    tables = small / "tables"
    tables.mkdir()
    user = postgres.server_user()
    assert user is not None, "the server runs as somebody"
    shutil.chown(tables, user)
    administer = partial(_administer, postgres_server)
    administer(f"CREATE TABLESPACE small LOCATION '{tables}'")
    administer("CREATE DATABASE small TABLESPACE small")
    try:
        uri = f"ducklake:postgres:dbname=small {postgres_server}"
        with Lake.attach(uri, data_path=f"{tmp_path}/data", data_inlining_row_limit=10**6) as lake:
            lake.sql("CREATE TABLE t(i BIGINT)")
            _fill(small)
            for _ in range(2):
                with pytest.raises(CatalogFull, match=r"disk of the catalog .* is full"):
                    _append(lake, ROWS.slice(0, 20_000))
            assert [snapshot.id for snapshot in lake.snapshots()] == [0, 1]
            (small / "filler").unlink()
            _append(lake, ROWS.slice(0, 20_000))
            assert [snapshot.id for snapshot in lake.snapshots()] == [0, 1, 2]
    finally:
        administer("DROP DATABASE small WITH (FORCE)")
        administer("DROP TABLESPACE small")


def _administer(server: str, statement: str) -> None:
    with psycopg.connect(f"{server} dbname=postgres", autocommit=True) as connection:
        connection.execute(statement.encode())


WRITES = (
    "org.apache.spark.SparkException: [TASK_WRITE_FAILED] Task failed while writing rows. "
    "SQLSTATE: 58030\n\tat org.apache.spark.A.b(A.scala:1)\n"
    "Caused by: java.io.IOException: No space left on device\n\tat java.base/c.d(e.java:2)"
)
READS = (
    "org.apache.spark.SparkException: [FAILED_READ_FILE.FILE_NOT_EXIST] Encountered error while "
    "reading file file:///d/x.parquet. File does not exist. It is possible the underlying files "
    "have been updated."
)


def test_of_what_spark_writes() -> None:
    """The texts are those of Spark 4.3.0 on such a disk, shortened."""
    error = explain(RuntimeError(WRITES))
    assert isinstance(error, DataPathError)
    assert error.message == "the data path cannot be written: No space left on device"
    assert "spark.local.dir" in str(error.hint)


def test_of_what_spark_writes_to_a_path_that_it_names(tmp_path: Path) -> None:
    text = WRITES.replace("writing rows.", f"writing rows to file:{tmp_path}.")
    error = explain(RuntimeError(text))
    begin = f"{tmp_path} cannot be written: No space left on device ("
    assert error.message.startswith(begin)
    assert error.message.endswith(" MiB are free there)")


def test_of_a_file_that_went_meanwhile() -> None:
    error = explain(RuntimeError(READS), table="main.t", snapshot_id=3)
    assert error.message == "the data file /d/x.parquet of main.t at snapshot 3 is missing"
    assert "maintenance removed it while this ran" in str(error)
