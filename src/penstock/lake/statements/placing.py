"""Where in a statement the thing stands that an error of the lake is about."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from penstock.errors import PenstockError, QueryFailed
from penstock.lake.naming import fold
from penstock.lake.statements import tokens as words
from penstock.lake.statements.reader import Reader
from penstock.lake.statements.tokens import NAME, NUMBER, STRING, WORD, Token

_NAMED = ("column", "table", "view", "schema", "parameter")
_NAMES = frozenset({NAME, WORD})
_GIVEN = ("value", "option")
_PARTS = re.compile(r"[\s.]|\[\]")
_VALUES = frozenset({NAME, NUMBER, STRING, WORD})


def place(error: PenstockError, text: str, start: int, end: int) -> None:
    """Give ``error`` the line and column of the first word that names what it is about.

    Errors of the lake know names and no text. One that has a place keeps it, and one about
    something that the statement does not name has none.
    """
    if "line" in error.data or ", at line " in error.message:
        return
    at = _start_of(error.data, text, start, end)
    if at is not None:
        line, column = words.place(text, at)
        error.data = {"column": column, **error.data, "line": line}  # a name it may have stays
        error.message = f"{error.message}, at line {line}:{column}"


def _start_of(data: Mapping[str, Any], text: str, start: int, end: int) -> int | None:
    """Where what the error is about begins: a reference as written, a name, a value, or ``at``."""
    reference = str(data.get("reference") or "")
    if reference and reference in text[start:end]:
        return text.index(reference, start)
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
            parts = _PARTS.split(name)  # of `s.t`, `tags[]` and `column st`
            for one in filter(None, (name, name.rsplit(".", 1)[-1], parts[-1], parts[0])):
                token = found.get(fold(one))
                if token is not None:
                    return token.start
    return data.get("at")


def _said(token: Token) -> str:
    return fold(words.unquoted(token) if token.kind in {NAME, STRING} else token.text)
