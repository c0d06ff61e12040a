"""What a killed run leaves in the temporary directory, and what is not its to remove."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from penstock.engine.python.serve import remove_abandoned, scratch
from penstock.engine.state.records import this_process

KILLED = """
import os, pathlib, signal
from penstock.engine.python.serve import scratch
with scratch() as folder:
    pathlib.Path(folder, "rows.arrow").write_text("secret")
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return tmp_path


def test_what_a_killed_run_left_is_removed(temporary: Path) -> None:
    subprocess.run([sys.executable, "-c", KILLED], check=False)
    (left,) = temporary.iterdir()
    assert (left.stat().st_mode & 0o777, len(list(left.rglob("rows.arrow")))) == (0o700, 1)
    with scratch() as own:
        assert remove_abandoned() == (left,)
        assert Path(own).is_dir()
    assert not list(temporary.iterdir())


def test_what_may_be_in_use_stays(temporary: Path) -> None:
    other_host = replace(this_process(), host="elsewhere", pid=1, started="0")
    for name, owner in (("a", json.dumps(asdict(other_host))), ("b", "{}"), ("c", "[")):
        (temporary / f"penstock-step-{name}").mkdir()
        (temporary / f"penstock-step-{name}" / "owner.json").write_text(owner)
    (temporary / "penstock-step-d").mkdir()
    (temporary / "penstock-step-e").symlink_to(temporary / "penstock-step-a")
    assert remove_abandoned() == ()
    assert len(list(temporary.iterdir())) == 5
