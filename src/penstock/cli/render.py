"""What a command shows while it works: the steps of a run, the start of Spark, a count."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager

from penstock.cli.output import is_terminal, plain, say, to_json
from penstock.events import Event, EventSink, SparkStarted, SparkStarting
from penstock.progress.lines import lines, text_line
from penstock.progress.view import seconds


def watch(*, as_json: bool) -> AbstractContextManager[EventSink]:
    """The sink of a run: a live table on a terminal, otherwise a line an event."""
    if as_json:
        return lines(say, json_line)
    if is_terminal():
        from penstock.progress.live import live_table

        return live_table()
    return lines(say, text_line)


def json_line(event: Event) -> str:
    return to_json({"event": type(event).__name__, **plain(event)})


@contextmanager
def starting() -> Iterator[EventSink]:
    """A sink that shows on stderr that Spark starts: a clock on a terminal, otherwise two lines."""
    with ExitStack() as shown:

        def sink(event: Event) -> None:
            if isinstance(event, SparkStarting):
                if sys.stderr.isatty():
                    shown.enter_context(_clock())
                else:
                    say("starting Spark", err=True)
            elif isinstance(event, SparkStarted):
                shown.close()
                if not sys.stderr.isatty():
                    say(f"Spark started in {seconds(event.seconds)}", err=True)

        yield sink


@contextmanager
def _clock() -> Iterator[None]:
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("starting Spark"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as clock:
        clock.add_task("", total=None)
        yield


@contextmanager
def counting(what: str) -> Iterator[Callable[[int, int], None] | None]:
    """A progress bar on a terminal, to call with what is done and the total; otherwise ``None``."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
