"""Tables of a command: aligned text in a pipe; on a terminal as wide as that is, with colours."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.sinks.progress.fit import GAP, fit

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.text import Text

# States of slices, steps, tests and plans, in the columns that a `Look` names.
STATES: Mapping[str, str] = {
    "materialized": "green",
    "done": "green",
    "unchanged": "green",
    "passed": "green",
    "failed": "bold red",
    "stale": "yellow",
    "behind": "yellow",
    "unfinished": "yellow",
    "changed outside": "yellow",
    "other kind": "yellow",
    "no model": "yellow",
    "skipped": "yellow",
    "waiting": "yellow",
    "cancelled": "yellow",
    "warned": "yellow",
    "missing": "magenta",
    "running": "cyan",
}
# A state at the beginning of a cell, or of a part of "12 materialized, 1 failed".
_STATE = re.compile(rf"(?:^|(?<=, ))(?:[\d,]+ )?({'|'.join(STATES)})\b")


@dataclass(frozen=True, slots=True)
class Look:
    """``least`` are the columns that go first where a terminal is narrow, in that order; the cells
    of ``states`` begin with states, which are coloured.
    """

    least: tuple[str, ...] = ()
    states: tuple[str, ...] = ()


PLAIN = Look()


def is_terminal() -> bool:
    return sys.stdout.isatty()


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


def draw(
    console: Console,
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    numeric: Sequence[bool],
    look: Look = PLAIN,
) -> None:
    """A table in the width of the console; where none fits, a line for each value of a row."""
    texts = [[name, *(row[number] for row in rows)] for number, name in enumerate(columns)]
    least = [columns.index(name) for name in look.least]
    widths = fit(texts, console.width, least)
    if widths is None:
        _records(console, columns, rows, look)
        return
    console.print(_boxed(columns, rows, numeric, look, widths))
    left_out = [name for number, name in enumerate(columns) if number not in widths]
    if left_out:
        console.print(f"(too narrow for: {', '.join(left_out)})", style="dim", highlight=False)


def _boxed(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    numeric: Sequence[bool],
    look: Look,
    widths: Mapping[int, int],
) -> RenderableType:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    # A blank of padding and one of the box are the gap.
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, GAP - 1, 0, 0))
    for number, width in widths.items():
        name, right = Text(columns[number]), numeric[number]
        table.add_column(name, justify="right" if right else "left", width=width)
    for row in rows:
        table.add_row(*(_cell(columns[number], row[number], look) for number in widths))
    return table


def _records(
    console: Console, columns: Sequence[str], rows: Sequence[Sequence[str]], look: Look
) -> None:
    """A line for each value, behind its name; below it where a word does not fit there."""
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    names = max(map(len, columns)) + GAP
    longest = max((len(word) for row in rows for text in row for word in text.split()), default=0)
    beside = names + longest <= console.width
    for number, row in enumerate(rows):
        if number:
            console.print()
        shown = [(name, text) for name, text in zip(columns, row, strict=True) if text]
        if beside:
            table = Table.grid(padding=(0, GAP, 0, 0))
            for name, text in shown:
                table.add_row(Text(name, style="dim"), _cell(name, text, look))
            console.print(table)
            continue
        for name, text in shown:
            console.print(Text(name, style="dim"))
            # The terminal itself breaks a word that is wider than it, which can still be copied.
            too_wide = any(len(word) + GAP > console.width for word in text.split())
            cell = _cell(name, text, look)
            console.print(cell if too_wide else Padding(cell, (0, 0, 0, GAP)), soft_wrap=too_wide)


def _cell(column: str, text: str, look: Look) -> Text:
    """Text: data is never read as markup."""
    from rich.text import Text

    shown = Text(text)
    if column in look.states:
        for match in _STATE.finditer(text):
            shown.stylize(STATES[match[1]], match.start(), match.end())
    return shown
