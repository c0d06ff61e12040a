"""How a command shows a run: a live table, plain lines, or JSON lines."""

from __future__ import annotations

from contextlib import AbstractContextManager

from penstock.cli.output import is_terminal, say
from penstock.cli.plain import plain, to_json
from penstock.events import Event, EventSink
from penstock.progress.lines import lines, text_line


def watch(*, as_json: bool) -> AbstractContextManager[EventSink]:
    """The sink of a run, open while it runs."""
    if as_json:
        return lines(say, json_line)
    if is_terminal():
        from penstock.progress.live import live_table

        return live_table()
    return lines(say, text_line)


def json_line(event: Event) -> str:
    return to_json({"event": type(event).__name__, **plain(event)})
