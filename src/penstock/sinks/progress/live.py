"""The live table of a run on a terminal: a line per step."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from penstock.events import Event, EventSink, StepOutput
from penstock.rendering.text import count, seconds, state_text, visible
from penstock.sinks.progress.fit import GAP, fit
from penstock.sinks.progress.lines import (
    finished_text,
    progress_text,
    row_text,
    run_lines,
    text_line,
)
from penstock.sinks.progress.view import Progress, Row, View
from penstock.states import PUBLISHED, StepState

# State of a finished step: mark and style. Any other state is a phase of a running step.
MARKS = {
    "waiting": ("·", "dim"),
    "done": ("✓", "green"),
    "unchanged": ("=", "green"),
    "failed": ("✗", "bold red"),
    "skipped": ("-", "yellow"),
    "cancelled": ("-", "yellow"),
}
SETTLED = PUBLISHED | {StepState.WAITING}
MARGIN = 6  # lines reserved for the heading, notices and the prompt


@contextmanager
def live_table(console: Console | None = None) -> Iterator[EventSink]:
    """Draw while the context is open; the last state stays on the screen."""
    console = console or Console()
    progress = Progress()
    lock = Lock()

    def sink(event: Event) -> None:
        with lock:
            progress.apply(event)
            if isinstance(event, StepOutput):
                console.print(Text(visible(text_line(event) or "", keep="\t")))

    picture = Picture(progress)
    with Live(picture, console=console, refresh_per_second=8):
        yield sink
        picture.final = True


class Picture:
    """Redrawn at each refresh, so that running seconds count up."""

    def __init__(self, progress: Progress) -> None:
        self.progress = progress
        self.final = False
        self.spinner = Spinner("dots")

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        view, now = self.progress.view, self.progress.clock()
        # Live cuts what exceeds the screen: then only running and failed steps are shown.
        room = len(view.rows) if self.final else max(1, console.size.height - MARGIN)
        if view.rows:
            yield steps_table(view, now, room, self.spinner, console.width)
        hidden = len(view.rows) - min(room, len(view.rows))
        if hidden:
            yield Text(f"  and {hidden} more steps, waiting or done", style="dim")
        if view.starting_spark is not None and not self.final:
            where = f" on {view.master}" if view.master else ""
            waited = seconds(now - view.starting_spark)
            standing = f": {view.standing}" if view.standing else ""
            yield Text(visible(f"  starting Spark{where}, {waited}{standing}"), style="dim")
        if view.progress is not None and view.state is None:
            yield Text(f"  {progress_text(view.progress)}", style="dim")
        for notice in view.notices:
            yield Text(visible(f"  notice: {notice}"), style="yellow")
        if view.state is not None:
            ending = finished_text(view.state, view.seconds, view.states)
            yield Text(f"Run {ending}", style="bold")


HEADINGS = ("", "step", "slice", "state", "rows", "snapshot", "time")
FIRST_NUMBER = HEADINGS.index("rows")
LEAST = tuple(map(HEADINGS.index, ("snapshot", "rows", "time", "slice")))  # go first, in this order


def steps_table(view: View, now: float, room: int, spinner: Spinner, width: int) -> Table:
    """At most ``room`` steps, those that matter most first to stay, in the order of the run."""
    matter = sorted(view.rows, key=lambda row: row.state in SETTLED)[:room]
    rows: list[tuple[Text | Spinner, ...]] = [tuple(Text(name, style="bold") for name in HEADINGS)]
    rows += [cells(row, now, spinner) for row in view.rows if row in matter]
    texts = [[each.plain if isinstance(each, Text) else "-" for each in row] for row in rows]
    widths = fit(list(zip(*texts, strict=True)), width, LEAST) or dict.fromkeys(_NARROWEST)
    table = Table.grid(padding=(0, GAP, 0, 0))
    for number, chars in widths.items():
        table.add_column(justify="right" if number >= FIRST_NUMBER else "left", width=chars)
    for row in rows:
        table.add_row(*(row[number] for number in widths))
    return table


_NARROWEST = tuple(map(HEADINGS.index, ("", "step", "state")))


def cells(row: Row, now: float, spinner: Spinner) -> tuple[Text | Spinner, ...]:
    mark, style = MARKS.get(row.state, (None, "cyan"))
    elapsed = row.seconds
    if elapsed is None and row.started is not None:
        elapsed = now - row.started
    return (
        spinner if mark is None else Text(mark, style=style),
        Text(visible(row.step)),
        Text(visible(_slice(row))),
        Text(visible(_state(row)), style=style),
        Text("" if row.rows is None else f"{row.rows:,}"),
        Text("" if row.snapshot_id is None else str(row.snapshot_id)),
        Text(seconds(elapsed)),
    )


def _slice(row: Row) -> str:
    """``2026-01-03, 2/365`` of a step of many slices."""
    if row.slices < 2:
        return row.slice or ""
    if row.is_over:
        return f"{row.ended:,}/{row.slices:,}"
    now = "" if row.slice is None else f"{row.slice}, "
    failed = f", {row.failed:,} failed" if row.failed else ""
    return f"{now}{row.ended:,}/{row.slices:,}{failed}"


def _state(row: Row) -> str:
    tests = f", {count(row.checks, 'test')}" if row.checks and row.state in PUBLISHED else ""
    if row.is_over and len(row.states) > 1:
        return row_text(row, tests)
    return state_text(f"{row.state}{tests}", row.reason, row.worst)


@contextmanager
def showing(on_event: EventSink | None, *, live: bool = True) -> Iterator[EventSink]:
    """``on_event``, or where there is none a live table on a terminal and lines elsewhere.

    Not ``live``: lines in any case, as others write to the terminal too.

    On stderr, so that what a script prints stays its own; in a notebook on stdout, because
    notebooks show stderr as errors.
    """
    if on_event is not None:
        yield on_event
    elif live and sys.stderr.isatty():
        with live_table(Console(stderr=True)) as sink:
            yield sink
    else:
        with run_lines(_write) as sink:
            yield sink


def _write(line: str) -> None:
    stream = sys.stdout if "ipykernel" in sys.modules else sys.stderr
    print(visible(line, keep="\t"), file=stream, flush=True)
