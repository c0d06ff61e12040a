"""The matches of a merge found here: Arrow reads the keys of both sides and joins them.

Spark must hold what it finds for the writes that follow, count it by file, and bring the places
here by a job of its own. Where the sides are not too large, are on this disk, and have keys that
Arrow certainly compares as Spark does, their places are here at once, as deleting them wants them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from penstock.lake import files_here
from penstock.lake.candidate.state import live_rows
from penstock.lake.conversions.spark_types import quoted
from penstock.lake.files import DataFile
from penstock.lake.merging import few as merge_few
from penstock.lake.merging.match import CHANGED, SAMPLE, Matches, MergeJob, Sample
from penstock.lake.scan import ROW_ID
from penstock.lake.values.bounds import base_type
from penstock.lake.values.sequence import sequence

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

# Keys of fixed width, equal where their bits are.
_TYPES = frozenset({"int8", "int16", "int32", "int64", "date"})
_SOURCE_ROWS = 2_000_000  # 8 bytes a key, and as many for the join's hash table and its result
_TARGET_ROWS = 50_000_000  # some 60 ns of one core each
_AT_ONCE = 12_000_000  # rows of the target in memory, 16 bytes each; each time costs a hash table
_FILES = 1_000  # each is opened
_AT = "\n at"  # the row's place in all files of a batch
_SOURCE = "\n source"  # the place of the source's row


@dataclass(frozen=True, slots=True)
class _Read:
    """One file's keys, in the order of its rows, and the ids embedded in it, if there are any."""

    file: DataFile
    keys: pa.Table
    ids: pa.ChunkedArray | None


@dataclass(frozen=True, slots=True)
class MatchedFile:
    """Matched rows of one file by position, in the file's order: with their ids, and the places of
    the source's rows that match them.
    """

    file: DataFile
    positions: pa.Int64Array
    source: pa.Int64Array
    ids: pa.Array


def find_here(job: MergeJob) -> Matches | None:
    """The matches by keys alone. ``None`` where that is left to Spark, as where a key of the source
    comes twice.
    """
    if not is_simple(job):
        return None
    wanted = job.source.frame.select(*map(quoted, job.source.keys)).toArrow()
    found = matched_files(job, wanted)
    return None if found is None else _matches(job, found, wanted)


def matched_files(job: MergeJob, wanted: pa.Table) -> list[MatchedFile] | None:
    """The rows of the target that have these keys, those of each file that has some.

    ``None`` where that is left to Spark, as where a key comes twice or is NULL.
    """
    if not _is_unique(wanted):
        return None
    deleted = files_here.Deleted.of(job.scanned)
    if deleted is None:
        return None
    found: list[MatchedFile] = []
    for files in _batches(job.scanned.files.files):
        with ThreadPoolExecutor(min(len(files), 4), "penstock-keys") as pool:
            read = list(pool.map(lambda file: _read(file, job, wanted.schema), files))
        known = [one for one in read if one is not None]
        if len(known) < len(read):
            return None
        found += (_left(deleted, one) for one in _matched(known, wanted))
    return [one for one in found if len(one.positions)]


def is_simple(job: MergeJob) -> bool:
    """Whether the files alone, by themselves, say what the target's rows are."""
    source, scanned, files = job.source, job.scanned, job.scanned.files
    kinds = {c.name: base_type(c.type) for c in source.schema.columns}
    lacking = len(source.schema.columns) < len(job.schema.columns)  # their old values are wanted
    return (
        job.condition is None
        and not lacking
        and files.inlined is None
        and source.rows <= _SOURCE_ROWS
        and live_rows(files.files) <= _TARGET_ROWS
        and len(files.files) <= _FILES
        and all(kinds[key] in _TYPES for key in source.keys)
        and all(file.id is not None for file in files.files)
        and files_here.are_plain(scanned)
    )


def _is_unique(wanted: pa.Table) -> bool:
    """Whether no key comes twice and none is NULL."""
    import pyarrow as pa
    import pyarrow.compute as pc

    names = wanted.column_names
    if any(wanted[name].null_count for name in names):
        return False
    ordered = wanted.sort_by([(name, "ascending") for name in names]).combine_chunks()
    differs = pa.repeat(pa.scalar(False), max(0, wanted.num_rows - 1))
    for name in names:
        column = ordered[name]
        differs = pc.or_(differs, pc.not_equal(column.slice(1), column.slice(0, len(differs))))
    return pc.all(differs, min_count=0).as_py() is True


