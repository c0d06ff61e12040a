"""UPDATE: new values for the rows of a table that a condition finds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from penstock.lakes.format.schema import TableSchema
from penstock.lakes.reading.conversions import casts
from penstock.lakes.reading.scan import FILE, POSITION, ROW_ID, Scan
from penstock.lakes.rows.change import RowChange
from penstock.lakes.rows.engine import stage
from penstock.lakes.rows.spark_finder import Path, with_fields
from penstock.lakes.statements.assignments import Place, Set, assignments, default_text, places_of
from penstock.lakes.statements.session import Answer, Session, counts
from penstock.lakes.statements.targets import (
    AliasedName,
    Target,
    add_conditions,
    aliased,
    existing,
    match,
    others_and_condition,
    plain,
    refuse_tail,
    refuse_tails,
    take,
)
from penstock.lakes.transaction import TransactionTable
from penstock.spark.functions import fn
from penstock.sql.identifiers import quoted
from penstock.sql.statement import Reader, StatementText, begun
from penstock.sql.text import Span, SqlExpression

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

NEW = "__penstock_new_"


@dataclass(frozen=True, slots=True)
class Update:
    """An UPDATE: ``others`` is the span of the tables in its FROM."""

    target: AliasedName
    sets: tuple[Set, ...]
    others: Span | None
    where: SqlExpression | None
    statement: StatementText


def parse(reader: Reader) -> Update:
    """``UPDATE t [AS a] SET c = ..., (d, e) = (...) [FROM s, ...] [WHERE ...]``

    Raises QueryFailed, UnsupportedFeature.
    """
    reader.expect("UPDATE")
    reader.accept("TABLE")
    target = aliased(reader)
    refuse_tail(reader)
    if not reader.accept("SET"):
        raise reader.wrong(
            f"SET is expected, not {reader.shown()}",
            "write UPDATE t SET a = ... [FROM s] [WHERE ...]",
        )
    sets = assignments(reader, "FROM", "WHERE", "RETURNING")
    others, where = others_and_condition(reader, "FROM", "SELECT the rows after the UPDATE")
    refuse_tails(reader, *(assigned.value for assigned in sets), others, where)
    reader.finish()
    return Update(target, sets, others, where, reader.statement)


def execute(session: Session, update: Update) -> Answer:
    target = Target.of(session, update.target)
    with session.writing() as transaction:
        table = existing(session, transaction, target.ref)
        places = places_of(update.statement, update.sets, table.written_schema, target)
        staged = stage(table, _change(session, table, target, update, places))
    return counts(session.spark, updated=staged.rows_updated)


def _change(
    session: Session,
    table: TransactionTable,
    target: Target,
    update: Update,
    places: Sequence[Place],
) -> RowChange:
    where, statement, alone = update.where, update.statement, update.others is None
    text = begun(statement).add(f"SELECT {quoted(target.name)}.*")
    for at, (assigned, place) in enumerate(zip(update.sets, places, strict=True)):
        text.add(", ")
        if assigned.value is None:
            text.add(default_text(statement, place.leaf, assigned.at))
        else:
            take(text.add("("), statement, assigned.value.span, target).add(")")
        text.add(f" AS {quoted(f'{NEW}{at}')}")
    text.add(f" FROM {target.source}")
    add_conditions(text, statement, target, update.others, where)
    condition = values = None
    if alone and where is not None:
        condition = plain(session, statement, where, target, table.schema)
        if condition is not None:
            values = _plain_values(session, update, target, places, table)
    rows = match(session, table, text, condition, once=alone)
    asked, schema = rows.selected, table.schema
    assert asked is not None, "a statement selects its rows"

    def selected(scanned: Scan) -> DataFrame:
        return _renewed(asked(scanned), places, schema)

    return RowChange.update(replace(rows, selected=selected), values)


def _plain_values(
    session: Session,
    update: Update,
    of: Target,
    places: Sequence[Place],
    table: TransactionTable,
) -> dict[str, str] | None:
    """The new values by column, if all parts of the statement are simple."""
    values: dict[str, str] = {}
    for place, assigned in zip(places, update.sets, strict=True):
        if assigned.value is None or place.path:
            return None
        value = plain(session, update.statement, assigned.value, of, table.schema)
        if value is None:
            return None
        values[place.column.name] = value.text
    return values


def _renewed(rows: DataFrame, places: Sequence[Place], schema: TableSchema) -> DataFrame:
    """The rows with their new values under the columns' names, cast as an INSERT casts."""
    news: dict[str, dict[Path, SparkColumn]] = {}
    for at, place in enumerate(places):
        news.setdefault(place.column.name, {})[place.path] = fn.col(quoted(f"{NEW}{at}"))
    columns: list[SparkColumn] = []
    for column in schema.columns:
        old, new = fn.col(quoted(column.name)), news.get(column.name)
        if new is not None:
            old = new[()] if () in new else with_fields(old, column, new)
        columns.append(old.alias(column.name))
    ids = [fn.col(name) for name in (FILE, POSITION, ROW_ID)]
    return casts.cast(rows.select(*columns, *ids), schema)
