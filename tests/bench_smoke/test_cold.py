"""What the benchmark of cold starts reads of a run's events. Starts no Spark."""

from __future__ import annotations

from pathlib import Path

import pytest
from bench import cold


def test_the_parts_of_a_run() -> None:
    names = ("RunPlanned", "SparkStarting", "SparkStarted", "RunFinished")
    lines = [
        (second, f'{{"event": "{name}"}}') for second, name in zip((1, 2, 5, 9), names, strict=True)
    ]
    parts = cold._parts([*lines, (10, '{"result": {}}')])
    assert parts == {"until Spark starts": 2, "Spark's start": 3, "steps": 4}


def test_each_side_has_a_cache_of_its_own(tmp_path: Path) -> None:
    sides = cold.sides(tmp_path, {cold.PLAIN: [], cold.ARCHIVED: []})
    assert [side.name for side in sides] == [cold.BARE_NAME, cold.PLAIN, cold.ARCHIVED]


def test_a_command_that_fails_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(AssertionError):
        cold.penstock("nonsense", cwd=tmp_path, cache=tmp_path / "cache")
