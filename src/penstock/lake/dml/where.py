"""DELETE, UPDATE and replace-where of one table by a condition over its own columns.

Files that the catalog knows to hold no row for the condition are not read, and files of which it
knows that all rows satisfy it (by statistics or partition values) end whole without being read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

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
from penstock.lake.dml.rows import rows_of, update_brought, update_rows
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


@dataclass(frozen=True, slots=True)
class Match:
    """Which rows of a table change: those for which ``where`` is true, all without a condition.

    ``where`` is text of Spark's SQL or a Column, over nothing but the table's columns and ``args``.
    ``selected`` has Spark select the rows of a scan, as `rows_of` gives them, for an UPDATE with
    their new values; it alone says which they are where a statement names more than that (other
    tables, say), and ``keep`` which files may hold some. Without ``once`` it may give a row twice.
    """

    where: str | SparkColumn | None = None
    selected: Callable[[scan.Scan], DataFrame] | None = None
    keep: Predicate | None = None
    once: bool = True
    args: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_all(self) -> bool:
        return self.where is None and self.selected is None

    def file_filter(self, zone: str) -> Predicate | None:
        """What the files that may hold such rows fulfil."""
        if not isinstance(self.where, str):
            return self.keep
        return of_where(self.where, zone=zone, args=self.args)


def delete(table: TransactionTable, match: Match, *, here: bool = True) -> Staged:
    """Delete the rows that match. Without ``here`` Spark finds them, however simple that is."""
    with table.all_or_nothing(), explained(table=table.candidate.qualified_name):
        removed = _removed(table, match, here=here)
        table.take(removed, ())
    if not removed.rows:
        return Staged(unchanged=True)
    return Staged(rows_deleted=removed.rows)


def update(
    table: TransactionTable,
    match: Match,
    values: Mapping[str, object] | None,
    *,
    here: bool = True,
) -> Staged:
    """Give the rows that match new values, all of which see the rows as they were.

    ``values`` are by column, or ``struct.field``: SQL text, a Column, or a plain value that is not
    text. Without them ``match.selected`` alone knows them. Without ``here`` Spark computes them.
    """
    with explained(table=table.candidate.qualified_name):
        source = table.scan_all(_file_filter(table, match))
        if here and values is not None:
            brought = dml_here.renewed(table, source, values, match.where)
            if brought is not None:
                return update_brought(table, source, brought)
        if match.selected is not None:
            rows = match.selected(source)
        else:
            assert values is not None, "a condition alone computes no values"
            new = assigned(_matching(table, source, match), values, table)
            rows = typed(new, table.schema)
        return update_rows(table, rows, source=source, once=match.once)


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
            removed = _removed(table, Match(where))
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


def _removed(table: TransactionTable, match: Match, *, here: bool = True) -> Removed:
    if match.is_all:
        return delete_all(table)
    source = table.scan_all(_file_filter(table, match))
    proven = _proven(table, source.files, match)
    gone = {file.path for file in proven}
    rest = replace(source.files, files=tuple(f for f in source.files.files if f.path not in gone))
    some = replace(source, files=rest)
    removed = end_whole(table, source, proven)
    if not rest.files and rest.inlined is None:
        _refuse_wrong(table, some, match)
        return removed
    which = dml_here.find(table, some, match.where) if here else None
    if which is None:
        limits = table.context.limits
        which = find(_matching(table, some, match), some, limits, once=match.once)
    try:
        return both(removed, take_away(table, some, which)) if which.total else removed
    finally:
        which.release()


def _refuse_wrong(table: TransactionTable, source: scan.Scan, match: Match) -> None:
    """Raise what is wrong with a condition for which no row is read."""
    if not dml_here.is_understood(table.schema, match.where):
        _ = _matching(table, source, match).schema


def _proven(table: TransactionTable, files: FileSet, match: Match) -> list[DataFile]:
    """Files all of whose rows satisfy the condition, as far as the catalog tells."""
    if not isinstance(match.where, str):
        return []
    contrary = _contrary(table, match.where, match.args)
    if contrary is None:
        return []
    others = {file.id for file in table.files(contrary).files}
    return [file for file in files.files if file.id is not None and file.id not in others]


def _contrary(table: TransactionTable, where: str, args: Mapping[str, Any]) -> Predicate | None:
    """What every row satisfies for which ``where`` is false or NULL; None where that is not sure.

    What `of_where` understands is NULL only where a column is.
    """
    try:
        tree = sqlglot.parse_one(where, read="spark", into=exp.Condition)
    except SqlglotError:
        return None
    columns = {column.sql("spark") for column in tree.find_all(exp.Column)}
    parts = [f"NOT ({where})", *(f"{column} IS NULL" for column in sorted(columns))]
    found = of_where(" OR ".join(parts), zone=_zone(table), args=args)
    return None if found.condition is None or found.unused else found


def _file_filter(table: TransactionTable, match: Match) -> Predicate | None:
    return match.file_filter(_zone(table)) if isinstance(match.where, str) else match.keep


def _zone(table: TransactionTable) -> str:
    return session_zone(table.context.spark())


def _matching(table: TransactionTable, source: scan.Scan, match: Match) -> DataFrame:
    if match.selected is not None:
        return match.selected(source)
    where = match.where
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
