"""Identifiers of SQL, quoted and compared as DuckDB does."""

from __future__ import annotations

import string

from penstock.errors import ArgumentError

_UPPER_TO_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)


def quote_identifier(name: str, *, mark: str = '"') -> str:
    """``name`` as one SQL identifier. Spark wants a backtick as ``mark``.

    Raises ArgumentError for what no engine accepts: an empty name or a NUL character.
    """
    if not name or "\x00" in name:
        raise ArgumentError(f"{name!r} is not a name", hint="use a name without NUL characters")
    return f"{mark}{name.replace(mark, mark * 2)}{mark}"


def fold(name: str) -> str:
    """The form in which names are compared. DuckDB folds ASCII letters and no others."""
    return name.translate(_UPPER_TO_LOWER)
