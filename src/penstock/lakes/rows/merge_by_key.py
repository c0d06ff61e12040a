"""Merge on read: rows are updated or inserted by key, and no file of the target is rewritten.

One pass over the target finds the rows that the source matches; what differs is deleted by
position and rewritten with its row id, what is not matched is inserted. Rows that match and are
equal are left alone, so that merging the same rows again changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING

from penstock.lakes.candidate.state import Removed, Staged
from penstock.lakes.format.files import DataFile, all_rows
from penstock.lakes.reading import scan
from penstock.lakes.reading.conversions.align import align, typed
from penstock.lakes.reading.parquet.footers import read_columns
from penstock.lakes.reading.scan import FILE, POSITION, ROW_ID
from penstock.lakes.rows.change import Keys, MatchedRows, RowChange, collected
from penstock.lakes.rows.deletes import remove_rows
from penstock.lakes.rows.merge_by_arrow import (
    find_on_driver,
    merge_files,
    merge_on_driver,
    merge_small,
)
from penstock.lakes.rows.merge_matches import (
    CHANGED,
    Matches,
    MergeJob,
    all_change,
    can_compare,
    collapse,
    compared,
    facts_of_merge,
    find_matches,
    way_of,
)
from penstock.lakes.rows.merge_source import (
    Source,
    check_keys,
    checked_on_driver,
    count,
    is_bare_scan,
    key_columns,
    merge_source,
)
from penstock.lakes.rows.route import Way, facts_of, has_fresh, is_large
from penstock.lakes.rows.spark_finder import row_id_column, with_row_ids
from penstock.lakes.rows.stager import Files
from penstock.lakes.rows.stager import write as write_files
from penstock.lakes.writing.spark import Target, Written, write
from penstock.spark.failures import explained
from penstock.spark.functions import fn
from penstock.sql.identifiers import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

    from penstock.lakes.candidate.staged import SliceOf, StagedTable


class SeveralRowsOfOneKey(Exception):
    """The target has several rows of one key, and they are not to become one."""


def stage(table: StagedTable, change: RowChange) -> Staged:
    """Stage a merge by `Keys`, within a slice if it has one.

    Columns that the source lacks keep their values in updated rows and are NULL (or their default)
    in inserted ones. Raises MergeKeyError for NULL or duplicate keys in the source, with samples;
    SchemaMismatch for columns that the table does not have; SeveralRowsOfOneKey for a key of
    several rows of the target that are not to become one.
    """
    match, slice_of = change.match, change.slice
    assert isinstance(match, Keys), "asked of others"
    with table.all_or_nothing():
        return _merged(table, change.rows, match, slice_of)


def _merged(table: StagedTable, df: DataFrame, match: Keys, slice_of: SliceOf | None) -> Staged:
    df, keys = typed(df, table.candidate.schema), match.names
    if slice_of is not None:
        df = table.in_slice(df, *slice_of)
    table.ensure(df, () if slice_of is None else slice_of[:1])
    name, target = table.candidate.qualified_name, table.target(slice_of)
    whole, maybe = _files(table, slice_of)
    scanned = table.scan_with([*whole, *maybe])
    mixed = bool(maybe) or scanned.files.inlined is not None
    limits = table.context.limits
    large = is_large(facts_of(scanned, table.written_schema), limits)
    if not scanned.files.files and scanned.files.inlined is None:
        staged = _into_nothing(table, df, keys, target)
        _depend(table, staged, slice_of, mixed=bool(maybe))
        return staged
    with explained(table=name):
        bare = large and is_bare_scan(table.context.spark(), df)
    source = merge_source(df, table.written_schema, keys, table=name, keep=not bare)
    source = replace(source, limits=limits)
    try:
        with explained(table=name):
            job = MergeJob(
                spark=table.context.spark(),
                name=name,
                schema=table.written_schema,
                target=target,
                source=source,
                scanned=scanned,
                condition=table.is_in_slice(*slice_of) if slice_of and mixed else None,
                one_row=match.one_row,
            )
            files = df if bare else None
            staged = _into_many(table, job, files) if large else _into_few(table, job)
    finally:
        if not bare:
            source.frame.unpersist()
    _depend(table, staged, slice_of, mixed=bool(maybe))
    if slice_of is not None and mixed:
        return replace(staged, slice_rows=table.slice_df(*slice_of).count())
    more = staged.rows_inserted - staged.rows_deleted
    return replace(staged, slice_rows=all_rows(scanned.files) + more)


def _depend(table: StagedTable, staged: Staged, slice_of: SliceOf | None, *, mixed: bool) -> None:
    """Rows that others write meanwhile may have keys of the source."""
    if not staged.unchanged:
        table.depend(slice_of, mixed=mixed)


def _into_few(table: StagedTable, job: MergeJob) -> Staged:
    """Spark runs the source's own query alone, where both sides are small."""
    staged = merge_small(table, job)
    if staged is not None:
        return staged
    return _counted(table, job, check_keys(job.source, table=job.name))


