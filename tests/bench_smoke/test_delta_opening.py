"""The ways to open a Delta table see the same files."""

from __future__ import annotations

from pathlib import Path

from bench import delta_opening


def test_all_ways_list_the_same_files(tmp_path: Path) -> None:
    delta_opening.fill(tmp_path / "root/main/t", 25, linked=True)
    index = tmp_path / "index.sqlite"
    ways = (
        delta_opening.by_penstock(tmp_path / "root"),
        delta_opening.by_delta_rs(tmp_path / "root"),
        delta_opening.by_index(tmp_path / "root", index),
        delta_opening.by_index(tmp_path / "root", index),
    )
    assert ways == (25, 25, 25, 25)
