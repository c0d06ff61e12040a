"""A merge into a large table by the driver, which collects the source and writes the result.

Spark would scan the source twice more, once for the rows that are updated and once for those that
are new, and shuffle what matches. A source of some megabytes is collected in half a second, and
then both are selections of it. Of the target the keys are read; all columns only of a sample of
what matches, or of all of it where some of the sample is as it was.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from penstock.lake.candidate.state import Removed, Staged
from penstock.lake.format.inlined.values import arrow_schema
from penstock.lake.format.values.sequence import sequence
from penstock.lake.reading.arrow_files import read_batches
from penstock.lake.reading.conversions.spark_types import quoted
from penstock.lake.rows.key_matches import MatchedFile, matched_files
from penstock.lake.rows.matches import way_of
from penstock.lake.rows.places import RowPlaces
from penstock.lake.rows.remove import take_away
from penstock.lake.rows.route import Way
from penstock.lake.rows.small import to_arrow
from penstock.lake.rows.small_merge import Sides, changed
from penstock.lake.rows.source_files import local_files, read_source
from penstock.lake.rows.stager import write
from penstock.lake.writing import arrow as arrow_files
from penstock.lake.writing.spark import Written

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from penstock.lake.candidate.staged import StagedTable
    from penstock.lake.rows.matches import MergeJob
    from penstock.lake.rows.merge_source import Source


@dataclass(frozen=True, slots=True)
class _Source:
    """The source's rows, and which of them no row of the target matches."""

    rows: pa.Table
    new: pa.BooleanArray


@dataclass(frozen=True, slots=True)
class _Changes:
    """The source's ``rows``: at ``updates`` those that change, with their ids; ``new`` ones."""

    rows: pa.Table
    updates: pa.ChunkedArray
    ids: pa.ChunkedArray
    new: pa.BooleanArray
    found: RowPlaces


def merge_files(table: StagedTable, job: MergeJob, df: DataFrame, plan: str) -> Staged | None:
    """Stage the merge of a source that is Parquet files as they stand, where these are small.

    ``df`` is the source as it was given, with its physical plan.
    """
    files = local_files(df, job.limits.source_file_bytes, job.limits.source_rows)
    if files is None:
        return None
    return merge_on_driver(table, job, lambda: read_source(df, plan, job.schema, files))


def merge_on_driver(
    table: StagedTable, job: MergeJob, read: Callable[[], pa.Table | None] = lambda: None
) -> Staged | None:
    """Stage the merge; ``None`` where it is left to Spark, as are keys that are not unique.

    The source is known to be small: by its files, or because it was counted. ``read`` may know how
    to read it quicker than Spark gives it.
    """
    import pyarrow as pa

    schema = arrow_schema(job.schema)
    if way_of(job) is not Way.DRIVER:
        return None
    try:
        rows = read()
        if rows is None:
            rows = to_arrow(job.source.frame.select(*map(quoted, job.schema.names)))
        if rows is None or not _fits(rows.num_rows, rows.nbytes, job):
            return None
        rows = rows.cast(schema)
        matched = matched_files(job, rows.select(list(job.source.keys)))
        new = None if matched is None else _new(rows, matched)
        if matched is None or new is None:
            return None
        changing = _changing(job, rows, matched)
    except (pa.ArrowException, OSError):
        return None
    if changing is None or any(one.ids.null_count for one in changing):
        return None
    return _staged(table, job, _changes(job, _Source(rows, new), changing))


def _new(rows: pa.Table, matched: Sequence[MatchedFile]) -> pa.BooleanArray | None:
    """Which rows match none; ``None`` where one matches several rows of the target."""
    import pyarrow as pa
    import pyarrow.compute as pc

    known = pa.chunked_array([one.source for one in matched], pa.int64())
    new = pc.invert(pc.is_in(sequence(rows.num_rows), value_set=known))
    return new if new.false_count == len(known) else None


def is_small(source: Source) -> bool:
    """Of a source that was counted."""
    limits = source.limits
    return source.rows <= limits.source_rows and 0 <= source.bytes <= limits.source_bytes


def _fits(rows: int, size: int, job: MergeJob) -> bool:
    return rows <= job.limits.source_rows and size <= job.limits.source_bytes