def _into_many(table: StagedTable, job: MergeJob, files: DataFrame | None) -> Staged:
    """Spark runs the source's own query at most, where it is small. ``files`` is the source where
    it is a bare scan. What is left to Spark is compared there, unless a sample decides.
    """
    staged = None if files is None else merge_files(table, job, files)
    if staged is not None:
        return staged
    if not job.is_sampled and way_of(job) is not Way.DRIVER:
        return _counted(table, job, check_keys(job.source, table=job.name))
    measure = files is None or not facts_of_merge(job).fixed_keys
    source = count(job.source, table=job.name, measure=measure)
    if files is None:
        staged = merge_on_driver(table, replace(job, source=source))
    if staged is not None:
        return staged
    return _counted(table, job, source if job.is_sampled else check_keys(source, table=job.name))


def _counted(table: StagedTable, job: MergeJob, source: Source) -> Staged:
    if source.rows == 0:
        return Files().stage(table)
    return _stage(table, replace(job, source=source))


def _files(table: StagedTable, slice_of: SliceOf | None) -> tuple[list[DataFile], list[DataFile]]:
    """Files whose rows all count, and files that hold rows of other slices too."""
    if slice_of is None:
        return list(table.files().files), []
    return table.split(*slice_of)


def _into_nothing(table: StagedTable, df: DataFrame, keys: Sequence[str], target: Target) -> Staged:
    """Merge where no row can match: the query runs once, and its keys are checked as written."""
    name = table.candidate.qualified_name
    part, names = key_columns(df, table.written_schema, keys, table=name)
    written = write(df, align(df, table.written_schema, table=name), target)
    if not written.rows:
        return Files().stage(table)
    try:
        _check_written(table, written, Source(df, part, names, limits=table.context.limits))
    except BaseException:
        Files(inserted=written).discard()
        raise
    return replace(Files(inserted=written).stage(table), slice_rows=written.rows)


def _check_written(table: StagedTable, written: Written, source: Source) -> None:
    """Raises MergeKeyError unless the staged rows have unique keys."""
    name = table.candidate.qualified_name
    if written.rows <= source.limits.small_source_rows:
        rows = read_columns([file.path for file in written.files], source.keys)
        if checked_on_driver(source, rows) is not None:
            return
    with explained(table=name):
        frame = scan.read(table.context.spark(), table.scan_with(written.files))
        check_keys(replace(source, frame=frame), table=name)


def _stage(table: StagedTable, job: MergeJob) -> Staged:
    """Write and stage what Spark finds, or what Arrow found for it."""
    # `_by_spark` raises MergeKeyError where the source's keys were not checked before.
    by_arrow = find_on_driver(job) if job.is_sampled else None
    matches = _by_spark(job) if by_arrow is None else by_arrow
    files = Files()
    try:
        files, as_assumed = _write_all(table, job, matches)
        if not as_assumed:
            files.discard()
            matches = _compared(job, matches)
            files, _ = _write_all(table, job, matches)
        if matches.total + files.inserted.rows > job.source.rows:
            if not job.one_row:
                raise SeveralRowsOfOneKey
            replace(files, inserted=Written()).discard()
            files = Files(inserted=files.inserted)
            matches = collapse(job, _by_spark(job) if matches.places is not None else matches)
            rewritten = _written(table, job, matches, insert=Written)
            files = replace(rewritten, inserted=files.inserted)
    except BaseException:
        files.discard()
        raise
    finally:
        matches.release()
    return files.stage(table)


