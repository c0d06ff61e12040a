"""Places of rows as one number each: back to files and positions, whatever order they come in."""

from __future__ import annotations

import pyarrow as pa
import pytest

from penstock.lake.format.files import DataFile
from penstock.lake.reading.deleted.row_addresses import RowAddresses
from penstock.lake.reading.parquet.reading import FileKeys

B = 1 << 7  # the first row of the second file: 100 rows have seven bits
NAMES = FileKeys(by_name=True)


def files(*names: str) -> list[DataFile]:
    return [DataFile(f"/d/{name}", 100, 1_000 + at, 8) for at, name in enumerate(names)]


def named(*names: str) -> RowAddresses:
    places = RowAddresses.by_key(files(*names), NAMES, 64)
    assert places is not None
    return places


def numbers(*chunks: list[int]) -> pa.ChunkedArray:
    return pa.chunked_array(chunks, pa.int64())


@pytest.mark.parametrize("runs", [1_000, 0], ids=["as they come", "sorted"])
def test_positions_by_file(runs: int) -> None:
    mixed = numbers([B + 3, B + 5, 1], [0, B + 4, 1], [0, B + 3])
    by_file = named("a", "b").by_file(mixed, runs)
    assert {key: positions.to_pylist() for key, positions in by_file.items()} == {
        "a": [0, 1],
        "b": [3, 4, 5],
    }
    assert named("a").by_file(numbers()) == {}


def test_files_and_positions() -> None:
    keys = named("a", "b")
    rows = pa.chunked_array([[B + 3, None, 7]], pa.int64())
    assert keys.files(rows).to_pylist() == [1, None, 0]
    assert keys.positions(rows).to_pylist() == [3, None, 7]


def test_a_file_that_the_scan_lacks() -> None:
    with pytest.raises(AssertionError, match="that the scan does not have"):
        named("a").by_file(numbers([3 - B]))


def test_which_files_have_numbers() -> None:
    assert named("a", "b").keys == ("a", "b")
    assert RowAddresses.by_key(files("a", "b\nc"), NAMES, 64) is None
    assert RowAddresses.by_key(files(*map(str, range(65))), NAMES, 64) is None
    assert RowAddresses.by_key([DataFile("/d/a", (1 << 63) - 1, 1, 8)], NAMES, 64) is None


def test_a_number_is_the_files_code_and_the_position() -> None:
    first, second = files("a", "b")
    by_size, by_order = (
        RowAddresses.by_size([first, second]),
        RowAddresses.by_order([first, second]),
    )
    assert by_size is not None
    assert by_order is not None
    assert [by_size.base(file) for file in (first, second)] == [1_000 << 7, 1_001 << 7]
    assert [by_order.base(file) for file in (first, second)] == [0, B]
    assert named("a", "b").base(second) == B


@pytest.mark.parametrize("name", ["a b.parquet", "c%20d.parquet", "é.parquet", "x+y.parquet"])
def test_names_that_spark_encodes_are_no_keys(name: str) -> None:
    assert FileKeys.of(["/d/a.parquet", "/d/b-1_~.parquet"]).by_name
    keys = FileKeys.of(["/d/a.parquet", f"/d/{name}"])
    assert keys.key(f"/d/{name}") == f"/d/{name}"
