"""UPDATE: new values for the rows of a table that a condition finds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.lake import dml
from penstock.lake.schema import Column, TableSchema
from penstock.lake.spark_types import quoted
from penstock.lake.statements import assignment
from penstock.lake.statements.answer import Answer, counts
from penstock.lake.statements.composed import Composed, begun
from penstock.lake.statements.insert import existing
from penstock.lake.statements.reader import Reader
from penstock.lake.statements.session import Session
from penstock.lake.statements.targets import Target, ask, take, target
from penstock.lake.statements.tokens import Token

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

NEW = "__penstock_new_"
Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Set:
    """``column = expression``; no span: DEFAULT. ``at`` is where the column stands."""

    column: str
    span: Span | None
    at: int


def run(session: Session, reader: Reader) -> Answer:
    """``UPDATE t [AS a] SET c = ..., (d, e) = (...) [FROM s, ...] [WHERE ...]``"""
    reader.expect("UPDATE")
    reader.accept("TABLE")
    of = target(reader)
    reader.expect("SET")
    sets = assignments(reader, of, "FROM", "WHERE", "RETURNING")
    source = reader.until("WHERE", "RETURNING") if reader.accept("FROM") else None
    where = reader.until("RETURNING") if reader.accept("WHERE") else None
    if reader.sees("RETURNING"):
        raise reader.unsupported("RETURNING", "SELECT the rows after the UPDATE")
    reader.finish()
    with session.writing() as transaction:
        table = existing(session, transaction, of.ref)
        wanted = columns_of(reader, sets, table.schema, str(of.ref))
        text = begun(reader).add(f"SELECT {quoted(of.name)}.*")
        for at, (one, column) in enumerate(zip(sets, wanted, strict=True)):
            text.add(", ")
            expression(text, reader, one, column, of)
            text.add(f" AS {quoted(f'{NEW}{at}')}")
        text.add(f" FROM {of.source}")
        conditions(text, reader, of, source, where)
        found = ask(session, table, text)
        rows = renewed(found.rows, wanted, table.schema)
        staged = dml.update_rows(table, rows, source=found.source)
    return counts(session.spark, updated=staged.rows_updated)


def assignments(reader: Reader, of: Target, *stops: str) -> list[Set]:
    """``a = 1, t.b = 2, (c, d) = (3, 4)`` up to a stop word."""
    found = _assigned(reader, of, stops)
    while reader.accept(","):
        found += _assigned(reader, of, stops)
    return found


def _assigned(reader: Reader, of: Target, stops: tuple[str, ...]) -> list[Set]:
    if reader.token.text == "(":
        return _several(reader, of)
    name, at = _column(reader, of)
    _equals(reader)
    return [Set(name, _value(reader, ",", *stops), at)]


def _column(reader: Reader, of: Target) -> tuple[str, int]:
    """``c`` or ``t.c``; fields of structs are not set alone."""
    at = reader.token.start
    parts = reader.dotted("a column")
    prefixes = {(), (of.name.lower(),), (of.ref.schema.lower(), of.ref.name.lower())}
    if tuple(part.lower() for part in parts[:-1]) not in prefixes:
        raise reader.unsupported(
            f"setting {'.'.join(parts)}, a field of a struct",
            "set the whole struct: SET s = named_struct('x', ..., 'y', s.y)",
            at,
        )
    return parts[-1], at


def _several(reader: Reader, of: Target) -> list[Set]:
    """``(a, b) = (1, 2)``"""
    reader.expect("(")
    names = [_column(reader, of)]
    while reader.accept(","):
        names.append(_column(reader, of))
    reader.expect(")")
    _equals(reader)
    reader.accept("ROW")
    at = reader.token.start
    reader.expect("(")
    if reader.sees("SELECT") or reader.sees("WITH"):
        raise reader.unsupported("several columns of one subquery", "use UPDATE ... FROM", at)
    values = [_value(reader, ",")]
    while reader.accept(","):
        values.append(_value(reader, ","))
    reader.expect(")")
    if len(values) != len(names):
        raise reader.wrong(f"{len(values)} values are given for {len(names)} columns", at=at)
    return [Set(name, span, at) for (name, at), span in zip(names, values, strict=True)]


def _equals(reader: Reader) -> None:
    if reader.accept_any("=", "==", ":=") is None:
        raise reader.wrong(f"= is expected, not {reader.shown()}")


def _value(reader: Reader, *stops: str) -> Span | None:
    """The span of an expression, ``None`` for DEFAULT."""
    default: Token = reader.ahead(1)
    ends = default.kind == "end" or default.text in {",", ")"} or default.upper in stops
    if reader.sees("DEFAULT") and ends:
        reader.next()
        return None
    span = reader.until(*stops)
    reader.written(span)
    return span


def columns_of(reader: Reader, sets: list[Set], schema: TableSchema, table: str) -> list[Column]:
    """The columns that are set, each once. Raises QueryFailed with the place."""
    found: list[Column] = []
    for one in sets:
        column = schema.find(one.column)
        if column is None:
            listed = f"its columns are {', '.join(schema.names)}"
            raise reader.wrong(f"{table} has no column {one.column!r}", listed, one.at)
        if column in found:
            raise reader.wrong(f"the column {one.column!r} is set twice", at=one.at)
        found.append(column)
    return found


def expression(text: Composed, reader: Reader, one: Set, column: Column, of: Target) -> None:
    """What a column is set to, in brackets."""
    if one.span is None:
        text.add(default_text(reader, column, one.at))
        return
    text.add("(")
    take(text, reader, one.span, of)
    text.add(")")


def default_text(reader: Reader, column: Column, at: int) -> str:
    """The default of a column in Spark's SQL."""
    if column.default is None:
        return "NULL"
    if column.default_kind != "literal":
        raise reader.unsupported(
            f"the default {column.default} of {column.name}, which only DuckDB evaluates",
            "write the value",
            at,
        )
    escaped = column.default.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def conditions(
    text: Composed, reader: Reader, of: Target, source: Span | None, where: Span | None
) -> None:
    """The other tables and the WHERE of a statement."""
    if source is not None:
        reader.written(source, "a table")
        text.add(", ")
        take(text, reader, source, of)
    if where is not None:
        reader.written(where, "a condition")
        text.add(" WHERE ")
        take(text, reader, where, of)


def renewed(rows: DataFrame, wanted: list[Column], schema: TableSchema) -> DataFrame:
    """The rows with their new values under the columns' names, cast as an INSERT casts."""
    from pyspark.sql import functions as fn

    news = {column.name: f"{NEW}{at}" for at, column in enumerate(wanted)}
    columns = [
        fn.col(quoted(news.get(one.name, one.name))).alias(one.name) for one in schema.columns
    ]
    places = [fn.col(name) for name in (dml.FILE, dml.POSITION, dml.ROW_ID)]
    return assignment.cast(rows.select(*columns, *places), schema)
