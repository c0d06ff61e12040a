"""Files that are missing, truncated or replaced are reported, never read in part."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.errors import DataFileCorrupt, DataFileMissing, QueryFailed
from penstock.lakes.format.files import DeleteFile, FileSet
from penstock.lakes.reading import scan
from penstock.lakes.reading.scan import Scan
from penstock.spark import session
from penstock.spark.failures import explained
from tests.lakes.reading.deleted.test_positions import THEIRS
from tests.lakes.reading.test_scan import KV, data_file, delete_file, kv

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.fixture
def prepared(spark: SparkSession) -> SparkSession:
    return session.prepare(spark)


def read(spark: SparkSession, data: Path, delete: DeleteFile | None = None) -> None:
    file = data_file(data, delete=delete)
    scan.read(spark, Scan("main.t", KV, FileSet((file,)), 7))


def half(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])


DAMAGES: dict[str, tuple[Callable[[Path], object], type[Exception]]] = {
    "gone": (Path.unlink, DataFileMissing),
    "empty": (lambda path: path.write_bytes(b""), DataFileCorrupt),
    "half": (half, DataFileCorrupt),
    "garbage": (lambda path: path.write_bytes(b"x" * 500), DataFileCorrupt),
    "other columns": (
        lambda path: pq.write_table(pa.table({"x": [1]}), path),
        DataFileCorrupt,
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_delete_files(prepared: SparkSession, tmp_path: Path, damage: str) -> None:
    gone = delete_file(tmp_path / "gone.parquet", [0])
    change, error = DAMAGES[damage]
    change(Path(gone.path))
    with pytest.raises(error, match=r"gone\.parquet of main\.t at snapshot 7") as caught:
        read(prepared, kv(tmp_path / "a.parquet", [1, 2]), gone)
    assert caught.value.data["table"] == "main.t"  # type: ignore[attr-defined] # ours, all of them


def test_deletion_vectors(prepared: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "d.puffin"
    path.write_bytes(THEIRS[:-4])
    vector = DeleteFile(str(path), 2, 44, 0, format="puffin")
    with pytest.raises(DataFileCorrupt, match=r"d\.puffin of main\.t at snapshot 7"):
        read(prepared, kv(tmp_path / "a.parquet", [1, 2, 3, 4]), vector)


@pytest.mark.parametrize("positions", [[5], [-1]])
def test_rows_that_are_not_there(
    prepared: SparkSession, tmp_path: Path, positions: list[int]
) -> None:
    gone = delete_file(tmp_path / "d.parquet", positions)
    with pytest.raises(DataFileCorrupt, match=r"d\.parquet of main\.t(.*)of 5 rows, lacks"):
        read(prepared, kv(tmp_path / "a.parquet", [1, 2, 3, 4, 5]), gone)


@pytest.mark.parametrize("positions", [[5], [-1]])
def test_rows_that_are_not_there_by_spark(
    prepared: SparkSession, tmp_path: Path, positions: list[int]
) -> None:
    gone = replace(delete_file(tmp_path / "d.parquet", positions), delete_count=3_000_000)
    file = data_file(kv(tmp_path / "a.parquet", [1, 2, 3, 4, 5]), delete=gone)
    df = scan.read(prepared, Scan("main.t", KV, FileSet((file,)), 7))
    with pytest.raises(QueryFailed, match=r"main\.t deletes rows(.*)d\.parquet"), explained():
        df.collect()


def test_empty_data_files(prepared: SparkSession, tmp_path: Path) -> None:
    """Spark passes over them without a word."""
    path = kv(tmp_path / "a.parquet", [1])
    file = data_file(path)
    path.write_bytes(b"")
    with pytest.raises(DataFileCorrupt, match=r"a\.parquet of main\.t at snapshot 7(.*)is empty"):
        scan.read(prepared, Scan("main.t", KV, FileSet((file,)), 7))


def test_half_a_data_file(prepared: SparkSession, tmp_path: Path) -> None:
    path = kv(tmp_path / "a b.parquet", [1, 2, 3])
    file = data_file(path)
    half(path)
    with (
        pytest.raises(DataFileCorrupt, match=r"/a b\.parquet of main\.t .*cannot be read"),
        explained(table="main.t"),
    ):
        scan.read(prepared, Scan("main.t", KV, FileSet((file,)), 7)).collect()


def test_another_size_than_the_catalogs(prepared: SparkSession, tmp_path: Path) -> None:
    """Another file in its place: its rows are not the table's, and deletes go by size."""
    path = kv(tmp_path / "a.parquet", [1, 2, 3])
    gone = delete_file(tmp_path / "d.parquet", [1])
    file = data_file(path, delete=gone)
    kv(path, list(range(100)))
    with pytest.raises(DataFileCorrupt, match=r"a\.parquet of main\.t .*another file is in its"):
        scan.read(prepared, Scan("main.t", KV, FileSet((file,)), 7))
