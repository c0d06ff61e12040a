"""A step's process: what it prints and asks, how it ends, and that nothing of it is left.

Tests ``engine/python/child.py`` (the process's end of the link) and ``engine/python/helpers.py``
(what a step's code calls).
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from textwrap import dedent
from typing import Any

import pyarrow.parquet as pq
import pytest

from penstock.engine.python.helpers import Context
from penstock.engine.python.job import Job
from penstock.engine.python.runners import Limits, Stopped, TimedOut, run_process, run_thread

Lines = list[tuple[str, str]]


def job(root: Path, code: str, **said: Any) -> Job:
    (root / "step.py").write_text(dedent(code))
    (root / "rows").mkdir(exist_ok=True)
    return Job(str(root / "step.py"), str(root), str(root / "rows"), "main", **said)


def run(wanted: Job, timeout: float | None = 60, lines: Lines | None = None) -> Mapping[str, Any]:
    heard = [] if lines is None else lines
    refuse = {"error": {"type": "TableNotFound", "message": "there is no such table"}}
    return run_process(
        wanted,
        lambda request: refuse,
        lambda stream, line: heard.append((stream, line)),
        Limits(timeout, lambda: False),
    )


def test_rows_are_a_file_and_lines_are_heard(tmp_path: Path) -> None:
    code = """
    import sys
    def main(n: int):
        print("one", n); print("two")
        print("three", file=sys.stderr)
        return [{"id": n}]
    """
    lines: Lines = []
    done = run(job(tmp_path, code, arguments={"n": ("bigint", 3)}), lines=lines)
    assert Path(done["rows"]["path"]).parent == tmp_path / "rows"
    assert sorted(lines) == [("stderr", "three"), ("stdout", "one 3"), ("stdout", "two")]


def test_uuids_are_texts(tmp_path: Path) -> None:
    code = "from uuid import UUID\ndef main():\n    return [{'id': UUID(int=1)}, {'id': None}]\n"
    done = run(job(tmp_path, code))
    read = pq.read_table(done["rows"]["path"]).to_pydict()
    assert read == {"id": ["00000000-0000-0000-0000-000000000001", None]}


@pytest.mark.parametrize(
    ("module", "hint"), [("wmill", "penstock.lake(...)"), ("nosuch.part", "pip install nosuch")]
)
def test_a_module_that_is_not_installed(tmp_path: Path, module: str, hint: str) -> None:
    failed = run(job(tmp_path, f"import {module}\ndef main(): ...\n"))["failed"]
    assert failed["message"].startswith("ModuleNotFoundError: No module named")
    assert hint in failed["hint"]
    assert failed["traceback"] == [f"step.py:1, in <module>: import {module}"]


def test_what_it_raises_names_the_lines_of_the_project(tmp_path: Path) -> None:
    helping = "import json\ndef read(text):\n    return json.loads(text)\n"
    (tmp_path / "helping.py").write_text(helping)
    code = """
    from helping import read
    def main():
        return read("{")
    """
    failed = run(job(tmp_path, code))["failed"]
    assert failed["message"].startswith("JSONDecodeError: Expecting property name")
    assert failed["line"] == 4
    assert failed["traceback"] == [
        'step.py:4, in main: return read("{")',
        "helping.py:3, in read: return json.loads(text)",
    ]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("raise SystemExit(3)", "main ended its process: SystemExit(3)"),
        ("return 5", "int is not rows"),
        ("return [1]", "a list of int is not rows"),
        ("return [{'a': 1}, {'a': 'x'}]", "a column of the rows has no one type"),
        ("return [{'a': None}]", "every column is None in every row"),
        ("import penstock; penstock.lake('main').read('t')", "there is no such table"),
        ("import penstock; penstock.lake('main').read('t', form='x')", "form 'x' is not known"),
    ],
)
def test_what_cannot_be_written_is_said(tmp_path: Path, body: str, message: str) -> None:
    failed = run(job(tmp_path, f"def main():\n    {body}\n"))["failed"]
    assert message in failed["message"]


def test_a_process_that_ends_before_main_returns(tmp_path: Path) -> None:
    assert run(job(tmp_path, "import os\ndef main(): os._exit(7)\n")) == {"ended": 7}
    code = "import os, signal\ndef main(): os.kill(os.getpid(), signal.SIGKILL)\n"
    assert run(job(tmp_path, code)) == {"ended": -signal.SIGKILL}


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has the file")
def test_the_kernel_ends_it_before_the_run_where_memory_runs_out(tmp_path: Path) -> None:
    score = Path("/proc/self/oom_score_adj")
    done = run(job(tmp_path, f"def main(): return [{{'score': int(open('{score}').read())}}]\n"))
    (read,) = pq.read_table(done["rows"]["path"]).to_pylist()
    assert read["score"] == min(1000, int(score.read_text()) + 500)


SLOW = """
import os, subprocess, time
def main():
    other = subprocess.Popen(["sleep", "300"])
    with open("pids.tmp", "w") as out:
        out.write(f"{os.getpid()} {other.pid}")
    os.rename("pids.tmp", "pids")
    time.sleep(300)
"""


def pids(root: Path) -> list[int]:
    """Those of the step and of what it started, once it has begun."""
    file = root / "pids"
    for _ in range(600):
        if file.exists():
            return [int(text) for text in file.read_text().split()]
        time.sleep(0.1)
    raise AssertionError("the step never began")


def are_gone(numbers: list[int]) -> bool:
    for _ in range(100):
        if not any(is_alive(number) for number in numbers):
            return True
        time.sleep(0.1)
    return False


def is_alive(number: int) -> bool:
    try:
        return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def test_a_timeout_ends_it_and_what_it_started(tmp_path: Path) -> None:
    wanted = job(tmp_path, SLOW)
    with pytest.raises(TimedOut):
        run(wanted, timeout=5)
    assert are_gone(pids(tmp_path))


def test_a_cancelled_run_ends_it(tmp_path: Path) -> None:
    wanted = job(tmp_path, SLOW)
    limits = Limits(None, (tmp_path / "pids").exists)
    with pytest.raises(Stopped):
        run_process(wanted, lambda _: {}, lambda *_: None, limits)
    assert are_gone(pids(tmp_path))


RUN = """
import sys
from penstock.engine.python.job import Job
from penstock.engine.python.runners import Limits, run_process
root = sys.argv[1]
job = Job(f"{root}/step.py", root, f"{root}/rows", "main")
run_process(job, lambda _: {}, lambda *_: None, Limits(None, lambda: False))
"""


def test_a_killed_run_leaves_no_process(tmp_path: Path) -> None:
    job(tmp_path, SLOW)
    run_ = subprocess.Popen([sys.executable, "-c", RUN, str(tmp_path)])
    numbers = pids(tmp_path)
    assert is_alive(numbers[1])
    os.kill(run_.pid, signal.SIGKILL)
    run_.wait()
    assert are_gone(numbers)


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
