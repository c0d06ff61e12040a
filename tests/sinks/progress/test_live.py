"""The live table, drawn on a terminal made of text."""

from __future__ import annotations

import io

from rich.console import Console

from penstock.events import Event, RunStarted, StepFinished, StepStarted
from penstock.sinks.progress.live import Picture, live_table
from penstock.sinks.progress.view import Progress
from tests.sinks.progress.events import RUN


def draw(events: tuple[Event, ...], *, height: int = 40, final: bool = False) -> str:
    console = Console(file=io.StringIO(), width=100, height=height, record=True)
    progress = Progress(clock=lambda: 100.0)
    for event in events:
        progress.apply(event)
    picture = Picture(progress)
    picture.final = final
    console.print(picture)
    return console.export_text()


def test_a_line_per_step_with_state_rows_snapshot_and_time() -> None:
    text = draw(RUN, final=True)
    raw = next(line for line in text.splitlines() if " raw " in line)
    assert raw.split() == ["✓", "raw", "2013-01-02", "done,", "1", "test", "1,842", "3", "1.2", "s"]
    assert "failed: test unique id failed on 2 rows" in text
    assert "skipped (clean failed)" in text
    assert "Run failed in 2.0 s" in text


def test_a_run_higher_than_the_screen_shows_what_moves_or_failed() -> None:
    steps = tuple(f"step{n}" for n in range(30))
    events = (
        RunStarted("r", steps),
        StepFinished("step1", "done", 1.0),
        StepFinished("step28", "failed", 1.0, reason="broken"),
        StepStarted("step29", None),
    )
    text = draw(events, height=12)
    assert "step28" in text
    assert "step29" in text
    assert "and 24 more steps" in text
    assert len(text.splitlines()) <= 12


def test_the_last_picture_stays_and_holds_every_step() -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=100, height=6)
    with live_table(console) as sink:
        for event in RUN:
            sink(event)
    assert isinstance(console.file, io.StringIO)
    last = console.file.getvalue().rpartition("snapshot")[2]
    assert all(step in last for step in ("raw", "clean", "mart", "Run failed"))


def test_a_step_s_name_is_never_read_as_markup() -> None:
    assert "[red]x" in draw((StepStarted("[red]x", None),))
