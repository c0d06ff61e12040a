"""What is in memory while files are read for compaction."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
from pyarrow import parquet as pq

from penstock.lakes.format.files import DataFile
from penstock.lakes.maintenance.reading import pieces

_ROWS, _GROUPS = 100_000, 25


def test_a_large_file_is_not_here_whole(tmp_path: Path) -> None:
    path = tmp_path / "large.parquet"
    noise = pa.array([random.randbytes(8) for _ in range(_ROWS)])
    with pq.ParquetWriter(path, pa.schema([("b", pa.binary())]), compression="none") as writer:
        for _ in range(_GROUPS):
            writer.write_table(pa.table({"b": noise}))
    size = path.stat().st_size
    file = DataFile(str(path), _ROWS * _GROUPS, size, 0)
    before = peak = pa.total_allocated_bytes()
    starts = []
    for piece in pieces([file], table="main.t", rows=_ROWS, memory=1 << 20):
        starts.append(piece.start)
        peak = max(peak, pa.total_allocated_bytes())
    assert starts == list(range(0, _ROWS * _GROUPS, _ROWS))
    assert peak - before < size / 4
