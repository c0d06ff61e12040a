"""INSERT OVERWRITE, PARTITION (c = v) and REPLACE WHERE: new rows in place of others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from penstock.lake.format.schema import Column
from penstock.lake.reading.conversions.spark_types import literal, quoted, spark_type
from penstock.lake.rows import engine
from penstock.lake.rows.change import RowChange
from penstock.lake.statements import assignment
from penstock.lake.statements.column_values import fitted
from penstock.lake.statements.delete import remove
from penstock.lake.statements.plain import match
from penstock.lake.statements.session import Session
from penstock.lake.statements.targets import Target, place, take
from penstock.lake.transaction import Staged, TransactionTable
from penstock.sql.literals import Literal, NoLiteral
from penstock.sql.statement import Reader, begun

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from penstock.lake.statements.insert import Insert

_NEW = "__penstock_rows"


def stage(
    session: Session,
    table: TransactionTable,
    insert: Insert,
    df: DataFrame,
    reader: Reader,
) -> Staged:
    """Delete what is replaced, then add the rows of ``df``.

    With REPLACE WHERE a new row for which the condition is not true fails the statement, as in
    Delta: it would not be replaced the next time.
    """
    of = Target(insert.ref, None)
    gone = Staged()
    if insert.replaces is not None:
        gone = remove(session, table, of, reader, where=insert.replaces)
        df = _checked(session, insert, df, reader)
    elif insert.overwrite and insert.fixed:
        gone = _remove_slice(session, table, of, insert.fixed, reader)
    elif insert.overwrite:
        gone = remove(session, table, of, reader)
    if insert.overwrite or insert.replaces is not None:
        # Where nothing goes, two that replace the same nothing would leave the rows of both.
        table.stage(replace(table.candidate, depends_on_rows=True))
    for name, one in (insert.fixed or {}).items():
        column = assignment.columns_of(table.schema, [name], str(insert.ref))[0]
        value = literal(_value(session, column, one, reader)).cast(spark_type(column))
        df = df.withColumn(column.name, value)
    return replace(table.append(df), rows_deleted=gone.rows_deleted)


def _remove_slice(
    session: Session,
    table: TransactionTable,
    of: Target,
    fixed: Mapping[str, Literal],
    reader: Reader,
) -> Staged:
    """Delete the rows that have these values."""
    parts: list[str] = []
    args: dict[str, Any] = {}
    for at, (name, one) in enumerate(fixed.items()):
        column = assignment.columns_of(table.schema, [name], str(of.ref))[0]
        args[f"penstock_value_{at}"] = _value(session, column, one, reader)
        kind = spark_type(column).simpleString()
        parts.append(f"{of.column(column.name)} <=> CAST(:penstock_value_{at} AS {kind})")
    text = begun(reader).add(f"SELECT {place(of)} FROM {of.source} WHERE ")
    text.add(" AND ".join(parts))
    session = replace(session, args={**session.args, **args})
    found = match(session, table, text, None, once=True)
    return engine.stage(table, RowChange.delete(found))


def _value(session: Session, column: Column, one: Literal, reader: Reader) -> Any:
    try:
        return fitted(one, column, session.zone)
    except NoLiteral:
        raise reader.unsupported(
            f"PARTITION ({column.name} = ...) of {column.type}", "use REPLACE WHERE a condition"
        ) from None


def _checked(session: Session, insert: Insert, df: DataFrame, reader: Reader) -> DataFrame:
    """The new rows, each of which the condition has to hold for."""
    assert insert.replaces is not None
    of = Target(insert.ref, None)
    text = begun(reader)
    text.add(f"SELECT * FROM {quoted(_NEW)} AS {quoted(of.name)} WHERE CASE WHEN (")
    take(text, reader, insert.replaces, of)
    message = f"a new row of {insert.ref} is not what REPLACE WHERE says, so it would not be "
    message += "replaced the next time"
    message = message.replace("\\", "\\\\").replace("'", "\\'")
    text.add(f") THEN true ELSE raise_error('{message}') END")
    return session.asked(text, {_NEW: df})