def _batches(files: Sequence[DataFile]) -> Iterator[list[DataFile]]:
    """Files that are read at once; one alone may be larger."""
    batch: list[DataFile] = []
    for file in files:
        if batch and sum(one.record_count for one in (*batch, file)) > _AT_ONCE:
            yield batch
            batch = []
        batch.append(file)
    if batch:
        yield batch


def _read(file: DataFile, job: MergeJob, wanted: pa.Schema) -> _Read | None:
    """``None`` where the file has not the key columns as ``wanted`` has them."""
    by_name = {column.name: column.id for column in job.schema.columns}
    ids = [by_name[name] for name in wanted.names]
    found = files_here.read(file, ids, wanted, row_ids=True)
    return None if found is None else _Read(file, found.rows, found.ids)


def _matched(read: Sequence[_Read], wanted: pa.Table) -> Iterator[MatchedFile]:
    import pyarrow as pa
    import pyarrow.compute as pc

    all_ = pa.concat_tables([one.keys for one in read])
    rows = all_.append_column(_AT, sequence(all_.num_rows))
    asked = wanted.append_column(_SOURCE, sequence(wanted.num_rows))
    rows = rows.join(asked, wanted.column_names, join_type="inner")
    rows = rows.select([_AT, _SOURCE]).sort_by(_AT).combine_chunks()
    at, source = _one(rows[_AT]), _one(rows[_SOURCE])
    first, start = 0, 0
    for one in read:
        first_after = first + one.keys.num_rows
        end = bisect_left(at, first_after, lo=start, key=lambda number: number.as_py())
        positions = pc.subtract(at.slice(start, end - start), first)
        mine = source.slice(start, end - start)
        yield MatchedFile(one.file, positions, mine, _ids(one, positions))
        first, start = first_after, end


def _ids(read: _Read, positions: pa.Int64Array) -> pa.Array:
    """The id embedded in the file, else its first one plus the place."""
    import pyarrow as pa
    import pyarrow.compute as pc

    own = pc.add(positions, pa.scalar(read.file.row_id_start, pa.int64()))
    return own if read.ids is None else pc.coalesce(_one(read.ids.take(positions)), own)


def _left(deleted: files_here.Deleted, found: MatchedFile) -> MatchedFile:
    left = deleted.left(found.file, found.positions)
    if left is None:
        return found
    return replace(
        found,
        positions=found.positions.filter(left),
        source=found.source.filter(left),
        ids=found.ids.filter(left),
    )


def _matches(job: MergeJob, found: Sequence[MatchedFile], wanted: pa.Table) -> Matches | None:
    import pyarrow as pa
    from pyspark.sql import functions as fn

    rows = wanted.take(pa.chunked_array([one.source for one in found], pa.int64()))
    rows = rows.append_column(ROW_ID, pa.chunked_array([one.ids for one in found], pa.int64()))
    if rows[ROW_ID].null_count:
        return None
    keys = job.scanned.keys()
    places = {keys.key(one.file.path): one.positions for one in found}
    hits: dict[str | None, int] = {key: len(one) for key, one in places.items()}
    changes = bool(job.source.others)
    frame = job.spark.createDataFrame(rows).withColumn(CHANGED, fn.lit(changes))
    return Matches(
        frame,
        hits=hits,
        changes=hits if changes else {},
        assumed=changes and bool(hits),
        pairs=job.source.rows,
        places=places,
        sample=_sample(job, found[0], wanted) if found else None,
    )


def _sample(job: MergeJob, found: MatchedFile, wanted: pa.Table) -> Sample:
    """Some matched rows of one file: only that is scanned for them, between their keys."""
    rows = wanted.take(found.source.slice(0, SAMPLE))
    ends = ((name, merge_few.bounds(rows, name)) for name in rows.column_names)
    bounds = tuple((name, *both) for name, both in ends if both is not None)
    files = replace(job.scanned.files, files=(found.file,))
    near = replace(
        job,
        scanned=replace(job.scanned, files=files),
        source=replace(job.source, bounds=bounds),
    )
    sample: DataFrame = job.spark.createDataFrame(rows)
    return Sample(near, sample)


def _one(column: pa.ChunkedArray) -> pa.Array:
    import pyarrow as pa

    found = column.combine_chunks()
    return found.chunk(0) if isinstance(found, pa.ChunkedArray) else found
