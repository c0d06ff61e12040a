"""Parse a text by its dialect, and translate it to Spark's SQL.

Spark's dialect is Spark's SQL in which ``"name"`` is a name, as in DuckDB and in the standard
(Spark takes it for a text by default), and casts have the types of CREATE TABLE; names that both
have keep Spark's meaning in expressions (``TIMESTAMP`` has a zone). Texts are rewritten once, where
they come in, so that no session's settings matter. DuckDB's dialect goes through one strict
translator, which refuses what is not known to mean the same.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TypeVar

from penstock.errors import ColumnNotFound, PenstockError
from penstock.lazy import exp
from penstock.sql.lexer import Lexer, reader
from penstock.sql.literals import plain_text_literal
from penstock.sql.text import Unreadable, misread
from penstock.sql.tokens import NAME, Token, scan
from penstock.sql.types import cast_types, checked

SPARK, DUCKDB = "spark", "duckdb"
Columns = Callable[["exp.Table"], Sequence[str] | None]
T = TypeVar("T")


# The readers of a dialect, tried in turn: Databricks' reads more of Spark 4 (``v:path``).
_READERS = {SPARK: ("spark", "databricks"), DUCKDB: ("duckdb",)}


def parse(text: str, dialect: str = SPARK, lexer: Lexer | None = None) -> list[exp.Expr]:
    """The trees of a text's statements. Raises Unreadable, of the first reader's words."""
    # Late: sqlglot takes longer to load than the rest of a command that looks nothing up in trees.
    from sqlglot.errors import ParseError, TokenError

    lexer = lexer or Lexer()
    first: ParseError | TokenError | AssertionError | RecursionError | None = None
    for name in _READERS[dialect]:
        try:
            trees = reader(name)().parser().parse(lexer.words(text, name), text)
            return [tree for tree in trees if tree is not None]
        except (ParseError, TokenError, AssertionError) as error:  # it asserts on some unions
            first = first or error
        except RecursionError as error:
            first = error
            break
    assert first is not None, "there are readers"
    reason, at = misread(first, text)
    raise Unreadable(reason, at) from first


def normalized(text: str, dialect: str) -> str:
    """A text as it is read from then on: Spark's dialect in Spark's words, DuckDB's as written.

    Raises QueryFailed for a cast whose values are not known to be the same.
    """
    return for_spark(text) if dialect == SPARK else text


def to_spark(
    text: str,
    dialect: str,
    own: Collection[str] = (),
    *,
    expression: bool = False,
    asof: bool = False,
    columns: Columns | None = None,
) -> str:
    """A query (or ``expression``) in Spark's SQL, which a `normalized` text of Spark's dialect is.

    ``own`` are macros (``main.f``, folded) whose schema has to stay. ``asof`` keeps DuckDB's ASOF
    JOIN for `penstock.model.script.rewrites`, which knows Spark's form. ``columns`` are those of a
    table, for ``* REPLACE`` and the like. Raises UnsupportedFeature with
    the place in ``text`` as ``data["start"]``, Unreadable.
    """
    if dialect == SPARK:
        return text
    # Late: commands that only look need no translator, and answer at once.
    from penstock.sql.duckdb.translate import translate

    known = {} if columns is None else {"columns": columns}
    return translate(text, own, asof=asof, expression=expression, **known)


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
    """Return what stands in double quotes in ``text``."""
    if '"' not in text:
        return frozenset()
    return frozenset(_name(token) for token in scan(text) if _is_name(token))


def name_hint(error: PenstockError, names: frozenset[str]) -> str | None:
    """Return what to write instead, if the error is that a name in double
    quotes is not a column.
    """
    missing = str(error.data.get("condition")).startswith("UNRESOLVED_COLUMN")
    if not missing and not isinstance(error, ColumnNotFound):
        return None
    said = error.message.split("cannot be resolved")[0]
    name = next(
        (name for name in sorted(names) if f"`{name}`" in said or f"'{name}'" in said), None
    )
    if name is None:
        return None
    return f'"{name}" is a name: write {plain_text_literal(name)} for the text'


@contextmanager
def hinted(*texts: object) -> Iterator[None]:
    """Errors inside that a text was taken for a name say how a text is written."""
    try:
        yield
    except PenstockError as error:
        names = [names_in(text) for text in texts if isinstance(text, str) and '"' in text]
        error.hint = name_hint(error, frozenset().union(*names)) or error.hint
        raise
