"""Places of rows as one number each: back to files and positions, whatever order they come in."""

from __future__ import annotations

import pyarrow as pa
import pytest

from penstock.lake import place_numbers
from penstock.lake.files import DataFile, FileSet
from penstock.lake.place_numbers import PlaceNumbers
from penstock.lake.scan import Scan
from penstock.lake.schema import TableSchema

B = 1 << 40  # the first row of the second file


def numbers(*chunks: list[int]) -> pa.ChunkedArray:
    return pa.chunked_array(chunks, pa.int64())


@pytest.mark.parametrize("runs", [1_000, 0], ids=["as they come", "sorted"])
def test_positions_by_file(monkeypatch: pytest.MonkeyPatch, runs: int) -> None:
    monkeypatch.setattr(place_numbers, "_MOST_RUNS", runs)
    found = PlaceNumbers(("a", "b")).by_file(numbers([B + 3, B + 5, 1], [0, B + 4, 1], [0, B + 3]))
    assert {key: one.to_pylist() for key, one in found.items()} == {"a": [0, 1], "b": [3, 4, 5]}
    assert PlaceNumbers(("a",)).by_file(numbers()) == {}


def test_files_and_positions() -> None:
    keys = PlaceNumbers(("a", "b"))
    rows = pa.chunked_array([[B + 3, None, 7]], pa.int64())
    assert keys.files(rows).to_pylist() == [1, None, 0]
    assert keys.positions(rows).to_pylist() == [3, None, 7]


def test_a_file_that_the_scan_lacks() -> None:
    with pytest.raises(AssertionError, match="that the scan does not have"):
        PlaceNumbers(("a",)).by_file(numbers([3 - B]))


def source(*names: str) -> Scan:
    files = tuple(DataFile(f"/d/{name}", 10, 100, 8) for name in names)
    return Scan("main.t", TableSchema(()), FileSet(files))


def test_which_files_have_numbers() -> None:
    assert PlaceNumbers.of(source("a", "b")) == PlaceNumbers(("a", "b"))
    assert PlaceNumbers.of(source("a", "b\nc")) is None
    assert PlaceNumbers.of(source(*map(str, range(65)))) is None
