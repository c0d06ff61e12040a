"""What a run shows when nobody listens to it.

Tests ``sinks/progress/lines.py``.
"""

from __future__ import annotations

import io
import sys
from types import ModuleType

import pytest

from penstock.events import (
    CheckFinished,
    Notice,
    RunFinished,
    RunProgress,
    RunStarted,
    StepFinished,
    StepProgress,
    StepStarted,
    ignore,
)
from penstock.sinks.progress.lines import row_text, run_lines
from penstock.sinks.progress.live import showing
from penstock.sinks.progress.view import Progress
from tests.sinks.progress.events import RUN


def test_a_script_gets_lines_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    with showing(None) as sink:
        for event in (*RUN, Notice("a\x1bb")):
            sink(event)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines() == [
        "starting Spark",
        "run r1: 3 steps, partition 2013-01-02",
        "raw: done, 1,842 rows, snapshot 3, 1.2 s",
        "clean: notice: no key in 2 rows",
        "clean: test unique id FAILED on 2 rows",
        "clean: failed: test unique id failed on 2 rows, 0.5 s",
        "mart: skipped (clean failed)",
        "run failed in 2.0 s",
        "notice: a\\u001bb",
    ]


def test_a_notebook_gets_them_on_stdout(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "ipykernel", ModuleType("ipykernel"))
    with showing(None) as sink:
        sink(Notice("seen"))
    assert capsys.readouterr() == ("notice: seen\n", "")


def test_a_terminal_gets_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    shown = Terminal()
    monkeypatch.setattr(sys, "stderr", shown)
    monkeypatch.setenv("TERM", "xterm")
    with showing(None) as sink:
        for event in RUN:
            sink(event)
    assert "Run failed in 2.0 s" in shown.getvalue()
    assert "notice: clean: no key in 2 rows" in shown.getvalue()


def test_who_listens_hears_and_nothing_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    with showing(ignore) as sink:
        assert sink is ignore
        sink(RUN[0])
    assert capsys.readouterr() == ("", "")


def test_a_step_of_many_slices_has_one_line() -> None:
    written: list[str] = []
    clock = iter(range(0, 100_000, 10))
    days = [f"2026-09-{number:02d}" for number in range(1, 31)]
    with run_lines(written.append, lambda: next(clock)) as sink:
        sink(RunStarted("r1", ("raw",), None, (30,)))
        for number, day in enumerate(days):
            state = "done" if number < 28 else "failed" if number == 28 else "skipped"
            sink(StepStarted("raw", day))
            sink(StepProgress("raw", "writing"))
            sink(RunProgress(number, 30))
            sink(CheckFinished("raw", "unique id", number != 28, 1))
            reason = {"failed": "no file\n  -> more", "skipped": "an interval before it failed"}
            states = {state: 1}
            rows = 5 if state == "done" else None
            sink(StepFinished("raw", state, 1.0, rows, 3, reason.get(state), states=states))
        counts = {"done": 28, "failed": 1, "skipped": 1}
        sink(RunFinished("r1", "failed", 9.0, counts))
    (header, *progress, step, end) = written
    assert header == "run r1: 1 step, 30 slices"
    assert step.startswith("raw: 28 done, 1 failed, 1 skipped: no file; 140 rows, snapshot 3, ")
    assert end == "run failed in 9.0 s: 28 done, 1 failed, 1 skipped"
    assert 0 < len(progress) <= 30
    assert all(line.endswith("of 30 slices") for line in progress)


def test_parts_of_an_interval_are_one_step() -> None:
    progress = Progress(lambda: 1.0)
    for event in (
        RunStarted("r1", ("daily",)),
        StepFinished("daily", "done", 1.0, 20, 3, states={"done": 20}),
        StepFinished("daily", "skipped", 0.0, reason="upstream failed", states={"skipped": 1}),
        StepFinished("daily", "done", 1.0, 39, 4, states={"done": 39}),
    ):
        progress.apply(event)
    (row,) = progress.view.rows
    assert (row.state, row.rows, row.snapshot_id) == ("skipped", 59, 4)
    assert row_text(row) == "59 done, 1 skipped (upstream failed)"
