"""Identifiers of SQL, quoted and compared as DuckDB does."""

from __future__ import annotations

import re
import string
from collections.abc import Collection

from penstock.errors import ArgumentError

_PART = re.compile(r'\s*(?:"((?:[^"]|"")+)"|`((?:[^`]|``)+)`|([^\s."`]+))\s*')
DEFAULT_SCHEMA = "main"
LAKES = frozenset({"lake", "ducklake"})  # what a lake is called in SQL, whatever else its name is
_UPPER_TO_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)


def quote_identifier(name: str, *, mark: str = '"') -> str:
    """``name`` as one SQL identifier. Spark wants a backtick as ``mark``.

    Raises ArgumentError for what no engine accepts: an empty name or a NUL character.
    """
    if not name or "\x00" in name:
        raise ArgumentError(f"{name!r} is not a name", hint="use a name without NUL characters")
    return f"{mark}{name.replace(mark, mark * 2)}{mark}"


def quoted(name: str) -> str:
    """``name`` as one part of a name in Spark's SQL and in its column references."""
    return f"`{name.replace('`', '``')}`"


def fold(name: str) -> str:
    """The form in which names are compared. DuckDB folds ASCII letters and no others."""
    return name.translate(_UPPER_TO_LOWER)


def dotted(text: str) -> list[str]:
    """The parts of ``a.b``, each plain or in quotes of either kind; none if it is malformed."""
    parts: list[str] = []
    position = 0
    while True:
        match = _PART.match(text, position)
        if match is None:
            return []
        double, back, plain = match.groups()
        parts.append(
            double.replace('""', '"') if double else back.replace("``", "`") if back else plain
        )
        position = match.end()
        if position == len(text):
            return parts
        if text[position] != ".":
            return []
        position += 1


def called(lakes: Collection[str]) -> str:
    """The names of a lake, for a message."""
    return " or ".join(sorted(set(lakes) - {"ducklake"}))
