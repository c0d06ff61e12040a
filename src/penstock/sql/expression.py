"""An expression of Spark's SQL as a value, parsed once for all who ask something of it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from penstock.sql.text import Span


@dataclass(frozen=True)
class SqlExpression:
    """``text`` is in Spark's words; ``start`` is where it stands in its statement."""

    text: str
    start: int = 0

    @property
    def span(self) -> Span:
        """Where it stands in its statement."""
        return self.start, self.start + len(self.text)

    @cached_property
    def tree(self) -> exp.Expr | None:
        """sqlglot's tree, made on the first call; ``None`` where it reads none.

        All share it: whoever changes one copies it before.
        """
        try:
            return sqlglot.parse_one(self.text, read="spark", into=exp.Condition)
        except (SqlglotError, RecursionError):
            return None


def as_expression(value: str | SqlExpression) -> SqlExpression:
    return value if isinstance(value, SqlExpression) else SqlExpression(value)
