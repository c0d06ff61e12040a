"""Merges by Arrow: the driver joins the keys of both sides, and where it has the source's rows it
writes the result.

Spark would scan the source twice more, once for the rows that are updated and once for those that
are new, shuffle what matches, hold it for the writes and count it by file. A source of some
megabytes is collected in half a second, and then both are selections of it. Of a large target the
keys are read, and all columns of what matches; of a very large one only of a sample of it, unless
some of that is as it was. It is left to Spark (``None``) unless the sides are not too large, are on
this disk, and have keys that Arrow certainly compares as Spark does.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.lakes.format.files import DataFile, sequence
from penstock.lakes.format.inlined.values import arrow_schema
from penstock.lakes.reading.arrow_files import Deleted, read_batches, read_small_placed
from penstock.lakes.reading.scan import FILE, POSITION, ROW_ID
from penstock.lakes.rows.change import FileRows, MatchedRows
from penstock.lakes.rows.deletes import remove_rows
from penstock.lakes.rows.merge_matches import (
    Matches,
    MergeJob,
    facts_of_merge,
    streams,
    way_of,
    with_places,
)
from penstock.lakes.rows.merge_source import (
    checked_on_driver,
    collect,
    local_files,
    read_source,
    to_arrow,
)
from penstock.lakes.rows.route import Way, fitting_rows, is_float, route
from penstock.lakes.rows.spark_finder import with_values
from penstock.lakes.rows.stager import Files, write, write_found, write_updated
from penstock.lakes.writing import arrow as arrow_files
from penstock.lakes.writing.spark import Written
from penstock.lazy import pa, pc
from penstock.sql.identifiers import quoted

if TYPE_CHECKING:
    from pyarrow import acero
    from pyspark.sql import DataFrame

    from penstock.lakes.candidate.staged import StagedTable
    from penstock.lakes.candidate.state import Staged

_AT = "\n at"  # the row's place in all files
_EMBEDDED = "\n id"  # the id that its file has for it
_SOURCE = "\n source"  # the place of the source's row
_NEW, _OLD = "\n new", "\n old"  # places of rows in either side


def merge_files(table: StagedTable, job: MergeJob, df: DataFrame) -> Staged | None:
    """Stage the merge of ``df``, a bare scan of Parquet files, where these are small: their footers
    say so, which are read where nothing else leaves the merge to Spark.
    """
    if way_of(job) is not Way.DRIVER:
        return None
    files = local_files(df, job.limits.source_file_bytes, job.limits.source_rows)
    if files is None:
        return None
    return merge_on_driver(table, job, lambda: read_source(df, job.schema, files))


def merge_on_driver(
    table: StagedTable, job: MergeJob, read: Callable[[], pa.Table | None] = lambda: None
) -> Staged | None:
    """Stage the merge; ``None`` where it is left to Spark, as are keys that are not unique.

    The source is known to be small: by its files, or because it was counted. ``read`` may know how
    to read it quicker than Spark gives it.
    """
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
    if changing is None or any(part.ids.null_count for part in changing):
        return None
    return _written(table, job, _Rows(rows, changing, new)).stage(table)


@dataclass(frozen=True, slots=True)
class _Rows:
    """The source's ``rows``: those that match rows of the target which change, and those that match
    none.
    """

    rows: pa.Table
    changing: Sequence[FileRows]
    new: pa.BooleanArray


def _written(table: StagedTable, job: MergeJob, source: _Rows) -> Files:
    found = MatchedRows.of_files(job.scanned, source.changing)
    ids = pa.chunked_array([part.ids for part in source.changing], pa.int64())
    places = pa.chunked_array([part.matched for part in source.changing], pa.int64())

    def insert() -> Written:
        rows = source.rows.filter(source.new)
        return arrow_files.write(rows, job.target) if rows.num_rows else Written()

    return write(
        lambda: remove_rows(table, job.scanned, found),
        lambda: write_updated(source.rows.take(places), ids, job.target),
        insert,
    )


def _new(rows: pa.Table, matched: Sequence[FileRows]) -> pa.BooleanArray | None:
    """Return which rows match none; ``None`` where a row matches several rows of the target."""
    known = pa.chunked_array([part.matched for part in matched], pa.int64())
    new = pc.invert(pc.is_in(sequence(rows.num_rows), value_set=known))
    return new if new.false_count == len(known) else None


def _fits(rows: int, size: int, job: MergeJob) -> bool:
    return rows <= job.limits.source_rows and size <= job.limits.source_bytes


def _changing(job: MergeJob, rows: pa.Table, matched: Sequence[FileRows]) -> list[FileRows] | None:
    """The matched rows that change: those that differ, or of a very large target all where all of
    a sample do. An equal row among the others is then rewritten, as it is.
    """
    others = [column.name for column in job.source.others]
    if not others or not matched:
        return []
    if job.is_sampled:
        first = matched[0].some(slice(0, job.limits.sample_rows))
        sample = _differing(job, rows, first, others)
        if sample is None:
            return None
        if len(sample.positions) == len(first.positions):
            return list(matched)
    with ThreadPoolExecutor(2, "penstock-merge") as pool:
        parts = list(pool.map(lambda part: _differing(job, rows, part, others), matched))
    known = [part for part in parts if part is not None]
    return known if len(known) == len(parts) else None


def _differing(
    job: MergeJob, rows: pa.Table, found: FileRows, others: Sequence[str]
) -> FileRows | None:
    """Return those of the matched rows of one file that are not as the source has them."""
    assert found.matched is not None, "rows of a merge match some of the source"
    schema = pa.schema([rows.schema.field(name) for name in others])
    by_name = {column.name: column.id for column in job.schema.columns}
    masks: list[pa.Array] = []
    ids = [by_name[name] for name in others]
    batches = read_batches(found.file, ids, schema, job.limits.batch_rows)
    if batches is None:
        return None
    for start, old in _at(batches, found.positions):
        new = rows.select(list(others)).take(found.matched[start : start + old.num_rows])
        masks += changed(new, old, others).chunks
    mask = pa.concat_arrays([pa.array([], pa.bool_()), *masks])
    return found.some(mask)


def _at(
    batches: Iterator[pa.RecordBatch], positions: pa.Int64Array
) -> Iterator[tuple[int, pa.Table]]:
    """The rows at ``positions``, which are in order, and the number of the first of them."""
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


def merge_small(table: StagedTable, job: MergeJob) -> Staged | None:
    """Stage the merge of a small source into a small table; ``None`` where it is left to Spark, as
    are keys that are not unique.

    Several queries of Spark's over some rows take longer than all else of a step: the driver reads
    both sides, and Spark runs only the query itself.
    """
    schema, names = arrow_schema(job.schema), job.schema.names
    facts = facts_of_merge(job)
    if route(job.change, facts, job.limits) is not Way.DRIVER:
        return None
    target = read_small_placed(job.scanned, names, job.limits)
    if target is None:
        return None
    # Its rows are as wide as those that are there.
    most = min(job.limits.small_source_rows, fitting_rows(facts, job.limits))
    rows = collect(job.source.frame, [quoted(name) for name in names], most)
    if rows is None or checked_on_driver(job.source, rows) is None:
        return None
    others = [column.name for column in job.source.others]
    try:
        rows = rows.cast(schema)
        pairs = matched(rows, target, job.source.keys)
        if pairs is None:
            return None
        new, old = rows.take(pairs[0]), target.take(pairs[1])
        differs = changed(new, old, others)
    except pa.ArrowException:
        return None
    known = pc.is_in(sequence(rows.num_rows), value_set=pairs[0])
    places = old.filter(differs).select([FILE, POSITION, ROW_ID])
    found = with_values(job.scanned, new.filter(differs), places)
    inserted = rows.filter(pc.invert(known))
    return write_found(table, job.scanned, found, inserted, job.target).stage(table)


def matched(
    rows: pa.Table, target: pa.Table, keys: Sequence[str]
) -> tuple[pa.ChunkedArray, pa.ChunkedArray] | None:
    """The places of rows of both sides that have the same keys, pair by pair; ``None`` where
    several rows of the target have one key.
    """

    def numbered(side: pa.Table, name: str) -> pa.Table:
        numbers = sequence(side.num_rows)
        return side.select(list(keys)).append_column(name, numbers)

    pairs = numbered(rows, _NEW).join(numbered(target, _OLD), list(keys), join_type="inner")
    new, old = pairs[_NEW], pairs[_OLD]
    if len(pc.unique(new)) != len(new):
        return None
    return new, old


def changed(new: pa.Table, old: pa.Table, names: Sequence[str]) -> pa.ChunkedArray:
    """Return whether each row of ``new`` differs from that of ``old`` in these columns: NULL and
    NaN equal themselves, and 0.0 is -0.0, as Spark's hashes have it (`merge_matches`).
    """
    differs = pa.chunked_array([pa.repeat(pa.scalar(False), new.num_rows)])
    for name in names:
        left, right = new[name], old[name]
        same = pc.fill_null(pc.equal(left, right), False)
        nan = is_float(left.type)
        nothing = (pc.is_null(side, nan_is_null=nan) for side in (left, right))
        alike = pc.equal(pc.is_null(left), pc.is_null(right))  # no NaN is NULL
        same = pc.or_(same, pc.and_(pc.and_(*nothing), alike))
        differs = pc.or_(differs, pc.invert(same))
    return differs


def find_on_driver(job: MergeJob) -> Matches | None:
    """The matches by keys alone. ``None`` where that is left to Spark, as where a key of the source
    comes twice.
    """
    if way_of(job) not in {Way.DRIVER, Way.KEYS}:
        return None
    wanted = job.source.frame.select(*map(quoted, job.source.keys)).toArrow()
    found = matched_files(job, wanted)
    return None if found is None else with_places(job, found, wanted)


def matched_files(job: MergeJob, wanted: pa.Table) -> list[FileRows] | None:
    """The rows of the target that have these keys, those of each file that has some.

    ``None`` where that is left to Spark, as where a key comes twice or is NULL.
    """
    if not _is_unique(wanted):
        return None
    try:
        rows = _joined(job, wanted)
    except (pa.ArrowException, OSError):
        return None
    deleted = Deleted.of(job.scanned)
    matched = [_left(deleted, part) for part in _by_file(job.scanned.files.files, rows)]
    return [part for part in matched if len(part.positions)]


def _is_unique(wanted: pa.Table) -> bool:
    """Return whether no key comes twice and none is NULL."""
    names = wanted.column_names
    if any(wanted[name].null_count for name in names):
        return False
    return bool(wanted.group_by(names).aggregate([]).num_rows == wanted.num_rows)


def _joined(job: MergeJob, wanted: pa.Table) -> pa.Table:
    """Place, source's row and embedded id of the rows that match, in the order of the files.

    The target's keys go by, some at a time: a table of all of them would be memory that is touched
    for the first time, which takes longer than to join them. Raises ArrowInvalid for a file that is
    not read by Arrow.
    """
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
    by_name = {column.name: column.id for column in job.schema.columns}
    ids = [by_name[name] for name in wanted.names]
    size = job.limits.batch_rows
    first, numbers = 0, sequence(size)
    for file in job.scanned.files.files:
        batches = read_batches(file, ids, wanted, size, row_ids=_EMBEDDED)
        if batches is None:
            raise pa.ArrowInvalid(file.path)
        for batch in batches:
            at = pc.add(numbers.slice(0, batch.num_rows), pa.scalar(first, pa.int64()))
            *keys, embedded = batch.columns
            names = [*wanted.names, _AT, _EMBEDDED]
            yield pa.record_batch([*keys, at, embedded], names=names)
            first += batch.num_rows


def _by_file(files: Sequence[DataFile], rows: pa.Table) -> Iterator[FileRows]:
    at, source, embedded = (_one(rows[name]) for name in (_AT, _SOURCE, _EMBEDDED))
    first, start = 0, 0
    for file in files:
        after = first + file.record_count
        end = bisect_left(at, after, lo=start, key=lambda number: number.as_py())
        positions = pc.subtract(at.slice(start, end - start), first)
        own = embedded.slice(start, end - start), source.slice(start, end - start)
        yield FileRows(file, positions, embedded=own[0], matched=own[1])
        first, start = after, end


def _left(deleted: Deleted, found: FileRows) -> FileRows:
    left = deleted.left(found.file, found.positions)
    return found if left is None else found.some(left)


def _one(column: pa.ChunkedArray) -> pa.Array:
    combined = column.combine_chunks()
    return combined.chunk(0) if isinstance(combined, pa.ChunkedArray) else combined
