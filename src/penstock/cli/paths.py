"""Paths in messages: those below the project are shown relative to it.

``--json`` keeps them absolute, as programs open files from anywhere.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import click

from penstock.events import Event, EventSink, Notice, StepFinished

_META = "penstock.below_root"  # the pattern of paths below the project


def remember(root: Path) -> None:
    """Paths in the messages of this command are relative to ``root`` from here on."""
    context, root = click.get_current_context(silent=True), root.resolve()
    if context is not None and root != Path(root.anchor):
        below = rf"(?<![\w./\\-]){re.escape(str(root))}[/\\](?=\S)"
        context.meta[_META] = re.compile(below)


def local(text: str) -> str:
    """A message of the current command with relative paths."""
    return shortening()(text)


def shortening() -> Callable[[str], str]:
    """The function that makes paths relative; threads of a run may call it."""
    context = click.get_current_context(silent=True)
    below: re.Pattern[str] | None = None if context is None else context.meta.get(_META)
    return str if below is None else partial(below.sub, "")


def with_local_paths(sink: EventSink) -> EventSink:
    """A sink for people: what it is told has relative paths."""
    shorten = shortening()

    def told(event: Event) -> None:
        if isinstance(event, StepFinished) and event.reason is not None:
            event = replace(event, reason=shorten(event.reason))
        elif isinstance(event, Notice):
            event = replace(event, message=shorten(event.message))
        sink(event)

    return told
