"""The names of a log's files, and one writer of each version."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.delta.log_files import Checkpoint, list_log, listing_of, put_if_absent
from penstock.errors import DataPathError


def name(version: int, ending: str = "json") -> str:
    return f"{version:020d}.{ending}"


def test_commits_and_checkpoints() -> None:
    uuid = "80a083e8-7026-4e79-81be-64bd76c43a11"
    listing = listing_of(
        [
            *(name(at) for at in (3, 2)),
            name(2, "checkpoint.parquet"),
            name(1, f"checkpoint.{uuid}.json"),
            name(3, "checkpoint.0000000001.0000000002.parquet"),  # the other part is missing
            "_last_checkpoint",
            name(1, "crc"),
            ".00000000000000000004.json.tmp",
        ]
    )
    assert (listing.commits, listing.latest) == ((2, 3), 3)
    assert listing.checkpoints == (
        Checkpoint(1, (name(1, f"checkpoint.{uuid}.json"),)),
        Checkpoint(2, (name(2, "checkpoint.parquet"),)),
    )


def test_all_parts_of_a_checkpoint() -> None:
    parts = [name(3, f"checkpoint.{at:010d}.0000000002.parquet") for at in (1, 2)]
    assert listing_of(parts).checkpoints == (Checkpoint(3, tuple(parts)),)


def test_a_directory_without_a_log(tmp_path: Path) -> None:
    assert list_log(str(tmp_path)).latest is None


def test_the_second_of_two_writers_is_told(tmp_path: Path) -> None:
    path = str(tmp_path / "a.json")
    assert put_if_absent(path, b"first")
    assert not put_if_absent(path, b"second")
    assert Path(path).read_bytes() == b"first"
    assert [file.name for file in tmp_path.iterdir()] == ["a.json"]


def test_a_directory_that_is_missing(tmp_path: Path) -> None:
    with pytest.raises(DataPathError, match="cannot be written"):
        put_if_absent(str(tmp_path / "none" / "a.json"), b"")
