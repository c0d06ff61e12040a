"""Expressions of a statement as Spark's SQL, and assignments of them to the columns of a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from penstock.errors import QueryFailed
from penstock.lakes.format.naming import fold
from penstock.lakes.format.schema import Column, TableSchema
from penstock.lakes.queries import running as queries
from penstock.lakes.queries.travel import in_zone
from penstock.lakes.rows.spark_finder import Path, fields_at, overlaps
from penstock.lakes.statements.session import Session
from penstock.lakes.statements.targets import Target, without_schema
from penstock.spark.functions import run_sql
from penstock.sql.identifiers import quoted
from penstock.sql.literals import argument
from penstock.sql.statement import Reader, StatementText, begun
from penstock.sql.text import Span, SqlExpression
from penstock.sql.tokens import MARKER, closing

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True, slots=True)
class Set:
    """``column = expression``; without a value it means DEFAULT. ``at`` is the column's place.

    ``parts`` are as written: ``t.c`` may be a column of the table and a field of a struct.
    """

    parts: tuple[str, ...]
    value: SqlExpression | None
    at: int


@dataclass(frozen=True, slots=True)
class Place:
    """The target of an assignment: a column, or its field ``leaf`` at ``path``."""

    column: Column
    path: Path
    leaf: Column

    @property
    def name(self) -> str:
        return ".".join((self.column.name, *self.path))


def assignments(reader: Reader, *stops: str) -> tuple[Set, ...]:
    """``a = 1, t.b = 2, (c, d) = (3, 4)`` up to a stop word."""
    sets = _assigned(reader, stops)
    while reader.accept(","):
        sets += _assigned(reader, stops)
    return tuple(sets)


def _assigned(reader: Reader, stops: tuple[str, ...]) -> list[Set]:
    if reader.token.text == "(":
        return _several(reader)
    at, parts = reader.token.start, reader.dotted("a column")
    _equals(reader)
    return [Set(parts, value_or_default(reader, ",", *stops), at)]


def _several(reader: Reader) -> list[Set]:
    """``(a, b) = (1, 2)``"""
    reader.expect("(")
    names = [(reader.token.start, reader.dotted("a column"))]
    while reader.accept(","):
        names.append((reader.token.start, reader.dotted("a column")))
    reader.expect(")")
    _equals(reader)
    reader.accept("ROW")
    at = reader.token.start
    reader.expect("(")
    if reader.sees("SELECT") or reader.sees("WITH"):
        raise reader.unsupported("several columns of one subquery", "use UPDATE ... FROM", at)
    values = [value_or_default(reader, ",")]
    while reader.accept(","):
        values.append(value_or_default(reader, ","))
    reader.expect(")")
    if len(values) != len(names):
        raise reader.wrong(f"{len(values)} values are given for {len(names)} columns", at=at)
    return [Set(name, value, at) for (at, name), value in zip(names, values, strict=True)]


def _equals(reader: Reader) -> None:
    if reader.accept_any("=", "==", ":=") is None:
        raise reader.wrong(f"= is expected, not {reader.shown()}")


def value_or_default(
    reader: Reader, *stops: str, what: str = "an expression"
) -> SqlExpression | None:
    """An expression, ``None`` for DEFAULT."""
    after = reader.ahead(1)
    ends = after.kind == "end" or after.text in {",", ")"} or after.upper in stops
    if reader.sees("DEFAULT") and ends:
        reader.next()
        return None
    return reader.expression(*stops, what=what)


def places_of(
    statement: StatementText, sets: Sequence[Set], schema: TableSchema, of: Target
) -> list[Place]:
    """The targets, each set once. Raises QueryFailed with the place in the text."""
    places: list[Place] = []
    for assigned in sets:
        place = _place(statement, assigned, schema, of)
        before = [other.path for other in places if other.column is place.column]
        if overlaps(place.path, before):
            raise statement.wrong(f"the column {place.name!r} is set twice", assigned.at)
        places.append(place)
    return places


def _place(statement: StatementText, assigned: Set, schema: TableSchema, of: Target) -> Place:
    """``c``, ``t.c``, ``schema.t.c``, and the fields of a struct after each."""
    table = (of.ref.schema, of.ref.name) if of.alias is None else ()
    for prefix in ((), (of.name,), table):
        name, rest = assigned.parts[: len(prefix)], assigned.parts[len(prefix) :]
        if not rest or tuple(map(fold, name)) != tuple(map(fold, prefix)):
            continue
        column = schema.find(rest[0])
        if column is None:
            continue
        path = fields_at(column, rest[1:])
        if path is not None:
            leaf = column
            for inside in path:
                leaf = next(child for child in leaf.children if child.name == inside)
            return Place(column, path, leaf)
        if not prefix and fold(rest[0]) != fold(of.name):
            fields = [f"{column.name}.{child.name}" for child in column.children]
            listed = f"its fields are {', '.join(fields)}" if column.type == "struct" else None
            named = f"{column.name} of type {column.type} has no field {'.'.join(rest[1:])!r}"
            raise statement.wrong(named, assigned.at, listed)
    listed = f"its columns are {', '.join(schema.names)}"
    message = f"{of.ref} has no column {'.'.join(assigned.parts)!r}"
    raise statement.wrong(message, assigned.at, listed)


def default_text(statement: StatementText, column: Column, at: int) -> str:
    """The default of a column in Spark's SQL, for the word DEFAULT at this place."""
    if column.default is None:
        return "NULL"
    if not column.has_plain_default:
        raise statement.unsupported(
            f"the default {column.default} of {column.name}, which only DuckDB evaluates",
            "write the value",
            at,
        )
    escaped = column.default.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def columns_of(schema: TableSchema, names: Sequence[str], table: str) -> list[Column]:
    """The columns of these names, each once. Raises QueryFailed listing the columns."""
    columns: list[Column] = []
    for name in names:
        column = schema.find(name)
        if column is None:
            raise QueryFailed(
                f"{table} has no column {name!r}",
                hint=f"its columns are {', '.join(schema.names)}",
                data={"table": table, "column": name},
            )
        if fold(name) in {fold(other.name) for other in columns}:
            raise QueryFailed(
                f"the column {name!r} is named twice",
                hint="name it once",
                data={"table": table, "column": name},
            )
        columns.append(column)
    return columns


def by_position(df: DataFrame, columns: Sequence[Column], table: str) -> DataFrame:
    """The columns of ``df`` under the names of ``columns``, in order."""
    if len(df.columns) != len(columns):
        listed = ", ".join(column.name for column in columns)
        raise QueryFailed(
            f"{len(df.columns)} columns are given for {len(columns)} of {table}: {listed}",
            hint="name the columns, INSERT INTO t (a, b) ..., or insert BY NAME",
            data={"table": table},
        )
    return df.toDF(*(column.name for column in columns))


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
