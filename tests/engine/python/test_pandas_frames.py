"""Frames of pandas have the values and types of their tables, and return them.

Tests ``spark/pandas_frames.py``, ``engine/python/frames.py`` and
``lakes/table.py`` (`Table.to_pandas`). Runs where pandas is installed: in ``.venv-connect``, with
the tests that are marked ``warm``.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.engine.python.frames import from_files, to_file
from penstock.errors import SchemaMismatch
from penstock.lakes.lake import Lake

pandas = pytest.importorskip("pandas", reason="runs in .venv-connect")
pytestmark = pytest.mark.warm  # as the marked tests run there

LARGE = 9007199254740993  # 2**53 + 1, which no double is
MOMENT = dt.datetime(2026, 1, 2, 3, 4, 5, 6)  # noqa: DTZ001 - of a column without a zone
COLUMNS = {
    "id": pa.array([LARGE, None], pa.int64()),
    "small": pa.array([1, None], pa.int8()),
    "sure": pa.array([True, None]),
    "amount": pa.array([Decimal("1.50"), None], pa.decimal128(9, 2)),
    "ratio": pa.array([0.5, None]),
    "ids": pa.array([[LARGE, None], None], pa.list_(pa.int64())),
    "row": pa.array([{"id": LARGE, "n": None}, None]),
    "day": pa.array([dt.date(1, 1, 1), None]),
    "at": pa.array([MOMENT, None], pa.timestamp("us")),
    "text": pa.array(["a", None]),
    "bytes": pa.array([b"\0", None]),
}


def returned(table: Any, folder: Path) -> Any:
    """What a step returns that returns its input."""
    pq.write_table(table, folder / "rows.parquet")
    frame = from_files(str(folder / "rows.parquet"), "pandas")
    return pq.read_table(to_file(frame, str(folder))["path"])


@pytest.mark.parametrize("name", COLUMNS)
def test_a_step_that_returns_its_input_returns_its_types(name: str, tmp_path: Path) -> None:
    table = pa.table({"key": [1, 2], name: COLUMNS[name]})
    again = returned(table, tmp_path)
    assert again.schema.field(name).type == table.schema.field(name).type
    assert again[name].to_pylist() == table[name].to_pylist()


def test_nan_and_null_stay_apart(tmp_path: Path) -> None:
    again = returned(pa.table({"x": [float("nan"), None, 1.0]}), tmp_path)
    assert again["x"].is_null().to_pylist() == [False, True, False]


def test_computed_decimals_have_room_for_other_rows(tmp_path: Path) -> None:
    frame = pandas.DataFrame({"amount": [Decimal("1.50"), None]})
    table = pq.read_table(to_file(frame, str(tmp_path))["path"])
    assert table.schema.field("amount").type == pa.decimal128(38, 2)


def test_a_table_becomes_a_frame_and_takes_it_back(tmp_path: Path) -> None:
    uri = f"ducklake:sqlite:{tmp_path}/m.sqlite"
    with Lake.attach(uri, data_path=f"{tmp_path}/d") as lake:
        lake.sql("CREATE TABLE t (id BIGINT, amount DECIMAL(9,2))")
        table = lake.table("t")
        table.append([{"id": LARGE, "amount": Decimal("1.50")}])
        table.append([{"id": None}])
        before = table.to_arrow().to_pylist()
        table.append(table.to_pandas())
        assert table.to_arrow().to_pylist() == before * 2


def test_pandas_own_timestamps_are_not_cut(tmp_path: Path) -> None:
    uri = f"ducklake:sqlite:{tmp_path}/m.sqlite"
    with Lake.attach(uri, data_path=f"{tmp_path}/d") as lake:
        lake.sql("CREATE TABLE t (t TIMESTAMP)")
        for rows in (
            pandas.DataFrame({"t": pandas.to_datetime([1], unit="ns")}),
            [{"t": pandas.Timestamp(1)}],
        ):
            with pytest.raises(SchemaMismatch, match="nanoseconds"):
                lake.table("t").append(rows)
