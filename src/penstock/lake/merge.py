"""Merge on read: rows are updated or inserted by key, and no file of the target is rewritten.

One pass over the target finds the rows that the source matches; what differs is deleted by
position and written anew with its row id, what is not matched is inserted. Rows that match and are
equal are left alone, so that merging the same rows again changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING

from penstock.lake import scan
from penstock.lake.align import align
from penstock.lake.candidate import Staged, live_rows
from penstock.lake.deletes import Removed, remove
from penstock.lake.failures import explained
from penstock.lake.files import DataFile
from penstock.lake.merge_source import Source, check_keys, merge_source
from penstock.lake.scan import (
    EMBEDDED_ROW_ID,
    FILE,
    MAPPED_ROW_ID,
    POSITION,
    ROW_ID,
    ROW_ID_FIELD,
)
from penstock.lake.schema import Column, TableSchema
from penstock.lake.spark_types import quoted
from penstock.lake.types import FIELD_ID, needs_mapping
from penstock.lake.write import Target, Written, write

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame, SparkSession

    from penstock.lake.staging import TransactionTable

_CHANGED = "_penstock_changed"
_OLD = "_penstock_old_"
# Broadcast sides are collected on the driver: beyond this Spark chooses the join itself.
_BROADCAST_BYTES = 256 << 20

SliceOf = tuple[str, object]


@dataclass(frozen=True, slots=True)
class _Matches:
    """Matched rows, persisted: place, row id, whether they change, and the new values.

    ``hits`` and ``changes`` count them, and those that change, by FILE.
    """

    rows: DataFrame
    hits: dict[str, int]
    changes: dict[str, int]

    @property
    def total(self) -> int:
        return sum(self.hits.values())


@dataclass(frozen=True, slots=True)
class _Merge:
    """What the steps of one merge share."""

    spark: SparkSession
    name: str
    schema: TableSchema
    target: Target
    source: Source
    scanned: scan.Scan
    condition: SparkColumn | None  # of the slice, where files hold other rows too


def merge(
    table: TransactionTable, df: DataFrame, keys: Sequence[str], slice_of: SliceOf | None
) -> Staged:
    """Stage the merge of ``df`` into ``table`` by ``keys``, within a slice if one is given.

    Columns that ``df`` lacks keep their values in updated rows and are NULL (or their default) in
    inserted ones. Several target rows of one key become one row. Raises MergeKeyError for NULL or
    duplicate keys in ``df``, with samples; SchemaMismatch for columns the table does not have.
    """
    if slice_of is not None:
        df = table.in_slice(df, *slice_of)
    table.ensure(df, () if slice_of is None else slice_of[:1])
    name, target = table.candidate.qualified_name, table.target(slice_of)
    source = merge_source(df, table.schema, keys, table=name)
    try:
        with explained(table=name):
            source = check_keys(source, table=name)
            if source.rows == 0:
                return Staged(unchanged=table.candidate.create is None)
            whole, maybe = _files(table, slice_of)
            job = _Merge(
                spark=table.context.spark(),
                name=name,
                schema=table.schema,
                target=target,
                source=source,
                scanned=table.scan_of([*whole, *maybe]),
                condition=table.is_in_slice(*slice_of) if slice_of and maybe else None,
            )
            staged = _stage(table, job)
    finally:
        source.frame.unpersist()
    if slice_of is not None and maybe:
        return replace(staged, slice_rows=table.slice_df(*slice_of).count())
    return replace(staged, slice_rows=live_rows(whole) + staged.slice_rows)


def _files(
    table: TransactionTable, slice_of: SliceOf | None
) -> tuple[list[DataFile], list[DataFile]]:
    """Files whose rows all count, and files that hold rows of other slices too."""
    if slice_of is None:
        return list(table.files().files), []
    return table.split(*slice_of)


def _stage(table: TransactionTable, job: _Merge) -> Staged:
    """Write and stage; ``slice_rows`` of the result is how many rows there are more than before."""
    if not job.scanned.files.files:
        written = write(job.source.frame, _columns(job, job.source.frame), job.target)
        table.update(table.candidate.with_files(written.files), written.directory)
        return Staged(
            rows_written=written.rows, rows_inserted=written.rows, slice_rows=written.rows
        )
    matches = _match(job)
    directories: list[str | None] = []
    try:
        inserts, updates, removed = _write_all(job, matches, directories)
        if matches.total + inserts.rows > job.source.rows:
            matches = _collapse(job, matches)
            updates, removed = _write_again(job, matches, directories)
    finally:
        matches.rows.unpersist()
        table.update(table.candidate, *directories)
    if not (inserts.rows or removed.rows):
        return Staged(unchanged=True)
    after = table.candidate.without(removed.files, removed.deletes)
    after = after.with_files([*updates.files, *inserts.files])
    table.update(replace(after, depends_on_rows=True))
    return Staged(
        rows_written=inserts.rows + updates.rows,
        rows_inserted=inserts.rows,
        rows_updated=updates.rows,
        rows_deleted=removed.rows - updates.rows,
        slice_rows=inserts.rows + updates.rows - removed.rows,
    )


def _match(job: _Merge) -> _Matches:
    """Find the target's rows that the source matches: the one pass over the target."""
    from pyspark.sql import functions as fn

    source = job.source
    rows = scan.read(job.spark, job.scanned, positions=True)
    if job.condition is not None:
        rows = rows.where(job.condition)
    for column, low, high in source.bounds:
        rows = rows.where(fn.col(quoted(column)).between(fn.lit(low), fn.lit(high)))
    old = {column.name: f"{_OLD}{at}" for at, column in enumerate(job.schema.columns)}
    rows = rows.withColumnsRenamed(old)
    new = source.frame
    if source.size <= _BROADCAST_BYTES:
        new = fn.broadcast(new)
    same_keys = [fn.col(old[key]) == fn.col(quoted(key)) for key in source.keys]
    joined = rows.join(new, reduce(lambda a, b: a & b, same_keys), "inner")
    pairs = [(column, old[column.name]) for column in source.others]
    changed = reduce(lambda a, b: a | b, (_differs(*pair) for pair in pairs), fn.lit(False))
    given = set(source.schema.names)
    kept = [fn.col(old[c.name]).alias(c.name) for c in job.schema.columns if c.name not in given]
    values = [fn.col(quoted(name)) for name in source.schema.names]
    place = [fn.col(name) for name in (FILE, POSITION, EMBEDDED_ROW_ID)]
    picked = joined.select(*place, changed.alias(_CHANGED), *values, *kept)
    found = scan.with_row_ids(job.spark, job.scanned, picked).drop(EMBEDDED_ROW_ID)
    return _counted(found)


