"""SQL of Spark's dialect as Penstock takes it: names in double quotes, types of casts.

``"name"`` is a name in every text that Penstock takes, as in DuckDB and in the standard; Spark
reads it as a text unless its session is told otherwise. ``CAST(x AS VARCHAR)`` and
``x::TIMESTAMPTZ`` mean what the type means in CREATE TABLE; names that both have keep Spark's
meaning in expressions (``TIMESTAMP`` has a zone). The texts are rewritten once, where they come in,
so that no session's settings matter.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TypeVar

from penstock.errors import ColumnNotFound, PenstockError
from penstock.sql.tokens import NAME, Token, scan
from penstock.sql.types import cast_types, checked

T = TypeVar("T")


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
