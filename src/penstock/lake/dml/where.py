"""DELETE, UPDATE and replace-where of one table by a condition over its own columns.

Files that the catalog knows to hold no row for the condition are not read, and files of which it
knows that all rows satisfy it (by statistics or partition values) end whole without being read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from penstock.lake import scan
from penstock.lake.candidate.state import Removed, Staged
from penstock.lake.conversions.align import align, typed
from penstock.lake.conversions.spark_types import quoted
from penstock.lake.dml import here as dml_here
from penstock.lake.dml.assign import assigned
from penstock.lake.dml.found import find
from penstock.lake.dml.remove import both, delete_all, end_whole, take_away
from penstock.lake.dml.rows import rows_of, scan_for, update_brought, update_rows
from penstock.lake.failures import explained
from penstock.lake.files import DataFile, FileSet
from penstock.lake.naming import fold
from penstock.lake.session import session_zone
from penstock.sql.predicate import of_where

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

    from penstock.lake.staging import TransactionTable
    from penstock.sql.conditions import Predicate

ROWID = "rowid"


def delete_where(
    table: TransactionTable, where: str | SparkColumn | None, *, here: bool = True
) -> Staged:
    """Delete the rows that satisfy ``where``; all without one. Without ``here`` Spark finds them,
    however simple that is.
    """
    with table.all_or_nothing(), explained(table=table.candidate.qualified_name):
        removed = _removed(table, where, here=here)
        table.take(removed, ())
    if not removed.rows:
        return Staged(unchanged=True)
    return Staged(rows_deleted=removed.rows)


def update_where(
    table: TransactionTable,
    values: Mapping[str, object],
    where: str | SparkColumn | None,
    *,
    here: bool = True,
) -> Staged:
    """Give the rows that satisfy ``where`` (all without one) new values.

    ``values`` are by column, or ``struct.field``: SQL text, a Column, or a plain value that is no
    text. All of them see the rows as they were. Without ``here`` Spark computes them.
    """
    with explained(table=table.candidate.qualified_name):
        source = scan_for(table, _keep(table, where))
        brought = dml_here.renewed(table, source, values, where) if here else None
        if brought is not None:
            return update_brought(table, source, brought)
        rows = _matching(table, source, where)
        new = typed(assigned(rows, values, table), table.schema)
        return update_rows(table, new, source=source, once=True)


def delete_here(table: TransactionTable, where: str) -> Staged | None:
    """As `delete_where`, where Arrow finds the rows; ``None`` where only Spark does."""
    with table.all_or_nothing(), explained(table=table.candidate.qualified_name):
        source = scan_for(table, _keep(table, where))
        which = dml_here.find(table, source, where)
        if which is None:
            return None
        if not which.total:
            return Staged(unchanged=True)
        removed = take_away(table, source, which)
        table.take(removed, ())
    return Staged(rows_deleted=removed.rows)


def update_here(table: TransactionTable, values: Mapping[str, str], where: str) -> Staged | None:
    """As `update_where`, where Arrow computes the values; ``None`` where only Spark does."""
    with explained(table=table.candidate.qualified_name):
        source = scan_for(table, _keep(table, where))
        brought = dml_here.renewed(table, source, values, where)
        return None if brought is None else update_brought(table, source, brought)


def overwrite_where(
    table: TransactionTable,
    df: DataFrame,
    where: str | SparkColumn | None,
) -> Staged:
    """Replace the rows that satisfy ``where`` by ``df``, all rows of which satisfy it too.

    Raises QueryFailed that shows a row which does not.
    """
    with table.all_or_nothing(), explained(table=table.candidate.qualified_name):
        if table.exists:
            removed = _removed(table, where)
            table.take(removed, ())
            # Rows that others insert meanwhile may satisfy it too. (DuckDB 1.5.5 lets no delete
            # follow an insert; two that replace the same nothing would leave the rows of both.)
            table.stage(replace(table.candidate, depends_on_rows=True))
            if where is not None:
                df = _satisfying(table, df, where)
        else:
            removed = Removed()
        staged = table.append(df)
    return replace(staged, rows_deleted=removed.rows)


def _removed(
    table: TransactionTable, where: str | SparkColumn | None, *, here: bool = True
) -> Removed:
    if where is None:
        return delete_all(table)
    source = scan_for(table, _keep(table, where))
    proven = _proven(table, source.files, where)
    gone = {file.path for file in proven}
    rest = replace(source.files, files=tuple(f for f in source.files.files if f.path not in gone))
    some = replace(source, files=rest)
    if rest.files and some.keys() != source.keys():
        proven, some, rest = [], source, source.files
    removed = end_whole(table, source, proven)
    if not rest.files and rest.inlined is None:
        return removed
    which = dml_here.find(table, some, where) if here else None
    if which is None:
        which = find(_matching(table, some, where), some, once=True)
    try:
        return both(removed, take_away(table, some, which)) if which.total else removed
    finally:
        which.release()


def _proven(table: TransactionTable, files: FileSet, where: str | SparkColumn) -> list[DataFile]:
    """Files all of whose rows satisfy the condition, as far as the catalog tells."""
    if not isinstance(where, str):
        return []
    contrary = _contrary(table, where)
    if contrary is None:
        return []
    others = {file.id for file in table.files(contrary).files}
    return [file for file in files.files if file.id is not None and file.id not in others]


def _contrary(table: TransactionTable, where: str) -> Predicate | None:
    """What every row satisfies for which ``where`` is false or NULL; None where that is not sure.

    What `of_where` understands is NULL only where a column is.
    """
    try:
        tree = sqlglot.parse_one(where, read="spark", into=exp.Condition)
    except SqlglotError:
        return None
    columns = {column.sql("spark") for column in tree.find_all(exp.Column)}
    parts = [f"NOT ({where})", *(f"{column} IS NULL" for column in sorted(columns))]
    found = of_where(" OR ".join(parts), zone=_zone(table))
    return None if found.condition is None or found.unused else found


def _keep(table: TransactionTable, where: str | SparkColumn | None) -> Predicate | None:
    return of_where(where, zone=_zone(table)) if isinstance(where, str) else None


def _zone(table: TransactionTable) -> str:
    return session_zone(table.context.spark())


def _matching(
    table: TransactionTable, source: scan.Scan, where: str | SparkColumn | None
) -> DataFrame:
    row_ids = isinstance(where, str) and _names_rowid(where, table.schema.names)
    rows = rows_of(table, source, row_ids=row_ids)
    found = rows if where is None else rows.where(where)
    return found.drop(ROWID) if row_ids else found


def _names_rowid(where: str, names: Sequence[str]) -> bool:
    return ROWID in fold(where) and ROWID not in map(fold, names)


def _satisfying(table: TransactionTable, df: DataFrame, where: str | SparkColumn) -> DataFrame:
    """``df`` that fails at a row which does not satisfy ``where``, when it is written."""
    from pyspark.sql import functions as fn

    name = table.candidate.qualified_name
    rows = df.select(*align(df, table.written_schema, table=name))
    condition = fn.expr(where) if isinstance(where, str) else where
    shown = fn.to_json(fn.struct(*map(quoted, rows.columns[:8])), {"ignoreNullFields": "false"})
    said = f"a new row of {name} does not satisfy the condition of what it replaces: "
    refusal = fn.raise_error(fn.concat(fn.lit(said), shown))
    first = rows.columns[0]
    checked = fn.when(condition, fn.col(quoted(first))).otherwise(refusal)
    return rows.withColumn("_penstock_checked", checked).select(
        fn.col("_penstock_checked").alias(first), *map(quoted, rows.columns[1:])
    )
