"""The benchmark of adding files still runs; timing nothing, on a few files."""

from __future__ import annotations

from pathlib import Path

from bench import add_files

from penstock.lakes.methods import add_data_files
from tests import duck


def test_the_files_fit_the_table(tmp_path: Path) -> None:
    duck.required()
    paths = add_files.files(tmp_path / "files", 25)
    with add_files.lake(f"ducklake:sqlite:{tmp_path / 'meta.sqlite'}", tmp_path / "data") as lake:
        added = add_data_files(lake, "t", paths)
    assert (len(added.files), added.rows) == (25, 25 * add_files.PER_FILE)
