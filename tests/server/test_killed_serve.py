"""Processes that serve are killed; the next ones carry on. `killed_serve` tries many.

It runs the project of `killed_project` without Spark, as `sparkless` does.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests import duck
from tests.conftest import JVM
from tests.server import killed_serve

SQLITE = "sqlite:lake/meta.sqlite"


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "pairs"), [(1, False), (2, True)])
def test_what_killed_processes_leave_is_done(tmp_path: Path, seed: int, pairs: bool) -> None:
    duck.required()
    os.environ.setdefault("JDK_JAVA_OPTIONS", JVM)
    kills, problems = killed_serve.play_trial(tmp_path / "p", SQLITE, seed, victims=1, pairs=pairs)
    assert problems == []
    assert kills >= 1
