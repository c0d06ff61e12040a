"""A writer killed at any statement of a commit changes nothing; the next writer can commit."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests import duck


def test_killed_at_each_step(tmp_path: Path) -> None:
    duck.required()
    uri = f"ducklake:sqlite:{tmp_path / 'meta.sqlite'}"
    # It forks, which this process with its threads had better not.
    command = [sys.executable, "-m", "tests.lakes.killed.steps", uri, str(tmp_path)]
    root = Path(__file__).parents[3]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("killed at") == 9
