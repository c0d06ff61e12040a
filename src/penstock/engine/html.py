"""Results as HTML, for notebooks: what a value's ``_repr_html_`` returns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

_LONGEST = 200  # characters of a value


def table(headings: Sequence[str], rows: Iterable[Sequence[Any]], *, note: str = "") -> str:
    """A table; no value is read as markup. ``note`` is a line above it."""
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
