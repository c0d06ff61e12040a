"""Deletion vectors as DuckDB writes them, and damaged ones."""

from __future__ import annotations

import zlib

import pytest
from pyroaring import BitMap64

from penstock.errors import DataFileCorrupt, UnsupportedFeature
from penstock.lake.reading.deleted.positions import vector_positions

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
