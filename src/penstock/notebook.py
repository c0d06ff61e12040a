"""Show values at the end of a cell: one line in a console, a table in a notebook."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

_LONGEST = 200  # characters of a value
_FEW = 5  # names in a line


def line(value: object, *parts: object) -> str:
    """``Plan(2 steps: orders, customers)``: the parts that there are, by commas."""
    shown = ", ".join(str(part) for part in parts if part not in (None, ""))
    return f"{type(value).__name__}({shown})"


def listed(names: Sequence[str]) -> str:
    """The first names, and how many others there are."""
    more = len(names) - _FEW
    return ", ".join(names[:_FEW]) + (f" and {more} more" if more > 0 else "")


def count(number: int | None, what: str) -> str:
    """``1 row``, ``2,000 rows``; nothing where it is not known."""
    return "" if number is None else f"{number:,} {what}{'' if number == 1 else 's'}"


def seconds(value: float | None) -> str:
    """``0.21 s``, ``3.2 s``, ``32 s``."""
    if value is None:
        return ""
    return f"{value:.{2 if value < 1 else 1 if value < 10 else 0}f} s"


def table(headings: Sequence[str], rows: Iterable[Sequence[Any]], *, note: str = "") -> str:
    """A table of HTML; no value is read as markup. ``note`` is a line above it."""
    head = "".join(f"<th>{_cell(name)}</th>" for name in headings)
    body = "".join(
        f"<tr>{''.join(f'<td>{_cell(value)}</td>' for value in row)}</tr>" for row in rows
    )
    above = f"<p>{_cell(note)}</p>" if note else ""
    return f"{above}<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(value: Any) -> str:
    text = "" if value is None else str(value)
    shown = text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
    return escape("".join(c if c.isprintable() else ascii(c)[1:-1] for c in shown))
