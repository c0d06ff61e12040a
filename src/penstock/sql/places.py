"""Where in a statement the thing stands that an error of the lake is about."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from penstock.errors import PenstockError, QueryFailed
from penstock.sql import tokens as words
from penstock.sql.identifiers import fold
from penstock.sql.statement import Reader
from penstock.sql.text import place as text_place
from penstock.sql.tokens import NAME, NUMBER, STRING, WORD, Token

_NAMED = ("column", "table", "view", "schema", "parameter")
_NAMES = frozenset({NAME, WORD})
_GIVEN = ("value", "option")
# What a name that a statement reads may be said to be by an error; names have roles, so that a
# column which is called like its table is found behind it.
_ROLES: Mapping[str, Sequence[str]] = {
    "column": (
        *("a column", "a field", "the new name", "the column's name from now on"),
        "what a column is in",
    ),
    "table": ("a table", "a view", "the new name", "what a column is in"),
    "view": ("a view", "a table", "the new name"),
    "schema": (
        *("a schema", "what a table is in", "what a view is in", "what a macro is in"),
        *("what a name is in", "what a column is in"),
    ),
    "parameter": ("a parameter",),
}
_PARTS = re.compile(r"[\s.]|\[\]")
_VALUES = frozenset({NAME, NUMBER, STRING, WORD})


def place(
    error: PenstockError, text: str, start: int, end: int, named: Sequence[tuple[str, Token]] = ()
) -> None:
    """Give ``error`` the line and column of the word that names what it is about.

    Errors of the lake know names and no text. One that has a place keeps it, and one about
    something that the statement does not name has none. ``named`` are the names that the statement
    was read to have, with what each was read as; those of expressions and queries, which only Spark
    reads, are looked for in the words.
    """
    if "line" in error.data or ", at line " in error.message:
        return
    at = _start_of(error.data, text, start, end, named)
    if at is not None:
        line, column = text_place(text, at)
        error.data = {"column": column, **error.data, "line": line}  # a name it may have stays
        error.message = f"{error.message}, at line {line}:{column}"


def _start_of(
    data: Mapping[str, Any], text: str, start: int, end: int, named: Sequence[tuple[str, Token]]
) -> int | None:
    """Where what the error is about begins: a reference as written, a name, a value, or ``at``."""
    reference = str(data.get("reference") or "")
    if reference and reference in text[start:end]:
        at = data.get("reference_at", -1)
        return at if at >= 0 and text.startswith(reference, at) else text.index(reference, start)
    read = next(
        (
            token.start
            for key in _NAMED
            if data.get(key)
            for name in _spellings(str(data[key]))
            for role in _ROLES[key]
            for what, token in named
            if what == role and _said(token) == fold(name)
        ),
        None,
    )
    if read is not None:
        return read
    wanted = [str(data[key]) for key in _NAMED if data.get(key)]
    given = [str(data[key]).lstrip("-") for key in _GIVEN if data.get(key) is not None]
    options = given if "option" in data else []
    try:
        tokens = Reader(text, start, end).tokens if wanted or given else []
    except QueryFailed:  # a text that only Spark reads
        tokens = []
    for names, kinds in ((options, _VALUES), (wanted, _NAMES), (given, _VALUES)):
        found = {_said(token): token for token in reversed(tokens) if token.kind in kinds}
        for name in names:
            for spelling in _spellings(name):
                token = found.get(fold(spelling))
                if token is not None:
                    return token.start
    return data.get("at")


def _spellings(name: str) -> list[str]:
    """A name, and what stands for it in `s.t`, `tags[]` and `column st`."""
    parts = _PARTS.split(name)
    return [one for one in (name, name.rsplit(".", 1)[-1], parts[-1], parts[0]) if one]


def _said(token: Token) -> str:
    return fold(words.unquoted(token) if token.kind in {NAME, STRING} else token.text)
