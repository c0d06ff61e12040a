"""UPDATE: new values for the rows of a table that a condition finds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from penstock.lake.format.naming import fold
from penstock.lake.format.schema import Column, TableSchema
from penstock.lake.reading.conversions import casts
from penstock.lake.reading.conversions.spark_types import quoted
from penstock.lake.reading.scan import FILE, POSITION, ROW_ID, Scan
from penstock.lake.rows.assign import Path, fields_at, overlaps, with_fields
from penstock.lake.rows.change import RowChange
from penstock.lake.rows.engine import stage
from penstock.lake.statements.answer import Answer, counts
from penstock.lake.statements.default_text import default_text
from penstock.lake.statements.existing import existing
from penstock.lake.statements.plain import match, plain
from penstock.lake.statements.session import Session
from penstock.lake.statements.tails import refuse_tail, refuse_tails
from penstock.lake.statements.targets import Target, take, target
from penstock.lake.transaction import TransactionTable
from penstock.sql.statement import Reader, begun
from penstock.sql.text import Composed
from penstock.sql.tokens import Token

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

NEW = "__penstock_new_"
Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Set:
    """``column = expression``; no span: DEFAULT. ``at`` is where the column stands.

    ``parts`` are as written: ``t.c`` may be a column of the table and a field of a struct.
    """

    parts: tuple[str, ...]
    span: Span | None
    at: int


@dataclass(frozen=True, slots=True)
class Place:
    """What is set: a column, or the field at ``path`` inside of it, which ``leaf`` is."""

    column: Column
    path: Path
    leaf: Column

    @property
    def name(self) -> str:
        return ".".join((self.column.name, *self.path))


@dataclass(frozen=True, slots=True)
class Update:
    """An UPDATE as read: ``source`` is the span of its FROM, ``where`` that of its condition."""

    of: Target
    sets: list[Set]
    source: Span | None
    where: Span | None


def read(reader: Reader) -> Update:
    """The statement's parts. Raises QueryFailed, UnsupportedFeature."""
    reader.expect("UPDATE")
    reader.accept("TABLE")
    of = target(reader)
    refuse_tail(reader)
    if not reader.accept("SET"):
        raise reader.wrong(
            f"SET is expected, not {reader.shown()}",
            "write UPDATE t SET a = ... [FROM s] [WHERE ...]",
        )
    sets = assignments(reader, "FROM", "WHERE", "RETURNING")
    source = reader.until("WHERE", "RETURNING") if reader.accept("FROM") else None
    where = reader.until("RETURNING") if reader.accept("WHERE") else None
    if reader.sees("RETURNING"):
        raise reader.unsupported("RETURNING", "SELECT the rows after the UPDATE")
    refuse_tails(reader, (*(one.span for one in sets), source, where))
    reader.finish()
    return Update(of, sets, source, where)


def run(session: Session, reader: Reader) -> Answer:
    """``UPDATE t [AS a] SET c = ..., (d, e) = (...) [FROM s, ...] [WHERE ...]``"""
    update = read(reader)
    of, sets, source, where = update.of, update.sets, update.source, update.where
    with session.writing() as transaction:
        table = existing(session, transaction, of.ref)
        wanted = places_of(reader, sets, table.written_schema, of)
        text = begun(reader).add(f"SELECT {quoted(of.name)}.*")
        for at, (one, what) in enumerate(zip(sets, wanted, strict=True)):
            text.add(", ")
            expression(text, reader, one, what.leaf, of)
            text.add(f" AS {quoted(f'{NEW}{at}')}")
        text.add(f" FROM {of.source}")
        conditions(text, reader, of, source, where)
        condition = values = None
        if source is None and where is not None:
            condition = plain(session, reader, where, of, table.schema)
            pairs = dict(zip(wanted, sets, strict=True))
            values = None if condition is None else _plain_values(session, reader, of, pairs, table)
        found = match(session, table, text, condition, once=source is None)
        asked = found.selected
        assert asked is not None, "a statement selects its rows"

        def selected(scanned: Scan) -> DataFrame:
            return renewed(asked(scanned), wanted, table.schema)

        change = RowChange.update(replace(found, selected=selected), values)
        staged = stage(table, change)
    return counts(session.spark, updated=staged.rows_updated)


