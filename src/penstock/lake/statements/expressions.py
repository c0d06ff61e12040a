"""Expressions of a statement as Spark's SQL: macros expanded, values bound as session variables."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from penstock.lake.queries import running as queries
from penstock.lake.queries.travel import in_zone
from penstock.lake.statements.session import Session
from penstock.lake.statements.targets import Target, without_schema
from penstock.spark.functions import run_sql
from penstock.sql.identifiers import quoted
from penstock.sql.literals import argument
from penstock.sql.statement import StatementText, begun
from penstock.sql.text import Span, SqlExpression
from penstock.sql.tokens import MARKER, closing

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


_QUERIES = frozenset({"SELECT", "WITH", "VALUES", "FROM"})


@dataclass(slots=True)
class Variables:
    """Names for texts while the statement runs: values are variables of the session, rows are
    views.
    """

    spark: SparkSession
    prefix: str
    names: dict[str, str] = field(default_factory=dict)
    views: list[str] = field(default_factory=list)

    def view(self, df: DataFrame) -> str:
        """The name of a view of these rows."""
        name = f"{self.prefix}_view_{len(self.views)}"
        df.createOrReplaceTempView(name)
        self.views.append(name)
        return f"`{name}`"

    def of(self, key: str, value: Any) -> str:
        """The name of the variable that has this value."""
        if key not in self.names:
            name = f"{self.prefix}_{len(self.names)}"
            run_sql(
                self.spark, f"DECLARE OR REPLACE VARIABLE {name} = :value", args={"value": value}
            )
            self.names[key] = name
        return self.names[key]


@contextmanager
def variables(session: Session) -> Iterator[Variables]:
    """Variables and views that are dropped after the block."""
    names = Variables(session.spark(), f"__penstock_{uuid4().hex}")
    try:
        yield names
    finally:
        for name in names.names.values():
            run_sql(names.spark, f"DROP TEMPORARY VARIABLE IF EXISTS {name}")
        for view in names.views:
            names.spark.catalog.dropTempView(view)


@dataclass(frozen=True, slots=True)
class Expressions:
    """Translates the expressions of one statement over a target to text for Spark."""

    session: Session
    statement: StatementText
    of: Target
    names: Variables
    source: Target | None = None  # a table that is named by its schema, too

    def text(self, written: SqlExpression) -> str:
        """An expression without macros and markers; views stand for the tables of
        its subqueries. Raises ArgumentError for markers without a value.
        """
        parts: list[str] = []
        span, tokens = written.span, self.statement.words(written.span)
        at = span[0]
        for i, token in enumerate(tokens):
            if token.start < at:
                continue
            parts.append(self._bound((at, token.start)))
            at = token.start
            if token.text == "(" and i + 1 < len(tokens) and tokens[i + 1].upper in _QUERIES:
                close = closing(tokens, i)
                assert close is not None, "brackets are closed in what was read"
                end = tokens[close].start
                parts.append(f"({self._query((token.end, end))}")
                at = end
        parts.append(self._bound((at, span[1])))
        text = without_schema("".join(parts), self.of, self.statement.lakes)
        if self.source is not None:
            text = without_schema(text, self.source, self.statement.lakes)
        return self.session.names(self.session.transaction).expand(text)

    def _bound(self, span: Span) -> str:
        """A part of the text with its markers bound."""
        parts: list[str] = []
        at = span[0]
        for token in self.statement.words(span):
            if token.kind == MARKER:
                parts += [self.statement.text[at : token.start], self._marker(token.text[1:])]
                at = token.end
        return "".join((*parts, self.statement.text[at : span[1]]))

    def _query(self, span: Span) -> str:
        """A subquery in which views stand for tables."""
        session = self.session
        named = {**(session.views or {}), **self._with()}
        names = session.names(session.transaction)
        query = queries.rewritten(self.names.spark, self._bound(span), names, views=named)
        views = {key: self.names.view(df) for key, df in query.frames.items()}
        return query.text.format(**views)

    def _with(self) -> dict[str, DataFrame]:
        """The common table expressions of the statement's WITH."""
        return {
            name: self.session.asked(begun(self.statement).add(f"SELECT * FROM {quoted(name)}"), {})
            for name in self.statement.with_names
        }

    def value(self, value: Any) -> str:
        return self.names.of(f"={value!r}", value)

    def _marker(self, name: str) -> str:
        value = in_zone(argument(name, self.session.args), self.session.zone())
        return self.names.of(f":{name}", value)