def _by_spark(job: MergeJob) -> Matches:
    matches = find_matches(job)
    if job.is_sampled and matches.pairs != job.source.rows:
        try:
            check_keys(job.source, table=job.name)
        except BaseException:
            matches.release()
            raise
    return matches


def _compared(job: MergeJob, matches: Matches) -> Matches:
    matches.release()
    return compared(job)


def _write_all(table: StagedTable, job: MergeJob, matches: Matches) -> tuple[Files, bool]:
    """Return what the merge writes, and whether that stands.

    Where all matches are assumed to change, a look at whether they do runs beside the writes.
    """
    with ThreadPoolExecutor(1, "penstock-merge") as pool:
        unsure = matches.assumed and can_compare(job)
        guess = pool.submit(all_change, job, matches) if unsure else None
        files = _written(table, job, matches, insert=lambda: _insert(job, matches))
    try:
        return files, guess is None or guess.result()
    except BaseException:
        files.discard()
        raise


def _written(
    table: StagedTable, job: MergeJob, matches: Matches, *, insert: Callable[[], Written]
) -> Files:
    return write_files(lambda: _remove(table, job, matches), lambda: _update(job, matches), insert)


def _insert(job: MergeJob, matches: Matches) -> Written:
    """Source rows that match nothing."""
    if matches.keys == job.source.rows:
        return Written()
    rows = job.source.frame
    if matches.total:
        keys = list(job.source.keys)
        known = _small(job, matches, matches.rows.select(*(quoted(key) for key in keys)))
        rows = rows.join(known, keys, "left_anti")
    return write(rows, _columns(job, rows), job.target)


def _update(job: MergeJob, matches: Matches) -> list[Written]:
    """New values of the rows that change, under the ids they have."""
    if not matches.changes:
        return []
    changed = matches.rows.where(fn.col(CHANGED) & fn.col(ROW_ID).isNotNull())
    changed = _small(job, matches, changed.drop(FILE, POSITION, CHANGED))
    rows = job.source.frame.join(changed, list(job.source.keys))
    if not has_fresh(job.scanned):
        return [_with_ids(job, rows)]
    old, new = fn.col(ROW_ID) >= 0, rows.where(fn.col(ROW_ID) < 0).drop(ROW_ID)
    return [_with_ids(job, rows.where(old)), write(new, _columns(job, new), job.target)]


def _with_ids(job: MergeJob, rows: DataFrame) -> Written:
    row_id = row_id_column(ROW_ID, job.schema)
    return with_row_ids(write(rows, [*_columns(job, rows.drop(ROW_ID)), row_id], job.target))


def _small(job: MergeJob, matches: Matches, rows: DataFrame) -> DataFrame:
    width = job.source.key_width + 24
    return fn.broadcast(rows) if job.limits.broadcasts(matches.total, width) else rows


def _remove(table: StagedTable, job: MergeJob, matches: Matches) -> Removed:
    if not matches.changes:
        return Removed()
    rows = matches.rows.where(CHANGED)
    counts = {file: n for file, n in matches.changes.items() if file is not None}
    if matches.places is not None:
        return remove_rows(table, job.scanned, MatchedRows(matches.places, counts))
    inlined: tuple[int, ...] = ()
    if None in matches.changes:
        ids = rows.where(fn.col(FILE).isNull()).select(POSITION).toArrow()
        inlined = tuple(ids[POSITION].to_pylist())
    places = rows.where(fn.col(FILE).isNotNull()).select(FILE, POSITION)
    is_small = matches.touched <= job.limits.written_places
    found = MatchedRows(collected(places) if is_small else places, counts, inlined)
    return remove_rows(table, job.scanned, found)


def _columns(job: MergeJob, rows: DataFrame) -> list[SparkColumn]:
    return align(rows, job.schema, table=job.name)
