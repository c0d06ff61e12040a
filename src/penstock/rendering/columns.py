"""State the table of an answer once: its headings, each with the attribute below it.

Commands print these columns, and notebooks and pages show them as HTML. The JSON of an answer has
its fields by their names instead: `penstock.rendering.wire`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from html import escape
from operator import attrgetter
from typing import Any, ClassVar, Generic, TypeVar

from penstock.rendering.text import SHORT_ID, seconds, slice_state, step_counts

T = TypeVar("T")
Columns = Mapping[str, str]  # headings, each with the attribute of a row, in their order
_LONGEST = 200  # characters of a value in HTML
# What tables show in place of fields of answers.
_DERIVED: Mapping[str, Callable[[Any], object]] = {
    "columns_updated": lambda row: ", ".join(row.changes.columns),
    "duration": lambda row: None if row.seconds is None else timedelta(seconds=row.seconds),
    "model_name": lambda row: row.model or "(none)",
    "passed_tests": lambda row: (
        f"{sum(test.passed for test in row.tests)}/{len(row.tests)}" if row.tests else None
    ),
    "short_id": lambda row: row.run_id[:SHORT_ID],
    "slice_name": lambda row: row.slice or "whole table",
    "model_state": lambda row: _joined(row.state, row.lateness),
    "slice_state": lambda row: _joined(
        slice_state(row.state, getattr(row, "outside_snapshot", None)),
        "past its freshness" if getattr(row, "is_overdue", False) else "",
    ),
    "step_counts": lambda row: step_counts(row.steps),
    "who": lambda row: f"{row.user or ''}@{row.host}",
}


def read_columns(text: str) -> Columns:
    """Read the columns of a table.

    Args:
        text: Headings, with their attributes where these have other names, such as
            ``"model table=target last_made=time"``. An underscore is a blank of a heading. Beside
            attributes there are the values of ``_DERIVED``.

    Returns:
        The columns in this order.
    """
    pairs = (part.partition("=") for part in text.split())
    return {heading.replace("_", " "): path or heading for heading, _, path in pairs}


def cells(columns: Columns, rows: Iterable[object]) -> list[list[Any]]:
    """Return the values of a table.

    Args:
        columns: The columns.
        rows: The answers.

    Returns:
        A list for each row. Lengths of time are timedeltas.
    """
    getters = [_DERIVED.get(path) or attrgetter(path) for path in columns.values()]
    return [[get(row) for get in getters] for row in rows]


def _joined(*parts: str) -> str:
    return ", ".join(part for part in parts if part)


def html(columns: Columns, rows: Iterable[object], note: str = "") -> str:
    """Return answers as a table of HTML.

    Args:
        columns: The columns of these answers.
        rows: The answers.
        note: A line above the table.

    Returns:
        The table. No value is read as markup.
    """
    return html_table(tuple(columns), cells(columns, rows), note)


def html_table(headings: Sequence[str], rows: Iterable[Sequence[Any]], note: str = "") -> str:
    """Return values as a table of HTML.

    Args:
        headings: The headings.
        rows: The values below them.
        note: A line above the table.

    Returns:
        The table. No value is read as markup.
    """
    head = "".join(f"<th>{_cell(name)}</th>" for name in headings)
    body = "".join(
        f"<tr>{''.join(f'<td>{_cell(value)}</td>' for value in row)}</tr>" for row in rows
    )
    above = f"<p>{_cell(note)}</p>" if note else ""
    return f"{above}<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(value: Any) -> str:
    value = seconds(value.total_seconds()) if isinstance(value, timedelta) else value
    text = "" if value is None else str(value)
    shown = text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
    return escape("".join(c if c.isprintable() else ascii(c)[1:-1] for c in shown))


class Answers(tuple[T, ...], Generic[T]):
    """Answers that are the rows of one table, which notebooks show."""

    __slots__ = ()
    columns: ClassVar[Columns]

    def _repr_html_(self) -> str:
        return html(self.columns, self)
