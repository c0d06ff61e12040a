"""What a notebook or a script shows of a run when it does not listen itself."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from penstock.events import CheckFinished, Event, EventSink, StepProgress, StepStarted
from penstock.progress.lines import lines, text_line
from penstock.progress.words import visible


@contextmanager
def showing(on_event: EventSink | None) -> Iterator[EventSink]:
    """``on_event``, or where there is none a live table on a terminal and lines elsewhere.

    On stderr, so that what a script prints stays its own; in a notebook on stdout, because
    notebooks show stderr as errors.
    """
    if on_event is not None:
        yield on_event
    elif sys.stderr.isatty():
        from rich.console import Console

        from penstock.progress.live import live_table

        with live_table(Console(stderr=True)) as sink:
            yield sink
    else:
        with lines(_write, _brief) as sink:
            yield sink


def _write(line: str) -> None:
    stream = sys.stdout if "ipykernel" in sys.modules else sys.stderr
    print(visible(line, keep="\t"), file=stream, flush=True)


def _brief(event: Event) -> str | None:
    """A line for what a step came to, none for the way there."""
    passed = isinstance(event, CheckFinished) and event.passed
    return None if passed or isinstance(event, StepStarted | StepProgress) else text_line(event)
