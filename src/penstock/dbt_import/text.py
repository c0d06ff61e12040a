"""Values, lists and names as ``MODEL (...)`` and queries write them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from penstock.sql.identifiers import quoted
from penstock.sql.literals import plain_text_literal

_WORD = re.compile(r"[A-Za-z_]\w*")
_SKIPPED = r"'(?:[^'\\]|\\.|'')*'|--[^\n]*|/\*.*?\*/"


def name(text: str) -> str:
    """A column or table, in quotes where it needs them."""
    return text if _WORD.fullmatch(text) else quoted(text)


def table(full: str) -> str:
    """``schema.table``, each part in quotes where it needs them."""
    return ".".join(map(name, full.split(".", 1)))


def literal(value: object) -> str:
    """A text, number or truth as a literal."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return str(value)
    return plain_text_literal(str(value))


def names(columns: Iterable[str]) -> str:
    """``(a, b)``"""
    return f"({', '.join(map(name, columns))})"


def renamed(query: str, tables: Mapping[str, str]) -> str:
    """The query with other names for tables, which are written as they are to stand there; texts
    and comments stay.

    The longest name counts where one begins with another.
    """
    if not tables:
        return query
    known = "|".join(map(re.escape, sorted(tables, key=len, reverse=True)))
    found = re.compile(rf"(?P<skipped>{_SKIPPED})|(?<![\w.\"`])(?P<name>{known})(?![\w\"`])", re.S)
    return found.sub(lambda m: m["skipped"] or tables[m["name"]], query)
