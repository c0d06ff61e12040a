"""Values, lists and names as ``MODEL (...)`` and queries write them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from penstock.sql.identifiers import quote_identifier
from penstock.sql.literals import plain_text_literal

_WORD = re.compile(r"[A-Za-z_]\w*")
_SKIPPED = r"'(?:[^'\\]|\\.|'')*'|--[^\n]*|/\*.*?\*/"


def name(text: str, dialect: str = "spark") -> str:
    """A column or table, in the quotes of a dialect where it needs them."""
    mark = '"' if dialect == "duckdb" else "`"
    return text if _WORD.fullmatch(text) else quote_identifier(text, mark=mark)


def table(full: str, dialect: str = "spark") -> str:
    """``schema.table``, each part in quotes where it needs them."""
    parts = full.split(".", 1) if not full.startswith(".") else full.rsplit(".", 1)
    return ".".join(name(part, dialect) for part in parts)


def literal(value: object) -> str:
    """A text, number or truth as a literal."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return str(value)
    return plain_text_literal(str(value))


def names(columns: Iterable[str], dialect: str = "spark") -> str:
    """``(a, b)``"""
    return f"({', '.join(name(column, dialect) for column in columns)})"


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