def _plain_values(
    session: Session,
    reader: Reader,
    of: Target,
    sets: Mapping[Place, Set],
    table: TransactionTable,
) -> dict[str, str] | None:
    """The new values by column, where all that the statement says is simple."""
    values: dict[str, str] = {}
    for place, one in sets.items():
        value = None if one.span is None else plain(session, reader, one.span, of, table.schema)
        if value is None or place.path:
            return None
        values[place.column.name] = value
    return values


def assignments(reader: Reader, *stops: str) -> list[Set]:
    """``a = 1, t.b = 2, (c, d) = (3, 4)`` up to a stop word."""
    found = _assigned(reader, stops)
    while reader.accept(","):
        found += _assigned(reader, stops)
    return found


def _assigned(reader: Reader, stops: tuple[str, ...]) -> list[Set]:
    if reader.token.text == "(":
        return _several(reader)
    at, parts = reader.token.start, reader.dotted("a column")
    _equals(reader)
    return [Set(parts, _value(reader, ",", *stops), at)]


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
    values = [_value(reader, ",")]
    while reader.accept(","):
        values.append(_value(reader, ","))
    reader.expect(")")
    if len(values) != len(names):
        raise reader.wrong(f"{len(values)} values are given for {len(names)} columns", at=at)
    return [Set(name, span, at) for (at, name), span in zip(names, values, strict=True)]


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


def places_of(reader: Reader, sets: list[Set], schema: TableSchema, of: Target) -> list[Place]:
    """What is set, each once. Raises QueryFailed with the place in the text."""
    found: list[Place] = []
    for one in sets:
        place = _place(reader, one, schema, of)
        before = [other.path for other in found if other.column is place.column]
        if overlaps(place.path, before):
            raise reader.wrong(f"the column {place.name!r} is set twice", at=one.at)
        found.append(place)
    return found


def _place(reader: Reader, one: Set, schema: TableSchema, of: Target) -> Place:
    """``c``, ``t.c``, ``schema.t.c``, and the fields of a struct after each."""
    table = (of.ref.schema, of.ref.name) if of.alias is None else ()
    for prefix in ((), (of.name,), table):
        name, rest = one.parts[: len(prefix)], one.parts[len(prefix) :]
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
            inside_ = [f"{column.name}.{child.name}" for child in column.children]
            listed = f"its fields are {', '.join(inside_)}" if column.type == "struct" else None
            named = f"{column.name} of type {column.type} has no field {'.'.join(rest[1:])!r}"
            raise reader.wrong(named, listed, one.at)
    listed = f"its columns are {', '.join(schema.names)}"
    raise reader.wrong(f"{of.ref} has no column {'.'.join(one.parts)!r}", listed, one.at)


def expression(text: Composed, reader: Reader, one: Set, column: Column, of: Target) -> None:
    """What a column is set to, in brackets."""
    if one.span is None:
        text.add(default_text(reader, column, one.at))
        return
    text.add("(")
    take(text, reader, one.span, of)
    text.add(")")


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
        null = reader.text[where[0] : where[1]].upper() == "NULL"  # of no type, in Spark
        text.add(" WHERE false AND " if null else " WHERE ")
        take(text, reader, where, of)


def renewed(rows: DataFrame, wanted: list[Place], schema: TableSchema) -> DataFrame:
    """The rows with their new values under the columns' names, cast as an INSERT casts."""
    from pyspark.sql import functions as fn

    news: dict[str, dict[Path, SparkColumn]] = {}
    for at, one in enumerate(wanted):
        news.setdefault(one.column.name, {})[one.path] = fn.col(quoted(f"{NEW}{at}"))
    columns: list[SparkColumn] = []
    for column in schema.columns:
        old, new = fn.col(quoted(column.name)), news.get(column.name)
        if new is not None:
            old = new[()] if () in new else with_fields(old, column, new)
        columns.append(old.alias(column.name))
    places = [fn.col(name) for name in (FILE, POSITION, ROW_ID)]
    return casts.cast(rows.select(*columns, *places), schema)
