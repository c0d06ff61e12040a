"""CSV files by chance: how they are written, their values, and the options of the call."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

SEPARATORS = (",", ",", ";", "\t", "|")
NEWLINES = ("\n", "\n", "\r\n", "\r")
POOLS: dict[str, tuple[str, ...]] = {
    "whole": ("1", "2", "-7", "42", "3000000000", "0"),
    "zeros": ("007", "1", "00"),
    "signed": ("+5", "1", "-3"),
    "huge": ("99999999999999999999", "1"),
    "number": ("1.5", "-2.25", "7", ".5", "5.", "1e3", "1E-3"),
    "comma": ("1,50", "12,9", "1.234,50", "7"),
    "odd number": ("1D", "2F", "12D", "0x1p3", "1_000", "1.5"),
    "special": ("nan", "inf", "-inf", "1.5", "Infinity"),
    "padded": (" 7 ", "8", " 9"),
    "date": ("2026-05-16", "2024-02-29", "1999-12-31"),
    "short date": ("2024-1-5", "2026-05-16"),
    "partial": ("2024-05", "2024-1", "2024"),
    "german": ("16.05.2026", "01.02.2026"),
    "british": ("16/05/2026", "31/12/1999"),
    "clock": ("08:15:00", "08:15", "23:59:59"),
    "hour": ("T10:00", "10:00"),
    "moment": ("2026-05-16 10:00:00", "2026-05-16 10:00:00.123456", "1999-12-31 23:59:59"),
    "moment t": ("2026-05-16T10:00:00", "2026-05-16T10:00"),
    "zoned": ("2026-05-16 10:00:00+02", "2026-05-16T10:00:00Z"),
    "truth": ("true", "false", "TRUE", "False"),
    "yes": ("t", "f", "yes", "no", "y"),
    "word": ("x", "abc", "Main St. 5", "ü€", "n/a"),
    "mark": ("a,b", "a;b", "a|b", "a\tb", "x"),
    "quote": ('5" pipe', '"', 'say "hi"', "it's", "'x'"),
    "break": ("a\nb", "a\r\nb", "\n", "x"),
    "line": ("a\u2028b", "a\x85b", "a\x0cb", "a\x0bb", "x"),
    "null": ("NA", "NULL", "-", "x"),
    "space": (" x", "x ", "  ", "x"),
    "slash": ("a\\b", "\\", "x\\n", "x"),
    "empty": ("",),
}
TYPES = ("BIGINT", "INTEGER", "DOUBLE", "DECIMAL(9,2)", "DATE", "TIMESTAMP", "BOOLEAN", "VARCHAR")


@dataclass(frozen=True)
class Case:
    """Files, by name, and the options of the call that reads them."""

    number: int
    files: dict[str, bytes]
    options: dict[str, Any] = field(default_factory=dict)
    encoding: str = "utf-8"

    def text(self) -> str:
        files = "\n".join(f"  {name}: {content!r}" for name, content in self.files.items())
        return f"case {self.number}, {self.options}\n{files}"


def case(number: int) -> Case:
    """Return the case of a number."""
    chance = random.Random(number)
    encoding = chance.choice(("utf-8",) * 8 + ("latin-1", "utf-16"))
    separator, newline = chance.choice(SEPARATORS), chance.choice(NEWLINES)
    names = chance.sample(("id", "v", "a b", "Name", "day", "x"), chance.choice((1, 2, 2, 3, 4)))
    pools = [chance.choice(list(POOLS.values())) for _ in names]
    options: dict[str, Any] = {}
    header = chance.random() < 0.85
    style = chance.choice(("minimal", "minimal", "minimal", "all", "none"))
    files: dict[str, bytes] = {}
    for index in range(chance.choice((1, 1, 1, 2, 3))):
        order = list(range(len(names)))
        if header and index and chance.random() < 0.4:
            chance.shuffle(order)
        rows = [
            [chance.choice(pools[column]) if chance.random() < 0.9 else "" for column in order]
            for _ in range(chance.choice((0 if header else 1, 1, 2, 3, 5, 12)))
        ]
        if rows and len(names) > 1 and chance.random() < 0.07:  # a stray row
            chance.choice(rows).append("stray")
        if header:
            rows.insert(0, [names[column] for column in order])
        lines = [
            separator.join(_written(value, separator, style, chance) for value in row)
            for row in rows
        ]
        if chance.random() < 0.07 and lines:
            lines.insert(chance.randrange(len(lines)), chance.choice(("", "", " ", "# no")))
        text = newline.join(lines) + (newline if lines and chance.random() < 0.9 else "")
        if chance.random() < 0.04:
            text = text.replace(newline, "\n" if newline == "\r\n" else "\r\n", 1)
        mark = "\ufeff" if encoding == "utf-8" and chance.random() < 0.15 else ""
        files[f"{number}_{index}.csv"] = (mark + text).encode(encoding, "replace")
    if encoding != "utf-8":
        options["encoding"] = encoding
    _add_options(options, chance, names, separator, header=header)
    return Case(number, files, options, encoding)


def _written(value: str, separator: str, style: str, chance: random.Random) -> str:
    needs = any(mark in value for mark in (separator, '"', "\n", "\r"))
    if style == "all" or (style == "minimal" and needs):
        return '"' + value.replace('"', '""') + '"'
    return f" {value}" if chance.random() < 0.01 else value


def _add_options(
    options: dict[str, Any],
    chance: random.Random,
    names: list[str],
    separator: str,
    *,
    header: bool,
) -> None:
    choices: dict[str, Any] = {
        "columns": {name: chance.choice(TYPES) for name in names},
        "nullstr": "NA",
        "all_varchar": True,
        "header": header,
        "delim": separator,
        "null_padding": True,
        "union_by_name": True,
        "dateformat": chance.choice(("%d/%m/%Y", "%d.%m.%Y")),
        "decimal_separator": ",",
    }
    for name, value in choices.items():
        if chance.random() < (0.3 if name == "columns" else 0.07):
            options[name] = value
    if "columns" in options:
        options.pop("all_varchar", None)
        if not header:  # of texts alone, DuckDB takes the first row for one, and loses it
            options["header"] = False