def _counted(found: DataFrame) -> _Matches:
    from pyspark.sql import functions as fn

    found = found.persist()
    changes = fn.count_if(fn.col(_CHANGED)).alias("changes")
    counts = found.groupBy(FILE).agg(fn.count(fn.lit(1)).alias("hits"), changes).collect()
    hits = {row[FILE]: row["hits"] for row in counts}
    return _Matches(found, hits, {row[FILE]: row["changes"] for row in counts if row["changes"]})


def _differs(column: Column, old: str) -> SparkColumn:
    """Whether a value changes. NULL and NaN equal themselves; maps compare as text."""
    from pyspark.sql import functions as fn

    before, after = fn.col(old), fn.col(quoted(column.name))
    if any(part.type == "map" for part in column.walk()):
        options = {"ignoreNullFields": "false"}
        before, after = fn.to_json(before, options), fn.to_json(after, options)
    return ~before.eqNullSafe(after)


def _write_all(
    job: _Merge, matches: _Matches, directories: list[str | None]
) -> tuple[Written, Written, Removed]:
    """The three writes side by side: each alone would leave cores idle at its start and end."""
    with ThreadPoolExecutor(3, "penstock-merge") as pool:
        inserts = pool.submit(_insert, job, matches)
        updates = pool.submit(_update, job, matches)
        removed = pool.submit(_remove, job, matches)
        for future in (inserts, updates, removed):
            if future.exception() is None:
                directories.append(future.result().directory)
        return inserts.result(), updates.result(), removed.result()


def _write_again(
    job: _Merge, matches: _Matches, directories: list[str | None]
) -> tuple[Written, Removed]:
    updates = _update(job, matches)
    directories.append(updates.directory)
    removed = _remove(job, matches)
    directories.append(removed.directory)
    return updates, removed


def _insert(job: _Merge, matches: _Matches) -> Written:
    """Source rows that match nothing."""
    from pyspark.sql import functions as fn

    rows = job.source.frame
    if matches.total:
        known = matches.rows.select(*(quoted(key) for key in job.source.keys))
        if matches.total * job.source.key_width <= _BROADCAST_BYTES:
            known = fn.broadcast(known)
        rows = rows.join(known, list(job.source.keys), "left_anti")
    return write(rows, _columns(job, rows), job.target)


def _update(job: _Merge, matches: _Matches) -> Written:
    """New values of the rows that change, under the ids they have."""
    from pyspark.sql import functions as fn

    if not matches.changes:
        return Written()
    rows = matches.rows.where(fn.col(_CHANGED) & fn.col(ROW_ID).isNotNull())
    name = MAPPED_ROW_ID if needs_mapping(job.schema) else EMBEDDED_ROW_ID
    row_id = fn.col(ROW_ID).alias(name, metadata={FIELD_ID: ROW_ID_FIELD})
    values = rows.drop(FILE, POSITION, _CHANGED, ROW_ID)
    written = write(rows, [*_columns(job, values), row_id], job.target)
    return replace(written, files=tuple(replace(f, has_row_ids=True) for f in written.files))


def _remove(job: _Merge, matches: _Matches) -> Removed:
    if not matches.changes:
        return Removed()
    found = matches.rows.where(_CHANGED).select(FILE, POSITION)
    return remove(job.spark, job.scanned, found, matches.changes, job.target.path)


def _columns(job: _Merge, rows: DataFrame) -> list[SparkColumn]:
    return align(rows, job.schema, table=job.name)


def _collapse(job: _Merge, matches: _Matches) -> _Matches:
    """Where several target rows have one key, all go, and the first of them is written anew.

    Of a key's rows, all but the first are marked with no row id, which `_update` leaves out.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as fn

    keys = [quoted(key) for key in job.source.keys]
    alike = Window.partitionBy(*keys)
    several = fn.count(fn.lit(1)).over(alike) > 1
    first = fn.row_number().over(alike.orderBy(ROW_ID, FILE, POSITION)) == 1
    rows = matches.rows.withColumns(
        {
            _CHANGED: fn.col(_CHANGED) | several,
            ROW_ID: fn.when(first, fn.col(ROW_ID)),
        }
    )
    found = _counted(rows)
    matches.rows.unpersist()
    return found
