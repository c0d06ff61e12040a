"""Merge on read: rows are updated or inserted by key, and no file of the target is rewritten.

One pass over the target finds the rows that the source matches; what differs is deleted by
position and written anew with its row id, what is not matched is inserted. Rows that match and are
equal are left alone, so that merging the same rows again changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from penstock.lake import fingerprint, scan
from penstock.lake.align import align
from penstock.lake.candidate import Staged, live_rows
from penstock.lake.deletes import Removed, remove
from penstock.lake.failures import explained
from penstock.lake.files import DataFile
from penstock.lake.merge_source import Source, check_keys, merge_source, within_bounds
from penstock.lake.scan import (
    EMBEDDED_ROW_ID,
    FILE,
    MAPPED_ROW_ID,
    POSITION,
    ROW_ID,
    ROW_ID_FIELD,
)
from penstock.lake.schema import TableSchema
from penstock.lake.spark_types import quoted
from penstock.lake.types import FIELD_ID, needs_mapping
from penstock.lake.write import Target, Written, write

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame, SparkSession

    from penstock.lake.staging import TransactionTable

_CHANGED = "_penstock_changed"
_OLD, _NEW = "_penstock_old", "_penstock_new"
# Broadcast sides are collected on the driver: beyond this Spark chooses the join itself.
_BROADCAST_BYTES = 256 << 20
_COMPARED_AT_ONCE = 2_000_000  # rows of the target
_SAMPLE = 1_000

SliceOf = tuple[str, object]


@dataclass(frozen=True, slots=True)
class _Matches:
    """Matched rows, persisted: keys, place, row id, whether they change, values to keep.

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
    """Find the target's rows that the source matches, and which of them change.

    Reading all columns to compare costs more than all else in a large target. There the keys alone
    are read first, and a sample of the matched rows decides: if all of them change, all count as
    changed, and an equal row among the others is written anew with the values and id it has.
    """
    compare = bool(job.source.others)
    if not compare or live_rows(job.scanned.files.files) <= _COMPARED_AT_ONCE:
        return _matches(job, compare=compare)
    matches = _matches(job, compare=False, changed=True)
    if not matches.total or _all_change(job, matches):
        return matches
    matches.rows.unpersist()
    return _matches(job, compare=True)


def _matches(job: _Merge, *, compare: bool, changed: bool = False) -> _Matches:
    """The one pass over the target. Without ``compare`` all matched rows count as ``changed``."""
    from pyspark.sql import functions as fn

    old, new = _sides(job, job.source.frame, compare=compare)
    kept = [c.name for c in job.schema.columns if c.name not in job.source.schema.names]
    keys = list(job.source.keys)
    differs = _differs() if compare else fn.lit(changed)
    picked = old.join(new, keys).select(
        *(fn.col(quoted(name)) for name in (*keys, *kept)),
        *(FILE, POSITION, EMBEDDED_ROW_ID),
        differs.alias(_CHANGED),
    )
    return _counted(scan.with_row_ids(job.spark, job.scanned, picked).drop(EMBEDDED_ROW_ID))


def _sides(job: _Merge, source: DataFrame, *, compare: bool) -> tuple[DataFrame, DataFrame]:
    """Target and source, each with its keys; to compare, with hashes of the other columns."""
    from pyspark.sql import functions as fn

    old = scan.read(job.spark, job.scanned, positions=True)
    if job.condition is not None:
        old = old.where(job.condition)
    for within in within_bounds(job.source):
        old = old.where(within)
    keys = [fn.col(quoted(key)) for key in job.source.keys]
    hashes = [fingerprint.row_hash(job.source.others, seed) for seed in (1, 2)] if compare else []
    new = source.select(*keys, *(h.alias(f"{_NEW}{at}") for at, h in enumerate(hashes)))
    old = old.withColumns({f"{_OLD}{at}": h for at, h in enumerate(hashes)})
    if job.source.rows * (job.source.key_width + 16 * len(hashes)) <= _BROADCAST_BYTES:
        new = fn.broadcast(new)
    return old, new


def _differs() -> SparkColumn:
    """Whether other columns than the keys do, by two hashes: NULL and NaN equal themselves."""
    from pyspark.sql import functions as fn

    return (fn.col(f"{_OLD}0") != fn.col(f"{_NEW}0")) | (fn.col(f"{_OLD}1") != fn.col(f"{_NEW}1"))


def _all_change(job: _Merge, matches: _Matches) -> bool:
    """Whether the first matched rows all change.

    They lie close together at the start of the target, and the scan ends when it has them.
    """
    keys = [quoted(key) for key in job.source.keys]
    sample = matches.rows.select(*keys).limit(_SAMPLE)
    source = job.source.frame.join(sample, list(job.source.keys), "left_semi")
    old, new = _sides(job, source, compare=True)
    found = old.join(new, list(job.source.keys)).select(_differs().alias(_CHANGED))
    return all(row[0] for row in found.take(min(_SAMPLE, matches.total)))


def _counted(found: DataFrame) -> _Matches:
    from pyspark.sql import functions as fn

    found = found.persist()
    changes = fn.count_if(fn.col(_CHANGED)).alias("changes")
    counts = found.groupBy(FILE).agg(fn.count(fn.lit(1)).alias("hits"), changes).collect()
    hits = {row[FILE]: row["hits"] for row in counts}
    return _Matches(found, hits, {row[FILE]: row["changes"] for row in counts if row["changes"]})


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
    rows = job.source.frame
    if matches.total:
        keys = list(job.source.keys)
        known = _small(job, matches, matches.rows.select(*(quoted(key) for key in keys)))
        rows = rows.join(known, keys, "left_anti")
    return write(rows, _columns(job, rows), job.target)


def _update(job: _Merge, matches: _Matches) -> Written:
    """New values of the rows that change, under the ids they have."""
    from pyspark.sql import functions as fn

    if not matches.changes:
        return Written()
    changed = matches.rows.where(fn.col(_CHANGED) & fn.col(ROW_ID).isNotNull())
    changed = _small(job, matches, changed.drop(FILE, POSITION, _CHANGED))
    rows = job.source.frame.join(changed, list(job.source.keys))
    name = MAPPED_ROW_ID if needs_mapping(job.schema) else EMBEDDED_ROW_ID
    row_id = fn.col(ROW_ID).alias(name, metadata={FIELD_ID: ROW_ID_FIELD})
    written = write(rows, [*_columns(job, rows.drop(ROW_ID)), row_id], job.target)
    return replace(written, files=tuple(replace(f, has_row_ids=True) for f in written.files))


def _small(job: _Merge, matches: _Matches, rows: DataFrame) -> DataFrame:
    from pyspark.sql import functions as fn

    width = job.source.key_width + 24
    return fn.broadcast(rows) if matches.total * width <= _BROADCAST_BYTES else rows


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
