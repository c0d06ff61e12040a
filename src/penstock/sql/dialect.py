"""Which dialect a text is in, and its trees: Spark's SQL, or DuckDB's, which becomes Spark's."""

from __future__ import annotations

from typing import ClassVar

import sqlglot
from sqlglot import exp
from sqlglot.dialects.databricks import Databricks
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError, TokenError

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
