"""Deletion vectors as DuckDB writes them, and damaged ones."""

from __future__ import annotations

import zlib

import pyarrow as pa
import pytest
from pyroaring import BitMap64

from penstock.errors import DataFileCorrupt, UnsupportedFeature
from penstock.lakes.format.files import DataFile
from penstock.lakes.reading.deleted.positions import RowAddresses, vector_positions
from penstock.lakes.reading.parquet.reading import FileKeys

# DELETE of the rows 1 and 3, by DuckDB 1.5.5.
THEIRS = bytes.fromhex(
    "00000024d1d339640100000000000000000000003a30000001000000000001001000000001000300683497a9"
)


def framed(vector: bytes) -> bytes:
    content = bytes.fromhex("d1d33964") + vector
    return len(content).to_bytes(4, "big") + content + zlib.crc32(content).to_bytes(4, "big")


def test_a_vector_of_duckdb() -> None:
    assert vector_positions(THEIRS, "a").to_pylist() == [1, 3]


@pytest.mark.parametrize(
    "values",
    [[], [0], list(range(100_000)), list(range(0, 200_000, 3)), [1, 1 << 33, (1 << 40) + 5]],
    ids=["none", "one", "a run", "bits", "beyond 32 bits"],
)
def test_every_kind_of_container(values: list[int]) -> None:
    bitmap = BitMap64(values)
    bitmap.run_optimize()
    assert vector_positions(framed(bitmap.serialize()), "a").to_pylist() == values


@pytest.mark.parametrize(
    "content",
    [
        b"",
        THEIRS[:-1],
        THEIRS[:20],
        THEIRS[:30] + b"\7" + THEIRS[31:],
        b"\0" * 44,
        framed(b""),
        framed(b"\1" + b"\0" * 7),
    ],
    ids=["empty", "short", "half", "a bit", "zeros", "no bitmap", "half a bitmap"],
)
def test_damaged_vectors_name_their_file(content: bytes) -> None:
    with pytest.raises(DataFileCorrupt, match=r"x/d\.puffin cannot be read"):
        vector_positions(content, "x/d.puffin")


def test_puffin_files_with_a_footer_are_refused() -> None:
    with pytest.raises(UnsupportedFeature, match="with a footer"):
        vector_positions(b"PFA1" + THEIRS, "x/d.puffin")


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
