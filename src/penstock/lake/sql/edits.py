"""Edits of a query's text: what is replaced where, the rest of it left as it was written."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from penstock.lake.conversions.spark_types import quoted


@dataclass(frozen=True, slots=True)
class Edit:
    """``text[start:end]`` becomes ``text``, in which ``{t0}`` stands for a DataFrame."""

    start: int
    end: int
    text: str


def edited(text: str, edits: Sequence[Edit]) -> str:
    """The text with the edits made; its own braces doubled, since Spark formats it.

    Edits do not overlap.
    """
    parts: list[str] = []
    position = 0
    for edit in sorted(edits, key=lambda e: (e.start, e.end)):
        parts += [braces(text[position : edit.start]), edit.text]
        position = edit.end
    return "".join([*parts, braces(text[position:])])


def braces(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def breaks(text: str, start: int, end: int) -> str:
    """The line breaks in a part that is replaced: kept, for the lines of messages."""
    return "\n" * text.count("\n", start, end)


def stand_in(text: str, start: int, end: int, *, view: str, name: str | None) -> Edit:
    """``{t0}`` in place of a table, called ``name`` unless its alias follows in the text."""
    shown = view if name is None else f"({view} AS {braces(quoted(name))})"
    return Edit(start, end, shown + breaks(text, start, end))


def touches_line(text: str, edits: Iterable[Edit], line: int | None) -> bool:
    """Whether an edit is on a line (from 1): columns after it are not those of the text."""
    return any(text.count("\n", 0, edit.start) + 1 == line for edit in edits)
