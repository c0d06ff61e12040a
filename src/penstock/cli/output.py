"""What a command prints that is not progress: tables and JSON."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import click

from penstock.cli.plain import plain, to_json
from penstock.progress.view import visible

Rows = Sequence[Sequence[Any]]


def say(text: str, *, err: bool = False, nl: bool = True) -> None:
    """Print lines of text; whatever control characters a name or message in it has are visible."""
    click.echo(visible(text, keep="\n\t"), err=err, nl=nl)


def print_json(value: Any) -> None:
    """One JSON document, indented for people who look."""
    click.echo(to_json(value, indent=2))


def print_table(columns: Sequence[str], rows: Rows, *, empty: str = "(no rows)") -> None:
    """Rows under headings: boxed on a terminal, aligned text in a pipe.

    ``empty`` stands in for a table without rows.
    """
    columns = [visible(name) for name in columns]
    texts = [[cell(value) for value in row] for row in rows]
    numeric = [_numeric(row[index] for row in rows) for index in range(len(columns))]
    if not texts:
        say(empty)
    elif is_terminal():
        _rich_table(columns, texts, numeric)
    else:
        for line in aligned([list(columns), *texts], numeric):
            say(line)


def is_terminal() -> bool:
    return sys.stdout.isatty()


def cell(value: Any) -> str:
    """One value as text in one line; what is missing is empty."""
    if value is None:
        return ""
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    simple = plain(value)
    return visible(simple if isinstance(simple, str) else to_json(simple))


def aligned(table: Sequence[Sequence[str]], numeric: Sequence[bool]) -> list[str]:
    """Columns padded to their widest cell, two spaces between them; numbers to the right."""
    widths = [max(len(row[index]) for row in table) for index in range(len(numeric))]
    return [
        "  ".join(
            text.rjust(width) if right else text.ljust(width)
            for text, width, right in zip(row, widths, numeric, strict=True)
        ).rstrip()
        for row in table
    ]


def _numeric(values: Any) -> bool:
    known = [value for value in values if value is not None]
    return bool(known) and all(
        isinstance(value, int | float | Decimal) and not isinstance(value, bool) for value in known
    )


def _rich_table(columns: Sequence[str], texts: list[list[str]], numeric: Sequence[bool]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name, right in zip(columns, numeric, strict=True):
        table.add_column(Text(name), justify="right" if right else "left", overflow="fold")
    for row in texts:
        table.add_row(*(Text(text) for text in row))  # Text: data is never read as markup
    Console().print(table)
