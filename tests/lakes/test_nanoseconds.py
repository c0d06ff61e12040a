"""Added files in nanoseconds, as pandas writes them, for columns in microseconds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.lakes.lake import Lake
from tests import duck

pytestmark = pytest.mark.spark

_DAY = 946_684_800_000_000_000  # 2000-01-01
_LAST = (1 << 63) - 1
_COUNTS = [_DAY + 499, _DAY + 1999, -1, -1000, -1999, _LAST, -_LAST, None]


def _file(path: Path, counts: Sequence[int | None]) -> None:
    naive, utc = (pa.array(counts, pa.timestamp("ns", zone)) for zone in (None, "UTC"))
    numbers = pa.array(range(len(counts)), pa.int64())
    pq.write_table(pa.table({"k": numbers, "t": naive, "z": utc}), path)


@pytest.fixture
def filled(lake: Lake, tmp_path: Path) -> Lake:
    lake.sql("CREATE TABLE main.t (k BIGINT, t TIMESTAMP_NTZ, z TIMESTAMPTZ)")
    for name, counts in (("all", _COUNTS), ("one", [_DAY + 2_000_999])):
        _file(tmp_path / f"{name}.parquet", counts)
        lake.add_data_files("main.t", str(tmp_path / f"{name}.parquet"))
    return lake


def _by_duckdb(tmp_path: Path, query: str) -> list[tuple[object, ...]]:
    return duck.rows(f"ducklake:sqlite:{tmp_path / 'meta.sqlite'}", query)


def test_the_rest_is_cut_as_duckdb_cuts_it(filled: Lake, tmp_path: Path) -> None:
    count = "epoch_us(t), epoch_us(z) FROM t WHERE isfinite(t)"
    wanted = _by_duckdb(tmp_path, f"SELECT k, {count}")
    micros = "unix_micros(CAST(t AS TIMESTAMP)), unix_micros(z)"
    collected = filled.sql(f"SELECT k, {micros} FROM main.t").collect()
    rows = sorted(tuple(row) for row in collected if row[0] not in {5, 6, 7})
    assert rows == wanted
    infinite = {row[0]: row[2] for row in collected if row[0] in {5, 6, 7}}
    assert infinite == {5: _LAST, 6: -_LAST, 7: None}


@pytest.mark.parametrize("column", ["t", "z"])
def test_files_are_chosen_by_what_is_read(filled: Lake, tmp_path: Path, column: str) -> None:
    where = f"{column} = '2000-01-01 00:00:00.002'"
    rows = filled.sql(f"SELECT k FROM main.t WHERE {where}").collect()
    wanted = _by_duckdb(tmp_path, f"SELECT k FROM t WHERE {where}")
    assert [tuple(row) for row in rows] == wanted == [(0,)]
