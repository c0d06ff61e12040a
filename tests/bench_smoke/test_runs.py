"""The benchmark of past runs still runs, on a few of them."""

from __future__ import annotations

from pathlib import Path

from bench import harness, runs


def test_each_command_answers(tmp_path: Path) -> None:
    runs.write(tmp_path / "project", 30)
    ours = runs.sides(tmp_path / "project", tmp_path / "cache")[:1]
    seconds = harness.race(ours, 1, warmup=0)
    assert list(seconds) == ["runs"]
