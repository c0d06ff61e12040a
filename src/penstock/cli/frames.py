"""Rows of a query in the form that ``--format`` asks for."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import click

from penstock.cli.output import cell, print_json, print_table, say
from penstock.cli.plain import plain, to_json
from penstock.progress.view import count, visible

if TYPE_CHECKING:
    from penstock.engine.results import QueryResult

FORMATS = ("table", "csv", "json", "markdown")


def print_result(result: QueryResult, form: str) -> None:
    """Print the rows; a note on stderr says when there are more of them."""
    if not result.columns and form != "json":
        say("done", err=True)
        return
    _PRINTERS[form](result)
    if result.more and form != "json":
        shown = count(len(result.rows), "row")
        say(f"(the first {shown}; --limit N for more)", err=True)


def _table(result: QueryResult) -> None:
    print_table([name for name, _ in result.columns], result.rows)


def _json(result: QueryResult) -> None:
    """``{"columns": [...], "rows": [...], "more": bool}``"""
    columns = [{"name": name, "type": kind} for name, kind in result.columns]
    print_json({"columns": columns, "rows": result.rows, "more": result.more})


def _csv(result: QueryResult) -> None:
    """RFC 4180 with a heading. NULL is an empty field, an empty text two quotes."""
    click.echo(",".join(_in_csv(name) for name, _ in result.columns))
    for row in result.rows:
        click.echo(",".join(_in_csv(value) for value in row))


def _in_csv(value: Any) -> str:
    if value is None:
        return ""
    text = visible(value, keep="\n\t") if isinstance(value, str) else _simple(value)
    quoted = not text or any(mark in text for mark in ',"\n')
    return '"{}"'.format(text.replace('"', '""')) if quoted else text


def _simple(value: Any) -> str:
    simple = plain(value)
    return simple if isinstance(simple, str) else to_json(simple)


def _markdown(result: QueryResult) -> None:
    lines = [
        [_in_markdown(cell(name)) for name, _ in result.columns],
        ["---"] * len(result.columns),
    ]
    lines += [[_in_markdown(cell(value)) for value in row] for row in result.rows]
    for line in lines:
        click.echo(f"| {' | '.join(line)} |")


def _in_markdown(text: str) -> str:
    """A cell: what it says is never read as a column's end, a tag or formatting."""
    return re.sub(r"([\\|<>*_`\[\]])", r"\\\1", text)


_PRINTERS: Mapping[str, Callable[[QueryResult], None]] = {
    "table": _table,
    "csv": _csv,
    "json": _json,
    "markdown": _markdown,
}
