"""Stage a change of rows: a merge by its own module, and DELETE, UPDATE and overwriting by a
condition over the table's own columns.

Files that the catalog knows to hold no row for the condition are not read, and files of which it
knows that all rows satisfy it (by statistics or partition values) end whole without being read.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from penstock.errors import MergeKeyError
from penstock.lakes.candidate.state import Removed, Staged
from penstock.lakes.format.files import DataFile, FileSet
from penstock.lakes.reading.conversions.align import align, typed
from penstock.lakes.reading.conversions.spark_types import cacheable
from penstock.lakes.reading.hidden import named_in
from penstock.lakes.reading.scan import FILE, POSITION, ROW_ID, Scan
from penstock.lakes.rows import arrow_finder, merge, merge_by_key
from penstock.lakes.rows.change import Condition, Keys, MatchedRows, On, RowChange
from penstock.lakes.rows.deletes import delete_all, end_whole, remove_rows
from penstock.lakes.rows.route import Facts, Way, facts_of, route
from penstock.lakes.rows.spark_finder import assigned, find, find_updated, rewrite, rows_of
from penstock.lakes.rows.stager import Files, remove_both, write, write_found
from penstock.spark.failures import explained
from penstock.spark.functions import as_condition, expr, fn
from penstock.spark.session import session_zone
from penstock.sql.identifiers import quoted
from penstock.sql.predicate import contrary, of_where
from penstock.sql.text import SqlExpression

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

    from penstock.lakes.candidate.staged import StagedTable
    from penstock.sql.text import Predicate

_KEY = "_penstock_key_"
_SAMPLES = 20


def stage(table: StagedTable, change: RowChange) -> Staged:
    """Stage the change in ``table``. A call that fails, or changes no row, stages nothing.

    Raises what the kinds of changes do: QueryFailed, MergeKeyError, SchemaMismatch, ColumnNotFound.
    """
    if isinstance(change.match, On):
        return merge.stage(table, change)
    if isinstance(change.match, Keys):
        return merge_by_key.stage(table, change)
    with table.all_or_nothing(), explained(table=table.candidate.qualified_name):
        if change.source is not None:
            return _overwrite(table, change)
        files = removed(table, change) if change.deletes else _updated(table, change)
        staged = files.stage(table)
        if not files.removed.rows:
            # Rows that are inserted because there are none to change must stay the only ones.
            table.depend()
        return staged


def _overwrite(table: StagedTable, change: RowChange) -> Staged:
    """Replace the matching rows by the source's, which match too.

    Raises QueryFailed that shows a row which does not.
    """
    df, where = change.rows, _condition(change).for_spark
    existed = table.exists
    files = removed(table, change) if existed else Files()
    try:
        if existed and where is not None:
            df = _satisfying(table, df, where)
        df = typed(df, table.candidate.schema)
        table.ensure(df, ())
        files = replace(files, inserted=table.write_frame(df))
    except BaseException:
        files.discard()
        raise
    staged = files.stage(table)
    if existed:
        # Rows that others insert meanwhile may satisfy it too. (DuckDB 1.5.5 lets no delete
        # follow an insert.)
        table.depend()
    return staged


def removed(table: StagedTable, change: RowChange) -> Files:
    """The matching rows removed; nothing is staged yet."""
    match = _condition(change)
    if match.is_all:
        return Files(delete_all(table))
    source = table.scan_all(_file_filter(table, match))
    sure = proven(table, source.files, match)
    paths = {file.path for file in sure}
    rest = replace(source.files, files=tuple(f for f in source.files.files if f.path not in paths))
    some = replace(source, files=rest)
    whole = end_whole(table, source, sure)
    return Files(remove_both(whole, lambda: _removed_rows(table, some, change)))


def _removed_rows(table: StagedTable, source: Scan, change: RowChange) -> Removed:
    """Take away the matching rows of files that hold others too."""
    match, found = _condition(change), _by_arrow(table, source, change, _facts(table, source))
    if found is None:
        limits = table.context.limits
        found = find(_matching(table, source, match), source, limits, once=match.once)
    try:
        return remove_rows(table, source, found)
    finally:
        found.release()


def _updated(table: StagedTable, change: RowChange) -> Files:
    """Give the matching rows new values, all of which see the rows as they were."""
    match = _condition(change)
    source = table.scan_all(_file_filter(table, match))
    facts = _facts(table, source)
    found = _by_arrow(table, source, change, facts)
    if found is not None:
        return write_found(table, source, found)
    rows = _renewed(table, source, change)
    found = find_updated(table, source, rows, facts, once=match.once)
    if found is None:
        return _updated_by_spark(table, source, rows)
    if found.asked != found.total:
        raise _ambiguous(rows, table.candidate.qualified_name)
    return write_found(table, source, found)


def _updated_by_spark(table: StagedTable, source: Scan, rows: DataFrame) -> Files:
    """Give rows of ``source``, named by FILE, POSITION and ROW_ID, the values that ``rows`` has
    beside: all columns of the table. Row ids stay.

    Raises MergeKeyError when a row would get several new values, with samples.
    """
    rows, found = cacheable(rows).persist(), MatchedRows()
    try:
        found = find(rows, source, table.context.limits)
        if not found.total:
            return Files()
        if found.asked != found.total:
            raise _ambiguous(rows, table.candidate.qualified_name)
        places = found
        return write(
            lambda: remove_rows(table, source, places),
            lambda: rewrite(table, source, rows, places),
        )
    finally:
        found.release()
        rows.unpersist()


def _condition(change: RowChange) -> Condition:
    assert isinstance(change.match, Condition), "asked of others"
    return change.match


def _facts(table: StagedTable, source: Scan) -> Facts:
    return facts_of(source, table.schema, partitioned=bool(table.candidate.partition_by))


def _by_arrow(
    table: StagedTable, source: Scan, change: RowChange, facts: Facts
) -> MatchedRows | None:
    """The matching rows where no row is read for them, or Arrow finds them; ``None``: Spark does.

    Raises what is wrong with a statement for which no row is read.
    """
    computed = arrow_finder.compiled(table.schema, change)
    reads = computed is not None and computed.reads
    known = reads and arrow_finder.settings_are_known(table)
    limits = table.context.limits
    way = route(change, replace(facts, computable=known), limits)
    if way is Way.METADATA:
        if computed is None:  # Arrow does not know what is wrong
            rows = _matching(table, source, _condition(change))
            _ = (rows if change.deletes else _renewed(table, source, change)).schema
        return MatchedRows()
    if way is not Way.DRIVER or computed is None:
        return None
    return arrow_finder.find(source, computed, facts, limits)


def proven(table: StagedTable, files: FileSet, match: Condition) -> list[DataFile]:
    """Files all of whose rows satisfy the condition, as far as the catalog tells."""
    rest = match.others
    if rest is None and isinstance(match.where, SqlExpression):
        rest = contrary(match.where, zone=_zone(table), args=match.args)
    if rest is None:
        return []
    others = {file.id for file in table.files(rest).files}
    return [file for file in files.files if file.id is not None and file.id not in others]


def _file_filter(table: StagedTable, match: Condition) -> Predicate | None:
    """Return what the files fulfil that may hold such rows."""
    if match.files is not None or not isinstance(match.where, SqlExpression):
        return match.files
    return of_where(match.where, zone=_zone(table), args=match.args)


def _zone(table: StagedTable) -> str:
    return session_zone(table.context.spark())


def _matching(
    table: StagedTable, source: Scan, match: Condition, values: Iterable[object] = ()
) -> DataFrame:
    """The matching rows, with the hidden columns that the condition and new ``values`` name."""
    if match.selected is not None:
        return match.selected(source)
    where = match.for_spark
    rows = rows_of(table, source, _hidden(table, [where, *values]))
    return rows if where is None else rows.where(as_condition(where))


def _renewed(table: StagedTable, source: Scan, change: RowChange) -> DataFrame:
    """The matching rows with their new values, by Spark."""
    match, values = _condition(change), change.clauses[0].values or {}
    rows = _matching(table, source, match, values.values())
    if match.selected is not None:
        return rows
    hidden = _hidden(table, [match.for_spark, *values.values()])
    return typed(assigned(rows, change.clauses[0], table).drop(*hidden), table.schema)


def _hidden(table: StagedTable, expressions: Iterable[object]) -> frozenset[str]:
    texts = (each for each in expressions if isinstance(each, str))
    return frozenset().union(*(named_in(text, table.schema) for text in texts))


def _satisfying(table: StagedTable, df: DataFrame, where: str | SparkColumn) -> DataFrame:
    """``df`` that fails at a row which does not satisfy ``where``, when it is written."""
    name = table.candidate.qualified_name
    rows = df.select(*align(df, table.written_schema, table=name))
    condition = expr(where) if isinstance(where, str) else where
    shown = fn.to_json(fn.struct(*map(quoted, rows.columns[:8])), {"ignoreNullFields": "false"})
    said = f"a new row of {name} does not satisfy the condition of what it replaces: "
    refusal = fn.raise_error(fn.concat(fn.lit(said), shown))
    first = rows.columns[0]
    checked = fn.when(condition, fn.col(quoted(first))).otherwise(refusal)
    return rows.withColumn("_penstock_checked", checked).select(
        fn.col("_penstock_checked").alias(first), *map(quoted, rows.columns[1:])
    )


def _keys() -> Sequence[SparkColumn]:
    """Return what tells rows apart, never NULL."""
    inlined = fn.col(FILE).isNull()
    return (
        fn.coalesce(FILE, fn.lit("")),
        fn.coalesce(POSITION, fn.lit(-1)),
        fn.when(inlined, fn.col(ROW_ID)).otherwise(fn.lit(0)),
    )


def _ambiguous(rows: DataFrame, table: str) -> MergeKeyError:
    values = [name for name in rows.columns if name not in (FILE, POSITION, ROW_ID)]
    keys = {f"{_KEY}{at}": key for at, key in enumerate(_keys())}
    groups = rows.withColumns(keys).groupBy(*keys)
    counted = groups.agg(
        fn.count(fn.lit(1)).alias("rows"), fn.first(fn.struct(*map(quoted, values))).alias("value")
    )
    bad = counted.where("rows > 1")
    number = bad.count()
    sample = bad.orderBy(*keys).limit(_SAMPLES).collect()
    samples = [{**row["value"].asDict(recursive=True), "rows": row["rows"]} for row in sample]
    shown = "; ".join(", ".join(f"{k} = {v}" for k, v in sample.items()) for sample in samples[:3])
    return MergeKeyError(
        f"{number} rows of {table} would be changed by several rows each",
        hint=f"for example {shown}; select one row for each row of the table",
        data={"duplicate_count": number, "samples": samples},
    )
