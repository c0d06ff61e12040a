"""What a run shows when nobody listens to it.

Tests ``progress/lines.py``.
"""

from __future__ import annotations

import io
import sys
from types import ModuleType

import pytest

from penstock.events import Notice, ignore
from penstock.progress.live import showing
from tests.progress.events import RUN


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
