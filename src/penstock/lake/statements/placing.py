"""Where in a statement the thing stands that an error of the lake is about."""

from __future__ import annotations

from penstock.errors import PenstockError, QueryFailed
from penstock.lake.naming import fold
from penstock.lake.statements import tokens as words
from penstock.lake.statements.reader import Reader
from penstock.lake.statements.tokens import NAME, WORD

_NAMED = ("column", "table", "view", "schema", "parameter")


def place(error: PenstockError, text: str, start: int, end: int) -> None:
    """Give ``error`` the line and column of the first word that names what it is about.

    Errors of the lake know names and no text. One that has a place keeps it, and one about
    something that the statement does not name has none.
    """
    if "line" in error.data or ", at line " in error.message:
        return
    wanted = [str(error.data[key]) for key in _NAMED if error.data.get(key)]
    if not wanted:
        return
    try:
        tokens = [one for one in Reader(text, start, end).tokens if one.kind in {WORD, NAME}]
    except QueryFailed:  # a text that only Spark reads
        return
    found = {fold(words.unquoted(t) if t.kind == NAME else t.text): t for t in reversed(tokens)}
    for name in wanted:
        token = found.get(fold(name)) or found.get(fold(name.rsplit(".", 1)[-1]))
        if token is not None:
            line, column = words.place(text, token.start)
            error.data = {"column": column, **error.data, "line": line}  # a name it may have stays
            error.message = f"{error.message}, at line {line}:{column}"
            return
