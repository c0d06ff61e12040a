"""Rows that change: found in a table's candidate state, deleted by place, updated under their ids.

`target_rows` gives the rows with what tells them apart: FILE and POSITION of those in files (the
transaction's own included), ROW_ID where the row has an id embedded; a row in the catalog has only
that. What a statement makes of these rows comes back to `delete_rows` and `update_rows`. A
statement that touches no row stages nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from penstock.errors import MergeKeyError
from penstock.lake.candidate.state import Staged
from penstock.lake.format.naming import fold
from penstock.lake.reading import scan
from penstock.lake.reading.conversions.spark_types import cacheable, quoted
from penstock.lake.reading.parquet.columns import EMBEDDED_ROW_ID
from penstock.lake.reading.scan import FILE, POSITION, ROW_ID
from penstock.lake.rows import collected
from penstock.lake.rows.places import RowPlaces, find
from penstock.lake.rows.remove import take_away, write_rows
from penstock.lake.spark.failures import explained
from penstock.lake.writing.spark import Written

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

    from penstock.lake.candidate.staged import StagedTable

__all__ = ["FILE", "POSITION", "ROW_ID", "delete_rows", "target_rows", "update_rows"]

_OLD = "_penstock_old_"
_SAMPLES = 20


def target_rows(table: StagedTable, *, row_ids: bool = False) -> DataFrame:
    """The rows of the candidate state with FILE, POSITION and ROW_ID.

    ROW_ID is the id that the row has embedded, NULL for others: who updates rows completes it. With
    ``row_ids`` the id of every row that has one is in ``rowid`` too, which costs a join.
    """
    return rows_of(table, table.scan_all(), row_ids=row_ids)


def rows_of(table: StagedTable, source: scan.Scan, *, row_ids: bool = False) -> DataFrame:
    """As `target_rows`, of one scan."""
    from pyspark.sql import functions as fn

    found = scan.read(table.context.spark(), source, positions=True, row_ids=row_ids)
    if not row_ids:
        return found.withColumnRenamed(EMBEDDED_ROW_ID, ROW_ID)
    known = fn.col(scan.ROW_ID).alias("rowid")
    embedded = fn.col(EMBEDDED_ROW_ID).alias(ROW_ID)
    return found.select(*map(quoted, table.schema.names), FILE, POSITION, known, embedded)


def delete_rows(
    table: StagedTable,
    found: DataFrame,
    *,
    source: scan.Scan | None = None,
    once: bool = False,
) -> Staged:
    """Delete the rows that ``found`` names by FILE, POSITION and ROW_ID, once or more often.

    ``source`` is the scan that they are of, where it is not all of the table; ``once`` says that
    ``found`` has none twice. One query of Spark's, unless they are very many.
    """
    with table.all_or_nothing(), explained(table=table.candidate.qualified_name):
        source = source or table.scan_all()
        which = find(found, source, table.context.limits, once=once)
        try:
            return _deleted(table, source, which)
        finally:
            which.release()


def _deleted(table: StagedTable, source: scan.Scan, which: RowPlaces) -> Staged:
    if not which.total:
        return Staged(unchanged=True)
    removed = take_away(table, source, which)
    table.take(removed, ())
    return Staged(rows_deleted=removed.rows)


def update_rows(
    table: StagedTable,
    rows: DataFrame,
    *,
    source: scan.Scan | None = None,
    once: bool = False,
) -> Staged:
    """Give rows, named by FILE, POSITION and ROW_ID, the new values that ``rows`` has beside.

    Columns that it lacks keep their values, row ids stay. ``once`` says that ``rows`` has none
    twice, so that there are no more than the table has. Raises MergeKeyError when a row would get
    several new values, with samples; SchemaMismatch for columns that the table does not have.
    """
    name = table.candidate.qualified_name
    with table.all_or_nothing(), explained(table=name):
        source = source or table.scan_all()
        rows = _whole(table, source, rows)
        new = collected.collect(table, source, rows, once=once)
        if new is not None:
            if new.found.asked != new.found.total:
                raise _ambiguous(rows, name)
            return update_new_rows(table, source, new)
        rows = cacheable(rows).persist()
        which = RowPlaces()
        try:
            which = find(rows, source, table.context.limits)
            if not which.total:
                return Staged(unchanged=True)
            if which.asked != which.total:
                raise _ambiguous(rows, name)
            removed = take_away(table, source, which)
            written = rewrite(table, source, rows, which)
        finally:
            which.release()
            rows.unpersist()
        table.take(removed, written)
    return Staged(rows_written=which.total, rows_updated=which.total)


def update_new_rows(table: StagedTable, source: scan.Scan, new: collected.NewRows) -> Staged:
    """Update to new rows on the driver, each of another row."""
    total = new.found.total
    if not total:
        return Staged(unchanged=True)
    with table.all_or_nothing():
        removed, written = collected.stage(table, source, new)
        table.take(removed, written)
    return Staged(rows_written=total, rows_updated=total)


def rewrite(
    table: StagedTable, source: scan.Scan, rows: DataFrame, which: RowPlaces
) -> list[Written]:
    """Write updated rows: under the ids they have, and those that the transaction itself made
    without.
    """
    from pyspark.sql import functions as fn

    known = rows.withColumnRenamed(ROW_ID, EMBEDDED_ROW_ID)
    known = scan.with_row_ids(table.context.spark(), source, known)
    id_ = fn.col(ROW_ID)
    keys = source.keys()
    fresh = {keys.key(f.path) for f in source.files.files if f.id is None and not f.has_row_ids}
    new = any(one < 0 for one in which.inlined) or bool(fresh.intersection(which.counts))
    if not new:
        return [write_rows(table, known, row_id=ROW_ID)]
    is_old = id_.isNotNull() & (id_ >= 0)
    old = write_rows(table, known.where(is_old), row_id=ROW_ID)
    return [old, write_rows(table, known.where(~fn.coalesce(is_old, fn.lit(False))), row_id=None)]


def _whole(table: StagedTable, source: scan.Scan, rows: DataFrame) -> DataFrame:
    """``rows`` with all columns of the table: those that it lacks as they are."""
    from pyspark.sql import functions as fn

    given = {fold(name) for name in rows.columns}
    lacking = [name for name in table.schema.names if fold(name) not in given]
    if not lacking:
        return rows
    old = rows_of(table, source).select(*map(quoted, lacking), *_place())
    new = rows.withColumns({f"{_OLD}{at}": one for at, one in enumerate(_keys())})
    joined = new.join(old, [f"{_OLD}{at}" for at in range(3)])
    return joined.select(*map(quoted, rows.columns), *map(fn.col, map(quoted, lacking)))


def _keys() -> Sequence[SparkColumn]:
    """What tells rows apart, never NULL."""
    from pyspark.sql import functions as fn

    inlined = fn.col(FILE).isNull()
    return (
        fn.coalesce(FILE, fn.lit("")),
        fn.coalesce(POSITION, fn.lit(-1)),
        fn.when(inlined, fn.col(ROW_ID)).otherwise(fn.lit(0)),
    )


def _place() -> list[SparkColumn]:
    return [one.alias(f"{_OLD}{at}") for at, one in enumerate(_keys())]


def _ambiguous(rows: DataFrame, table: str) -> MergeKeyError:
    from pyspark.sql import functions as fn

    values = [name for name in rows.columns if name not in (FILE, POSITION, ROW_ID)]
    keys = [f"{_OLD}{at}" for at in range(3)]
    several = rows.withColumns({f"{_OLD}{at}": one for at, one in enumerate(_keys())})
    groups = several.groupBy(*keys).agg(
        fn.count(fn.lit(1)).alias("rows"), fn.first(fn.struct(*map(quoted, values))).alias("value")
    )
    bad = groups.where("rows > 1")
    number = bad.count()
    found = bad.orderBy(*keys).limit(_SAMPLES).collect()
    samples = [{**row["value"].asDict(recursive=True), "rows": row["rows"]} for row in found]
    shown = "; ".join(", ".join(f"{k} = {v}" for k, v in sample.items()) for sample in samples[:3])
    return MergeKeyError(
        f"{number} rows of {table} would be changed by several rows each",
        hint=f"for example {shown}; select one row for each row of the table",
        data={"duplicate_count": number, "samples": samples},
    )
