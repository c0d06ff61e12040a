"""The matches of a merge, found on the driver: Arrow reads the keys of both sides and joins them.

Spark must hold what it finds for the writes that follow, count it by file, and bring the places
to the driver by another job. Where the sides are not too large, are on this disk, and have keys
that Arrow certainly compares as Spark does, their places are known at once, as deleting needs them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from penstock.lake.format.files import DataFile
from penstock.lake.format.values.sequence import sequence
from penstock.lake.reading import arrow_files
from penstock.lake.reading.conversions.spark_types import quoted
from penstock.lake.reading.scan import ROW_ID
from penstock.lake.rows import small
from penstock.lake.rows.matches import CHANGED, Matches, MergeJob, Sample, streams, way_of
from penstock.lake.rows.route import Way

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow import acero
    from pyspark.sql import DataFrame

_AT = "\n at"  # the row's place in all files
_EMBEDDED = "\n id"  # the id that its file has for it
_SOURCE = "\n source"  # the place of the source's row


@dataclass(frozen=True, slots=True)
class MatchedFile:
    """Matched rows of one file by position, in the file's order: with their ids, and the places of
    the source's rows that match them.
    """

    file: DataFile
    positions: pa.Int64Array
    source: pa.Int64Array
    ids: pa.Array


def find_on_driver(job: MergeJob) -> Matches | None:
    """The matches by keys alone. ``None`` where that is left to Spark, as where a key of the source
    comes twice.
    """
    if way_of(job) not in {Way.DRIVER, Way.KEYS}:
        return None
    wanted = job.source.frame.select(*map(quoted, job.source.keys)).toArrow()
    found = matched_files(job, wanted)
    return None if found is None else _matches(job, found, wanted)


def matched_files(job: MergeJob, wanted: pa.Table) -> list[MatchedFile] | None:
    """The rows of the target that have these keys, those of each file that has some.

    ``None`` where that is left to Spark, as where a key comes twice or is NULL.
    """
    import pyarrow as pa

    if not _is_unique(wanted):
        return None
    deleted = arrow_files.Deleted.of(job.scanned)
    if deleted is None:
        return None
    try:
        rows = _joined(job, wanted)
    except (pa.ArrowException, OSError):
        return None
    found = [_left(deleted, one) for one in _by_file(job.scanned.files.files, rows)]
    return [one for one in found if len(one.positions)]


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


def _joined(job: MergeJob, wanted: pa.Table) -> pa.Table:
    """Place, source's row and embedded id of the rows that match, in the order of the files.

    The target's keys go by, some at a time: a table of all of them would be memory that is touched
    for the first time, which takes longer than to join them. Raises ArrowInvalid for a file that is
    not read by Arrow.
    """
    import pyarrow as pa
    from pyarrow import acero

    key_types = [pa.field(field.name, field.type) for field in wanted.schema]
    schema = pa.schema([*key_types, (_AT, pa.int64()), (_EMBEDDED, pa.int64())])
    rows = pa.RecordBatchReader.from_batches(schema, _keys(job, wanted.schema))
    asked = wanted.append_column(_SOURCE, sequence(wanted.num_rows))
    keys = wanted.column_names
    sides = [
        _streamed(rows),
        acero.Declaration("table_source", acero.TableSourceNodeOptions(asked)),
    ]
    options = acero.HashJoinNodeOptions("inner", keys, keys, [_AT, _EMBEDDED], [_SOURCE])
    found = acero.Declaration("hashjoin", options, inputs=sides).to_table()
    return found.sort_by(_AT).combine_chunks()


def _streamed(rows: pa.RecordBatchReader) -> acero.Declaration:
    from pyarrow import acero

    stream = streams()
    if stream is None:
        return acero.Declaration("table_source", acero.TableSourceNodeOptions(rows.read_all()))
    return acero.Declaration("record_batch_reader_source", stream(rows))


def _keys(job: MergeJob, wanted: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Keys, place and embedded id of the target's rows. Raises ArrowInvalid for a file that is not
    read by Arrow."""
    import pyarrow as pa
    import pyarrow.compute as pc

    by_name = {column.name: column.id for column in job.schema.columns}
    ids = [by_name[name] for name in wanted.names]
    size = job.limits.batch_rows
    first, numbers = 0, sequence(size)
    for file in job.scanned.files.files:
        batches = arrow_files.read_batches(file, ids, wanted, size, row_ids=_EMBEDDED)
        if batches is None:
            raise pa.ArrowInvalid(file.path)
        for batch in batches:
            at = pc.add(numbers.slice(0, batch.num_rows), pa.scalar(first, pa.int64()))
            *keys, embedded = batch.columns
            names = [*wanted.names, _AT, _EMBEDDED]
            yield pa.record_batch([*keys, at, embedded], names=names)
            first += batch.num_rows


def _by_file(files: Sequence[DataFile], rows: pa.Table) -> Iterator[MatchedFile]:
    import pyarrow as pa
    import pyarrow.compute as pc

    at, source, embedded = (_one(rows[name]) for name in (_AT, _SOURCE, _EMBEDDED))
    first, start = 0, 0
    for file in files:
        after = first + file.record_count
        end = bisect_left(at, after, lo=start, key=lambda number: number.as_py())
        positions = pc.subtract(at.slice(start, end - start), first)
        own = pc.add(positions, pa.scalar(file.row_id_start, pa.int64()))
        ids = pc.coalesce(embedded.slice(start, end - start), own)
        yield MatchedFile(file, positions, source.slice(start, end - start), ids)
        first, start = after, end


def _left(deleted: arrow_files.Deleted, found: MatchedFile) -> MatchedFile:
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
    rows = wanted.take(found.source.slice(0, job.limits.sample_rows))
    ends = ((name, small.bounds(rows, name)) for name in rows.column_names)
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
