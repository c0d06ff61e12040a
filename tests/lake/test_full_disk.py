"""A disk without room: what was there stays, nothing is left over, and the message says so."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest

from penstock.errors import CatalogFull, DataPathError
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
            _append(lake, ROWS)
        with pytest.raises(CatalogFull, match=r"disk of the backup .* is full"):
            lake.backup(small / "backup")
        assert lake.snapshots() == before
        assert not list(small.glob("*backup*"))
        (small / "filler").unlink()
        _append(lake, ROWS)
        assert len(lake.snapshots()) == len(before) + 1
