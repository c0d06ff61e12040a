"""Deletion vectors: what the protocol's examples say, and what delta-rs reads."""

from __future__ import annotations

import uuid
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.delta.actions import DeletionVector
from penstock.delta.vectors import decoded, encoded, path_of, positions, write
from penstock.errors import DataFileCorrupt, DataFileMissing

# "JSON Example 2 — Inline" of the protocol: positions 3, 4, 7, 11, 18 and 29.
INLINE = "^Bg9^0rr910000000000iXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L"


def rows(*numbers: int) -> pa.Int64Array:
    return pa.array(numbers, pa.int64())


def test_the_inline_example_of_the_protocol() -> None:
    vector = DeletionVector("i", INLINE, 44, 6)
    found = positions("/t", {"a": vector}, "t")
    assert found["a"].to_pylist() == [3, 4, 7, 11, 18, 29]


def test_an_inline_vector_that_is_padded() -> None:
    """34 bytes, as delta-kernel-rs' table ``cdf-table-with-dv`` has them in version 5."""
    vector = DeletionVector("i", "^Bg9^0rr910000000000iXQKl0rr91000005c8Xg##093", 34, 1)
    assert positions("/t", {"a": vector}, "t")["a"].to_pylist() == [3]


@pytest.mark.parametrize(
    "text", ["^Bg9", "$$$$$", "#####", "####0", "^Bg9\x7f", "###%$", "##0930rr91"]
)
def test_texts_that_are_not_z85(text: str) -> None:
    with pytest.raises(DataFileCorrupt, match="is not a group of Z85"):
        positions("/t", {"a": DeletionVector("i", text, 4, 1)}, "t")
    with pytest.raises(DataFileCorrupt, match="is not a group of Z85"):
        path_of("/t", DeletionVector("u", text * 4, 4, 1))


def test_the_path_example_of_the_protocol() -> None:
    vector = DeletionVector("u", "ab^-aqEH.-t@S}K{vb[*k^", 40, 6, 4)
    assert path_of("s3://b/t", vector) == (
        "s3://b/t/ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"
    )


@given(st.binary(min_size=16, max_size=16))
def test_z85(data: bytes) -> None:
    text = encoded(data)
    assert len(text) == 20
    assert decoded(text) == data
    assert uuid.UUID(bytes=decoded(text)).bytes == data


@settings(max_examples=25)
@given(st.sets(st.integers(0, 2**34), min_size=1, max_size=50), st.integers(0, 3))
def test_what_is_written_is_read(
    tmp_path_factory: pytest.TempPathFactory, some: set[int], at: int
) -> None:
    folder = str(tmp_path_factory.mktemp("t"))
    numbers = sorted(some)
    sliced = rows(*range(at), *numbers)[at:]  # an array that is part of another
    vectors, path = write(folder, {"a": sliced, "b": rows(0)})
    assert path is not None
    assert Path(path).name.startswith("deletion_vector_")
    assert path_of(folder, vectors["a"]) == path
    found = positions(folder, vectors, "t")
    assert (found["a"].to_pylist(), found["b"].to_pylist()) == (numbers, [0])


def test_nothing_is_written_of_nothing(tmp_path: Path) -> None:
    assert write(str(tmp_path), {}) == ({}, None)


def test_a_missing_file(tmp_path: Path) -> None:
    vectors, path = write(str(tmp_path), {"a": rows(1, 2)})
    Path(path or "").unlink()
    with pytest.raises(DataFileMissing):
        positions(str(tmp_path), vectors, "t")


@pytest.mark.parametrize("at", [2, 6, 20, -1])
def test_a_changed_file(tmp_path: Path, at: int) -> None:
    vectors, path = write(str(tmp_path), {"a": rows(1, 2)})
    content = bytearray(Path(path or "").read_bytes())
    content[at] ^= 1
    Path(path or "").write_bytes(content)
    with pytest.raises(DataFileCorrupt, match="cannot be read"):
        positions(str(tmp_path), vectors, "t")


def test_another_number_of_rows_than_the_log_says(tmp_path: Path) -> None:
    vectors, _ = write(str(tmp_path), {"a": rows(1, 2)})
    wrong = DeletionVector("u", vectors["a"].path, vectors["a"].size, 3, vectors["a"].offset)
    with pytest.raises(DataFileCorrupt, match="2 rows where the log says 3"):
        positions(str(tmp_path), {"a": wrong}, "t")
