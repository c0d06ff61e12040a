"""A disk without room: what was there stays, nothing is left over, and the message says so."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest

from penstock.errors import CatalogFull, DataPathError
from penstock.lake.failures import explain
from penstock.lake.lake import Lake

ROWS = pa.table({"i": pa.array(range(100_000), pa.int64())})


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A disk of 8 MB."""
    place = tmp_path / "small"
    place.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", place], capture_output=True, check=False
    )
    if done.returncode:
        pytest.skip("needs the right to mount a file system")
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", place], check=True)


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


def test_of_a_file_that_went_meanwhile() -> None:
    error = explain(RuntimeError(READS), table="main.t", snapshot_id=3)
    assert (
        error.message
        == "the catalog names /d/x.parquet of main.t at snapshot 3, which is not there"
    )
    assert "maintenance removed it while this ran" in str(error)
