"""What a command says while it starts Spark: that it does, and for how long. On stderr only."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from penstock.cli.output import say
from penstock.events import Event, EventSink, SparkStarted, SparkStarting
from penstock.progress.words import seconds


@contextmanager
def starting() -> Iterator[EventSink]:
    """A sink: seconds that count up on a terminal, two lines elsewhere."""
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
