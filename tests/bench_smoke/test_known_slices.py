"""Catalogs that are made by inserting records are as runs leave them. Starts no Spark."""

from __future__ import annotations

from pathlib import Path

from bench import known_slices

from penstock import Project


def test_all_slices_of_a_project_are_known(tmp_path: Path) -> None:
    known_slices.make(tmp_path / "shop", models=3, days=4)
    with Project.load(tmp_path / "shop") as project:
        states = [[part.state for part in status.slices] for status in project.status()]
    assert states == [["materialized"] * 4] * 3


def test_a_corrected_day_is_behind_in_all_readers(tmp_path: Path) -> None:
    known_slices.make_readers(tmp_path / "shop", readers=2, days=5)
    with Project.load(tmp_path / "shop") as project:
        behind = {
            status.model: [part.slice for part in status.slices if part.state == "behind"]
            for status in project.status()
        }
    day = known_slices.corrected_day(5).isoformat()
    assert behind == {"source": [], "reader00": [day], "reader01": [day]}
