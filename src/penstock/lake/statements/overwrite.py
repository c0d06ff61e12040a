"""INSERT OVERWRITE, PARTITION (c = v) and REPLACE WHERE: new rows replace others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from penstock.errors import UnsupportedFeature
from penstock.lake.format.naming import TableRef
from penstock.lake.format.schema import Column
from penstock.lake.reading.conversions.spark_types import literal, spark_type
from penstock.lake.rows import engine
from penstock.lake.rows.change import Condition, RowChange
from penstock.lake.statements.assignments import columns_of
from penstock.lake.statements.session import Session
from penstock.lake.statements.targets import Target, add_conditions, match, plain, take
from penstock.lake.statements.values import fitted
from penstock.lake.transaction import Staged, TransactionTable
from penstock.sql.identifiers import quoted
from penstock.sql.literals import Literal, NoLiteral
from penstock.sql.statement import StatementText, begun
from penstock.sql.text import SqlExpression
from penstock.sql.tokens import MARKER

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from penstock.lake.statements.insert import Insert

_NEW = "__penstock_rows"
_QUERIES = frozenset({"SELECT", "WITH", "FROM", "VALUES", "TABLE"})


def stage(
    session: Session, table: TransactionTable, insert: Insert, ref: TableRef, df: DataFrame
) -> Staged:
    """Replace the rows that the statement names by those of ``df``, as `Table.overwrite` does;
    with PARTITION alone they are added.

    With REPLACE WHERE a new row for which the condition is not true fails the statement, as in
    Delta: it would not be replaced the next time.
    """
    target, statement = Target(ref, None), insert.statement
    fixed = insert.fixed or {}
    columns = columns_of(table.schema, list(fixed), str(ref))
    pairs = zip(columns, fixed.values(), strict=True)
    values = [(column, _value(session, column, value)) for column, value in pairs]
    for column, value in values:
        df = df.withColumn(column.name, literal(value).cast(spark_type(column)))
    if not insert.replaces_rows:
        return table.append(df)
    replaced = Condition()
    if insert.replaces is not None:
        replaced = _satisfying(session, table, target, insert.replaces, statement)
        if replaced.where is None:  # only a SELECT says which rows satisfy it, new ones too
            df = _checked(session, target, insert.replaces, statement, df)
    elif values:
        replaced = _slice(session, table, target, values, statement)
    return engine.stage(table, RowChange.overwrite(df, replaced))


def by_row_alone(statement: StatementText, where: SqlExpression) -> bool:
    """Whether a condition depends on a row alone, so that new rows can be checked by it: it has no
    marker and no subquery.
    """
    return not any(
        token.kind == MARKER or token.upper in _QUERIES for token in statement.words(where.span)
    )


def _satisfying(
    session: Session,
    table: TransactionTable,
    target: Target,
    where: SqlExpression,
    statement: StatementText,
) -> Condition:
    """The rows for which the condition is true."""
    text = begun(statement).add(f"SELECT {target.place} FROM {target.source}")
    add_conditions(text, statement, target, None, where)
    condition = None
    if by_row_alone(statement, where):
        condition = plain(session, statement, where, target, table.schema)
    return match(session, table, text, condition, once=True)


def _slice(
    session: Session,
    table: TransactionTable,
    target: Target,
    values: Sequence[tuple[Column, Any]],
    statement: StatementText,
) -> Condition:
    """The rows that have these values."""
    parts: list[str] = []
    args: dict[str, Any] = {}
    for at, (column, value) in enumerate(values):
        args[f"penstock_value_{at}"] = value
        kind = spark_type(column).simpleString()
        parts.append(f"{target.column(column.name)} <=> CAST(:penstock_value_{at} AS {kind})")
    text = begun(statement).add(f"SELECT {target.place} FROM {target.source} WHERE ")
    text.add(" AND ".join(parts))
    session = replace(session, args={**session.args, **args})
    return match(session, table, text, None, once=True)


def _value(session: Session, column: Column, value: Literal) -> Any:
    try:
        return fitted(value, column, session.zone)
    except NoLiteral:
        raise UnsupportedFeature(
            f"PARTITION ({column.name} = ...) of {column.type} is not supported",
            hint="use REPLACE WHERE a condition",
        ) from None


def _checked(
    session: Session,
    target: Target,
    where: SqlExpression,
    statement: StatementText,
    df: DataFrame,
) -> DataFrame:
    """The new rows, with a check that each satisfies the condition."""
    text = begun(statement)
    text.add(f"SELECT * FROM {quoted(_NEW)} AS {quoted(target.name)} WHERE CASE WHEN (")
    take(text, statement, where.span, target)
    message = f"a new row of {target.ref} is not what REPLACE WHERE says, so it would not be "
    message += "replaced the next time"
    message = message.replace("\\", "\\\\").replace("'", "\\'")
    text.add(f") THEN true ELSE raise_error('{message}') END")
    return session.asked(text, {_NEW: df})
