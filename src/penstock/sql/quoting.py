"""SQL of Spark's dialect as Penstock takes it: names in double quotes, types of casts.

``"name"`` is a name in every text that Penstock takes, as in DuckDB and in the standard; Spark
reads it as a text unless its session is told otherwise. ``CAST(x AS VARCHAR)`` and
``x::TIMESTAMPTZ`` mean what the type means in CREATE TABLE; names that both have keep Spark's
meaning in expressions (``TIMESTAMP`` has a zone). The texts are rewritten once, where they come in,
so that no session's settings matter.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TypeVar

from penstock.errors import ColumnNotFound, PenstockError
from penstock.sql.checked_casts import checked
from penstock.sql.text import breaks
from penstock.sql.tokens import COMMENT, NAME, SPACE, Token, scan

T = TypeVar("T")

_CASTS = re.compile(r"::|\bcast\b|\btry_cast\b", re.I)
# The types of two words and more, and those that have no meaning with a length.
_LONGER = (("DOUBLE", "PRECISION"), ("TIMESTAMP", "WITH", "TIME", "ZONE"))
_WITHOUT_LENGTH = frozenset({"VARCHAR", "NVARCHAR", "CHAR", "BPCHAR", "TEXT"})
_SPARK = {
    **dict.fromkeys(("VARCHAR", "NVARCHAR", "CHAR", "BPCHAR", "TEXT"), "STRING"),
    **dict.fromkeys(("TIMESTAMPTZ", "TIMESTAMP WITH TIME ZONE"), "TIMESTAMP_LTZ"),
    **dict.fromkeys(("BLOB", "BYTEA"), "BINARY"),
    "DATETIME": "TIMESTAMP_NTZ", "DOUBLE PRECISION": "DOUBLE",
    "INT2": "SMALLINT", "INT4": "INT", "INT8": "BIGINT", "FLOAT4": "FLOAT", "FLOAT8": "DOUBLE",
}  # fmt: skip


def for_spark(text: str) -> str:
    """SQL of Spark's dialect as Penstock takes it, as Spark takes it: names and types of casts."""
    return cast_types(checked(backticked(text)))


def backticked(text: str) -> str:
    """``text`` for Spark, with names in double quotes in backticks.

    What follows a name stays where it was, unless there is a backtick in the name.
    """
    if '"' not in text:
        return text
    return "".join(_in_backticks(token) if _is_name(token) else token.text for token in scan(text))


def _is_name(token: Token) -> bool:
    return token.kind == NAME and token.text[0] == '"' and token.text != '""'


def _name(token: Token) -> str:
    """In double quotes, in which a backslash is nothing special."""
    return token.text[1:-1].replace('""', '"')


def _in_backticks(token: Token) -> str:
    name = _name(token).replace("`", "``")
    return f"`{name}`".ljust(len(token.text))


def cast_types(text: str) -> str:
    """``text`` with those in Spark's words; what follows on the line may move by some columns."""
    if not _CASTS.search(text):
        return text
    parts: list[str] = []
    position = 0
    tokens = [token for token in scan(text) if token.kind not in {COMMENT, SPACE}]
    for at in _places(tokens):
        kind = _type(tokens, at)
        if kind is None:
            continue
        start, end = tokens[at].start, tokens[at + kind.count(" ")].end
        parts += [text[position:start], _SPARK[kind].ljust(len(kind)), breaks(text, start, end)]
        position = end
    return "".join([*parts, text[position:]])


def _type(tokens: Sequence[Token], at: int) -> str | None:
    """The type that is named there, in capitals, if Spark calls it otherwise."""
    following = tuple(token.upper for token in tokens[at : at + 4])
    for longer in _LONGER:
        if following[: len(longer)] == longer:
            return " ".join(longer)
    kind = following[0] if following else ""
    sized = kind in _WITHOUT_LENGTH and following[1:2] == ("(",)
    return kind if kind in _SPARK and not sized else None


def _places(tokens: Sequence[Token]) -> Iterator[int]:
    """Where the type of a cast is named: after ``::``, and after the AS of a CAST."""
    casts: list[bool] = []  # for each bracket that is open, whether it is that of a CAST
    before = ""
    for at, token in enumerate(tokens):
        word = token.upper
        if word == "(":
            casts.append(before in {"CAST", "TRY_CAST"})
        elif word == ")" and casts:
            casts.pop()
        elif word == "::" or (word == "AS" and casts and casts[-1]):
            yield at + 1
        before = word


def if_text(value: T) -> T | str:
    """`for_spark` for SQL text; anything else, such as a Column, as it is."""
    return for_spark(value) if isinstance(value, str) else value


def texts_in(values: Mapping[str, object]) -> dict[str, object]:
    """`if_text` of each value."""
    return {name: if_text(value) for name, value in values.items()}


def names_in(text: str) -> frozenset[str]:
    """What stands in double quotes in ``text``."""
    return frozenset(_name(token) for token in scan(text) if _is_name(token))


def hint(error: PenstockError, names: frozenset[str]) -> str | None:
    """What to write instead, if the error is that a name in double quotes is not a column."""
    missing = str(error.data.get("condition")).startswith("UNRESOLVED_COLUMN")
    if not missing and not isinstance(error, ColumnNotFound):
        return None
    said = error.message.split("cannot be resolved")[0]
    name = next(
        (name for name in sorted(names) if f"`{name}`" in said or f"'{name}'" in said), None
    )
    if name is None:
        return None
    text = name.replace("'", "''")
    return f"\"{name}\" is a name: write '{text}' for the text"


@contextmanager
def hinted(*texts: object) -> Iterator[None]:
    """Errors inside that a text was taken for a name say how a text is written."""
    try:
        yield
    except PenstockError as error:
        names = [names_in(text) for text in texts if isinstance(text, str) and '"' in text]
        error.hint = hint(error, frozenset().union(*names)) or error.hint
        raise
