"""What the dialect of a text decides: how it is parsed, and what it is in Spark's SQL.

Spark's dialect is Spark's SQL with names in double quotes and the format's types in casts; DuckDB's
goes through one strict translator, which refuses what is not known to mean the same.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import ClassVar

import sqlglot
from sqlglot import exp
from sqlglot.dialects.databricks import Databricks
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError, SqlglotError, TokenError

from penstock.sql.quoting import for_spark
from penstock.sql.text import misread

SPARK, DUCKDB = "spark", "duckdb"


class PenstockSpark(Spark):
    """Spark's SQL as sqlglot reads it, in which ``settings``, a function of lakes, is a name."""

    class Tokenizer(Spark.Tokenizer):
        KEYWORDS: ClassVar = {k: v for k, v in Spark.Tokenizer.KEYWORDS.items() if k != "SETTINGS"}


class PenstockDatabricks(Databricks):
    """Databricks' reads more of Spark 4 (``v:path``) than Spark's does."""

    class Tokenizer(Databricks.Tokenizer):
        KEYWORDS: ClassVar = {
            k: v for k, v in Databricks.Tokenizer.KEYWORDS.items() if k != "SETTINGS"
        }


# The readers of a dialect, tried in turn.
_READERS = {SPARK: (PenstockSpark, PenstockDatabricks), DUCKDB: ("duckdb",)}


class Unreadable(Exception):
    """sqlglot does not understand the text; Spark may, or may say better why it does not.

    The message ends a sentence (`penstock.sql.text.misread`); ``at`` is where it stopped.
    """

    def __init__(self, reason: str, at: int) -> None:
        self.at = at
        super().__init__(reason)


def parse(text: str, dialect: str = SPARK) -> list[exp.Expr]:
    """The trees of a text's statements. Raises Unreadable, of the first reader's words."""
    first: ParseError | TokenError | AssertionError | None = None
    for reader in _READERS[dialect]:
        try:
            return [tree for tree in sqlglot.parse(text, read=reader) if tree is not None]
        except (ParseError, TokenError, AssertionError) as error:  # it asserts on some unions
            first = first or error
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
) -> str:
    """A query (or ``expression``) in Spark's SQL, which a `normalized` text of Spark's dialect is.

    ``own`` are macros (``main.f``, folded) whose schema has to stay. ``asof`` keeps DuckDB's ASOF
    JOIN for `penstock.model.rewrites`, which knows Spark's form. Raises UnsupportedFeature with
    the place in ``text`` as ``data["start"]``, Unreadable.
    """
    if dialect == SPARK:
        return text
    # Late: commands that only look need no translator, and answer at once.
    from penstock.sql.duckdb.translate import translate

    try:
        return translate(text, own, asof=asof, expression=expression)
    except SqlglotError as error:
        raise Unreadable(*misread(error, text)) from None