def _changing(
    job: MergeJob, rows: pa.Table, matched: Sequence[MatchedFile]
) -> list[MatchedFile] | None:
    """The matched rows that change: all where all of a sample do, else those that differ.

    An equal row among the others of a large merge is written anew, as it is.
    """
    others = [column.name for column in job.source.others]
    if not others or not matched:
        return []
    first = _some_of(matched[0], slice(0, job.limits.sample_rows))
    sample = _differing(job, rows, first, others)
    if sample is None:
        return None
    if len(sample.positions) == len(first.positions):
        return list(matched)
    with ThreadPoolExecutor(2, "penstock-merge") as pool:
        found = list(pool.map(lambda one: _differing(job, rows, one, others), matched))
    known = [one for one in found if one is not None]
    return known if len(known) == len(found) else None


def _some_of(found: MatchedFile, which: slice | pa.BooleanArray) -> MatchedFile:
    """Some of the matched rows."""

    def pick(one: pa.Array) -> pa.Array:
        return one[which] if isinstance(which, slice) else one.filter(which)

    return replace(
        found,
        positions=pick(found.positions),
        source=pick(found.source),
        ids=pick(found.ids),
    )


def _differing(
    job: MergeJob, rows: pa.Table, found: MatchedFile, others: Sequence[str]
) -> MatchedFile | None:
    """Those of the matched rows of one file that are not as the source has them."""
    import pyarrow as pa

    schema = pa.schema([rows.schema.field(name) for name in others])
    by_name = {column.name: column.id for column in job.schema.columns}
    masks: list[pa.Array] = []
    ids = [by_name[name] for name in others]
    batches = read_batches(found.file, ids, schema, job.limits.batch_rows)
    if batches is None:
        return None
    for start, old in _at(batches, found.positions):
        new = rows.select(list(others)).take(found.source[start : start + old.num_rows])
        masks += changed(Sides(new, old, new.slice(0, 0)), others).chunks
    mask = pa.concat_arrays([pa.array([], pa.bool_()), *masks])
    return _some_of(found, mask)


def _at(
    batches: Iterator[pa.RecordBatch], positions: pa.Int64Array
) -> Iterator[tuple[int, pa.Table]]:
    """The rows at ``positions``, which are in order, and the number of the first of them."""
    import pyarrow as pa
    import pyarrow.compute as pc

    first, start = 0, 0
    for batch in batches:
        if start == len(positions):
            return
        after = first + batch.num_rows
        end = bisect_left(positions, after, lo=start, key=lambda number: number.as_py())
        if end > start:
            mine = pc.subtract(positions[start:end], first)
            yield start, pa.Table.from_batches([batch]).take(mine)
        first, start = after, end


def _changes(job: MergeJob, source: _Source, changing: Sequence[MatchedFile]) -> _Changes:
    import pyarrow as pa

    keys = job.scanned.keys()
    places = {keys.key(one.file.path): one.positions for one in changing if len(one.positions)}
    counts = {key: len(one) for key, one in places.items()}
    return _Changes(
        rows=source.rows,
        updates=pa.chunked_array([one.source for one in changing], pa.int64()),
        ids=pa.chunked_array([one.ids for one in changing], pa.int64()),
        new=source.new,
        found=RowPlaces(places, counts, asked=sum(counts.values())),
    )


def _staged(table: StagedTable, job: MergeJob, changes: _Changes) -> Staged:
    def update() -> list[Written]:
        values = changes.rows.take(changes.updates)
        if not values.num_rows:
            return []
        embed = {arrow_files.ROW_ID: changes.ids}
        return [arrow_files.write_history(values, job.target, embed)[0]]

    def insert() -> Written:
        values = changes.rows.filter(changes.new)
        return arrow_files.write(values, job.target) if values.num_rows else Written()

    def remove() -> Removed:
        found = changes.found
        return take_away(table, job.scanned, found) if found.total else Removed()

    files = write(remove, update, insert)
    if files.changes_nothing:
        return Staged(unchanged=True)
    files.stage(table)
    inserted = files.inserted.rows
    return Staged(
        rows_written=files.rows_updated + inserted,
        rows_inserted=inserted,
        rows_updated=files.rows_updated,
        slice_rows=inserted,
    )
