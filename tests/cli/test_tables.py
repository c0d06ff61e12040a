"""Tables on a terminal: no word is broken, states have colours. In a pipe: plain lines."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from penstock.cli.tables import Look, draw
from tests.engine.toy import write_project

COLUMNS = ("model", "table", "strategy", "slices", "rows")
ROWS = (
    ("clean/flights", "main.flights", "time_range", "12 materialized, 1 failed", "1842"),
    ("marts/delays_daily", "main.delays_daily", "replace", "stale", "31"),
)
_MAIN = "from penstock.cli.main import main; main()"
LOOK = Look(("strategy", "table"), ("slices",))


def drawn(width: int, *, colours: bool = False) -> str:
    out = io.StringIO()
    console = Console(file=out, width=width, force_terminal=colours, no_color=not colours)
    draw(console, COLUMNS, ROWS, (False,) * 4 + (True,), LOOK)
    return out.getvalue()


@pytest.mark.parametrize("width", [30, 40, 60, 80, 200])
def test_no_word_is_broken_and_no_line_is_longer_than_the_terminal(width: int) -> None:
    text = drawn(width)
    assert max(len(line.rstrip()) for line in text.splitlines()) <= width
    needed = {word for row in ROWS for word in (row[0], *row[3].split(), row[4])}
    assert needed <= set(text.split())


def test_the_least_needed_columns_go_first_and_are_named() -> None:
    assert "too narrow" not in drawn(100)
    assert "(too narrow for: strategy)" in drawn(70)
    assert "(too narrow for: table, strategy)" in drawn(50)


def test_where_no_table_fits_each_row_is_a_record() -> None:
    lines = [line.rstrip() for line in drawn(30).splitlines()]
    assert lines[:2] == ["model     clean/flights", "table     main.flights"]


def test_a_word_that_does_not_fit_beside_its_name_is_below_it() -> None:
    lines = [line.rstrip() for line in drawn(22).splitlines()]
    assert lines[:2] == ["model", "  clean/flights"]
    assert "  marts/delays_daily" in lines
    assert "marts/delays_daily" in drawn(12).splitlines()  # broken by the terminal, not by us


def test_states_are_coloured_and_names_are_not() -> None:
    text = drawn(80, colours=True)
    assert "\x1b[32m12 materialized\x1b[0m, \x1b[1;31m1 failed\x1b[0m" in text
    assert "clean/flights" in text


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pseudo-terminals")
@pytest.mark.parametrize("colours", [True, False])
def test_status_on_a_terminal_of_60_columns(tmp_path: Path, colours: bool) -> None:
    import pty

    scripts = {f"models/a_rather_long_name_{n}": "SELECT 1 AS a" for n in range(2)}
    head = "-- pipeline\n-- materialize ducklake://main/table_of_{0}\n"
    root = write_project(tmp_path / "p", {k: head.format(k[-1]) + v for k, v in scripts.items()})
    ours, theirs = pty.openpty()
    environment = {k: v for k, v in os.environ.items() if k != "NO_COLOR"}
    environment |= {"COLUMNS": "60", "TERM": "xterm"} | ({} if colours else {"NO_COLOR": "1"})
    command = [sys.executable, "-c", _MAIN, "status", "--project", str(root)]
    subprocess.run(command, stdout=theirs, env=environment, check=True)
    os.close(theirs)
    text = os.read(ours, 10_000).decode()
    os.close(ours)
    assert "a_rather_long_name_1" in text
    assert ("\x1b[35mmissing" in text) is colours
