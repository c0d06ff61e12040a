"""A step in a thread of the run: its lines, and its end."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from penstock.engine.python.helpers import Context
from penstock.engine.python.job import Job
from penstock.engine.python.process import Limits, Stopped, TimedOut
from penstock.engine.python.thread import run_thread


def step(root: Path, code: str) -> tuple[Job, Context]:
    (root / "step.py").write_text(code)
    job = Job(str(root / "step.py"), str(root), str(root), "main")
    return job, Context(lambda _: {}, str(root), str(root), "main", session=object())


def test_what_it_prints_is_heard_though_the_listener_prints_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sys.stdout
    lines: list[tuple[str, str]] = []

    def say(stream: str, line: str) -> None:
        print(f"heard {line}")
        lines.append((stream, line))

    job, context = step(tmp_path, "def main():\n    print('one'); print('two', end='')\n")
    assert run_thread(job, context, say, Limits(None, lambda: False)) == {"rows": None}
    assert lines == [("stdout", "one"), ("stdout", "two")]
    assert capsys.readouterr().out == "heard one\nheard two\n"
    assert sys.stdout is before


LOOP = "def main():\n    import time\n    while True: time.sleep(0.01)\n"


@pytest.mark.parametrize(
    ("limits", "raised"),
    [(Limits(0.5, lambda: False), TimedOut), (Limits(None, lambda: True), Stopped)],
)
def test_one_that_does_not_end_is_abandoned(tmp_path: Path, limits: Limits, raised: Any) -> None:
    with pytest.raises(raised):
        run_thread(*step(tmp_path, LOOP), lambda *_: None, limits)
