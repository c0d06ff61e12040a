"""DELETE, UPDATE and replace-where of one table by a condition over its own columns.

Files that the catalog knows to hold no row for the condition are not read, and files of which it
knows that all rows satisfy it (by statistics or partition values) end whole without being read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from penstock.lake.candidate.state import Removed, Staged, live_rows
from penstock.lake.format.files import DataFile, FileSet
from penstock.lake.format.naming import fold
from penstock.lake.reading import scan
from penstock.lake.reading.arrow_files import are_plain
from penstock.lake.reading.conversions.align import align, typed
from penstock.lake.rows import driver
from penstock.lake.rows.assign import assigned
from penstock.lake.rows.change import Condition, RowChange
from penstock.lake.rows.collected import is_flat
from penstock.lake.rows.places import find
from penstock.lake.rows.remove import both, delete_all, end_whole, take_away
from penstock.lake.rows.route import Facts, Way, route
from penstock.lake.rows.updates import rows_of, update_new_rows, update_rows
from penstock.lake.spark.failures import explained
from penstock.lake.spark.session import session_zone
from penstock.sql.expression import SqlExpression
from penstock.sql.identifiers import quoted
from penstock.sql.predicate import contrary, of_where

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

    from penstock.lake.candidate.staged import StagedTable
    from penstock.sql.conditions import Predicate

ROWID = "rowid"


def stage(table: StagedTable, change: RowChange) -> Staged:
    """Stage a DELETE, an UPDATE, or what replaces the matching rows."""
    with table.all_or_nothing(), explained(table=table.candidate.qualified_name):
        if change.source is not None:
            return _overwrite(table, change)
        return _delete(table, change) if change.deletes else _update(table, change)


def _delete(table: StagedTable, change: RowChange) -> Staged:
    removed = _removed(table, change)
    table.take(removed, ())
    return Staged(rows_deleted=removed.rows, unchanged=not removed.rows)


def _update(table: StagedTable, change: RowChange) -> Staged:
    """Give the matching rows new values, all of which see the rows as they were."""
    match = _condition(change)
    source = table.scan_all(_file_filter(table, match))
    computed = driver.compiled(table.schema, change)
    way = _way(table, source, change, computed)
    if way is Way.METADATA:
        _refuse_wrong(table, source, change, computed)
        return Staged(unchanged=True)
    if way is Way.DRIVER and computed is not None:
        known = driver.updated_rows(table, source, computed)
        if known is not None:
            return update_new_rows(table, source, known)
    return update_rows(table, _updated(table, source, change), source=source, once=match.once)


def _overwrite(table: StagedTable, change: RowChange) -> Staged:
    """Replace the matching rows by the source's, which match too.

    Raises QueryFailed that shows a row which does not.
    """
    removed, df, where = Removed(), change.rows, _condition(change).for_spark
    if table.exists:
        removed = _removed(table, change)
        table.take(removed, ())
        # Rows that others insert meanwhile may satisfy it too. (DuckDB 1.5.5 lets no delete
        # follow an insert; two that replace the same nothing would leave the rows of both.)
        table.stage(replace(table.candidate, depends_on_rows=True))
        if where is not None:
            df = _satisfying(table, df, where)
    return replace(table.append_frame(df), rows_deleted=removed.rows)


def _condition(change: RowChange) -> Condition:
    assert isinstance(change.match, Condition), "asked of others"
    return change.match


def _way(
    table: StagedTable, source: scan.Scan, change: RowChange, computed: driver.Computed | None
) -> Way:
    files = source.files.files
    facts = Facts(
        files=len(files),
        rows=sum(file.record_count for file in files),
        live_rows=live_rows(files),
        inlined=source.files.inlined is not None,
        by_field_id=are_plain(source),
        flat=is_flat(table.schema),
        computable=computed is not None and driver.settings_are_known(table),
    )
    return route(change, facts, table.context.limits)


def _removed(table: StagedTable, change: RowChange) -> Removed:
    match = _condition(change)
    if match.is_all:
        return delete_all(table)
    source = table.scan_all(_file_filter(table, match))
    proven = _proven(table, source.files, match)
    gone = {file.path for file in proven}
    rest = replace(source.files, files=tuple(f for f in source.files.files if f.path not in gone))
    some = replace(source, files=rest)
    computed = driver.compiled(table.schema, change)
    way = _way(table, some, change, computed)
    removed = end_whole(table, source, proven)
    if way is Way.METADATA:
        _refuse_wrong(table, some, change, computed)
        return removed
    which = None
    if way is Way.DRIVER and computed is not None:
        which = driver.find(table, some, computed)
    if which is None:
        limits = table.context.limits
        which = find(_matching(table, some, match), some, limits, once=match.once)
    try:
        return both(removed, take_away(table, some, which)) if which.total else removed
    finally:
        which.release()


def _refuse_wrong(
    table: StagedTable, source: scan.Scan, change: RowChange, computed: driver.Computed | None
) -> None:
    """Raise what is wrong with a statement for which no row is read, where Arrow does not know."""
    if computed is None:
        match = _condition(change)
        deletes = change.deletes
        rows = _matching(table, source, match) if deletes else _updated(table, source, change)
        _ = rows.schema


def _proven(table: StagedTable, files: FileSet, match: Condition) -> list[DataFile]:
    """Files all of whose rows satisfy the condition, as far as the catalog tells."""
    if not isinstance(match.where, SqlExpression):
        return []
    rest = contrary(match.where, zone=_zone(table), args=match.args)
    if rest is None:
        return []
    others = {file.id for file in table.files(rest).files}
    return [file for file in files.files if file.id is not None and file.id not in others]


def _file_filter(table: StagedTable, match: Condition) -> Predicate | None:
    """What the files fulfil that may hold such rows."""
    if not isinstance(match.where, SqlExpression):
        return match.files
    return of_where(match.where, zone=_zone(table), args=match.args)


def _zone(table: StagedTable) -> str:
    return session_zone(table.context.spark())


def _matching(table: StagedTable, source: scan.Scan, match: Condition) -> DataFrame:
    if match.selected is not None:
        return match.selected(source)
    where = match.for_spark
    row_ids = isinstance(where, str) and _names_rowid(where, table.schema.names)
    rows = rows_of(table, source, row_ids=row_ids)
    found = rows if where is None else rows.where(where)
    return found.drop(ROWID) if row_ids else found


def _updated(table: StagedTable, source: scan.Scan, change: RowChange) -> DataFrame:
    """The matching rows with their new values, by Spark."""
    match = _condition(change)
    rows = _matching(table, source, match)
    if match.selected is not None:
        return rows
    return typed(assigned(rows, change.clauses[0].values or {}, table), table.schema)


def _names_rowid(where: str, names: Sequence[str]) -> bool:
    return ROWID in fold(where) and ROWID not in map(fold, names)


def _satisfying(table: StagedTable, df: DataFrame, where: str | SparkColumn) -> DataFrame:
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
