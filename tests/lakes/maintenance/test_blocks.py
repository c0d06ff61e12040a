"""A file read front to back asks for blocks, not for columns."""

from __future__ import annotations

import io
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet as pq

from penstock.lakes.maintenance.reading import Blocks, window

BLOCK = 4096


class Counted:
    """A source that records the requests."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.asked: list[tuple[int, int]] = []

    def size(self) -> int:
        return len(self.content)

    def read_at(self, nbytes: int, offset: int) -> bytes:
        self.asked.append((offset, nbytes))
        return self.content[offset : offset + nbytes]


@pytest.mark.parametrize("size", [30, 100, 700, 5000])
def test_columns_of_many_groups(tmp_path: Path, size: int) -> None:
    rows = pa.table({f"c{n}": range(n, n + 5000) for n in range(6)})
    path = tmp_path / "x.parquet"
    pq.write_table(rows, path, row_group_size=100)
    source = Counted(path.read_bytes())
    metadata = pq.read_metadata(path)
    file = pa.PythonFile(Blocks(source, window(metadata, size) or 0, BLOCK), mode="r")
    content = pq.ParquetFile(file, metadata=metadata, pre_buffer=False)
    assert pa.Table.from_batches(content.iter_batches(size)) == rows
    assert len(source.asked) <= source.size() // BLOCK + 1  # 300 chunks of columns


@pytest.mark.parametrize(
    ("start", "size", "asked"),
    [
        (0, 10, [(0, BLOCK)]),
        (BLOCK - 1, 2, [(0, BLOCK), (BLOCK, BLOCK)]),
        (BLOCK, BLOCK, [(BLOCK, BLOCK)]),
        (5, BLOCK + 1, [(5, BLOCK + 1)]),  # as it is: it would be two blocks
        (2 * BLOCK + 1, 500, [(2 * BLOCK, 100)]),
        (3 * BLOCK, 5, []),
    ],
)
def test_what_is_asked(start: int, size: int, asked: list[tuple[int, int]]) -> None:
    content = bytes(n % 251 for n in range(2 * BLOCK + 100))
    source = Counted(content)
    blocks = Blocks(source, 0, BLOCK)
    blocks.seek(start)
    assert blocks.read(size) == content[start : start + size]
    assert source.asked == asked
    assert blocks.seek(-7, io.SEEK_END) == len(content) - 7
    assert blocks.read() == content[-7:]


def test_few_blocks_are_kept() -> None:
    source = Counted(bytes(9 * BLOCK))
    blocks = Blocks(source, BLOCK, BLOCK)
    for number in (0, 1, 2, 3, 1, 0):
        blocks.seek(number * BLOCK)
        blocks.read(1)
    assert [offset // BLOCK for offset, _ in source.asked] == [0, 1, 2, 3, 0]


def test_the_window_of_some_rows(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"c": range(1000)}), path, row_group_size=100, compression="none")
    metadata = pq.read_metadata(path)
    sizes = [metadata.row_group(n).column(0).total_compressed_size for n in range(10)]
    assert window(metadata, 100) == max(map(sum, pairwise(sizes)))
    assert window(metadata, 150) == max(map(sum, zip(sizes, sizes[1:], sizes[2:], strict=False)))
    assert window(metadata, 1000) == sum(sizes)


def test_what_is_too_large_to_be_kept(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"c": [bytes(66 << 20)]}), path, compression="none")
    assert window(pq.read_metadata(path), 1) is None
