"""Writing several data files as one: their rows with their row ids and snapshots.

Compacted files are written by the lake's options, within limits of memory and size.

Groups of files rewritten in parallel by Spark's executors.

Each group is one task, which does what the calling process does with small groups (`writing`). It
uses Arrow, which preserves every type, row id and field id, also those that Spark cannot represent
(UUIDs, unsigned numbers, ids inside lists). So the executors' Python needs Penstock. A plain Python
UDF runs it, which is public API, also of Spark Connect, and needs no pandas. Each task returns the
description of its file.
"""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import accumulate, groupby, pairwise
from typing import TYPE_CHECKING, Any

from penstock.errors import ArgumentError, EnvironmentMissing, LakeError
from penstock.lakes.catalog.catalog import Catalog
from penstock.lakes.catalog.options import write_facts
from penstock.lakes.format.changes import NewFile
from penstock.lakes.format.files import ColumnStats, DataFile, NameMapping, Partial, Table
from penstock.lakes.format.naming import new_uuid7
from penstock.lakes.format.objects import SortKey
from penstock.lakes.format.option_values import bytes_of
from penstock.lakes.format.schema import EMBEDDED, EMBEDDED_ROW_ID, SNAPSHOT_ID, TableSchema
from penstock.lakes.format.statistics import from_footer
from penstock.lakes.maintenance import arrow_columns as arrow
from penstock.lakes.maintenance.reading import Deletes, Piece, pieces
from penstock.lakes.reading.parquet.columns import in_force
from penstock.lakes.storage import (
    Storage,
    is_remote,
    list_files,
    make_directory,
    open_system,
    remove_file,
    storage_of,
    use,
    writing_to,
)
from penstock.lakes.writing.settings import TARGET_FILE_SIZE
from penstock.lazy import pa, pc, pq

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class Job:
    """Settings for writing a group of files.

    ``schema`` has the columns to write; rows in ``deletes`` are left out. ``merges``: rows keep the
    snapshots that made them. ``memory`` is about how many bytes are held at once. ``mark`` is part
    of the new files' names.
    """

    table: Table
    schema: TableSchema
    settings: ParquetSettings
    memory: int
    merges: bool
    mappings: Mapping[int, NameMapping] = field(default_factory=dict)
    deletes: Deletes | None = None
    mark: str = ""


@dataclass(slots=True)
class _Run:
    """Files that have the same columns, and the pieces of them in memory."""

    columns: tuple[arrow.FileColumn, ...]
    schema: TableSchema
    wanted: pa.Schema
    sources: list[DataFile] = field(default_factory=list)
    held: list[tuple[Piece, tuple[arrow.FileColumn, ...]]] = field(default_factory=list)
    writer: pq.ParquetWriter | None = None
    path: str = ""
    with_row_ids: bool = True
    deleted: Mapping[int, pa.Int64Array] = field(default_factory=dict)  # positions by file id
    nans: set[int] = field(default_factory=set)
    held_rows: int = 0
    held_bytes: int = 0


def write_together(files: Sequence[DataFile], job: Job) -> list[NewFile]:
    """Write files of one partition as one file for each run of files with the same columns.

    A merge skips a file whose columns differ from those of its neighbours. The new files are
    staged; after a failure no file is left behind. Raises DataFileMissing, DataFileCorrupt,
    UnsupportedFeature.
    """
    done: list[NewFile] = []
    run: _Run | None = None
    name = job.table.qualified_name
    deleted = job.deletes.of(files) if job.deletes is not None else {}
    try:
        for piece in pieces(files, table=name, rows=job.settings.row_group, memory=job.memory // 2):
            columns = _columns(piece, run, job)
            if run is None or not _alike(run, columns):
                done += _finished(run, job) if run is not None else []
                run = _started(columns, job, deleted)
            _take(run, piece, columns, job)
        done += _finished(run, job) if run is not None else []
    except BaseException:
        if run is not None and run.path:
            with suppress(OSError):  # writes the footer, for which there may be no room either
                if run.writer is not None:
                    run.writer.close()
            remove_file(run.path)
        remove_staged(done)
        raise
    return done


def remove_staged(new: Sequence[NewFile]) -> None:
    for new_file in new:
        if new_file.file is not None:
            remove_file(new_file.file.path)


def _columns(piece: Piece, run: _Run | None, job: Job) -> tuple[arrow.FileColumn, ...]:
    last = run.held[-1] if run is not None and run.held else None
    same_mapping = last is not None and last[0].file.mapping_id == piece.file.mapping_id
    if last is not None and same_mapping and last[0].rows.schema.equals(piece.rows.schema):
        return last[1]
    fields = piece.rows.schema
    mapping = in_force(
        job.mappings.get(piece.file.mapping_id or -1),
        job.schema,
        piece.file.path,
        has_ids=any(b"PARQUET:field_id" in (field.metadata or {}) for field in fields),
        names=fields.names,
    )
    return arrow.columns_of_file(piece.rows.schema, job.schema, mapping)


def _alike(run: _Run, columns: tuple[arrow.FileColumn, ...]) -> bool:
    return columns is run.columns or arrow.schema_of(columns) == run.schema


def _started(
    columns: tuple[arrow.FileColumn, ...], job: Job, deleted: Mapping[int, pa.Int64Array]
) -> _Run:
    schema = arrow.schema_of(columns)
    fields = [arrow.arrow_field(column, job.table.qualified_name) for column in schema.columns]
    return _Run(columns, schema, pa.schema(fields), deleted=deleted)


def _take(run: _Run, piece: Piece, columns: tuple[arrow.FileColumn, ...], job: Job) -> None:
    if not run.sources or run.sources[-1] is not piece.file:
        run.sources.append(piece.file)
    run.held.append((piece, columns))
    run.held_rows += piece.rows.num_rows
    run.held_bytes += piece.rows.get_total_buffer_size()
    full = run.held_rows >= job.settings.row_group and not job.settings.sort_by
    if full or run.held_bytes >= job.memory // 4:
        _flush(run, job, last=False)


def _finished(run: _Run, job: Job) -> list[NewFile]:
    """The run's file, after its rows are written; a merge of a single file is discarded."""
    sources = tuple(file.id for file in run.sources if file.id is not None)
    if job.merges and len(sources) == 1:
        if run.writer is not None:
            run.writer.close()
            remove_file(run.path)
        return []
    _flush(run, job, last=True)
    if run.writer is None:
        return [NewFile(None, sources)]
    with writing_to(run.path):
        run.writer.close()
    return [NewFile(_described(run, job), sources)]


def _flush(run: _Run, job: Job, *, last: bool) -> None:
    """Write the pieces in memory as a row group."""
    if not run.held:
        return
    if run.writer is None:
        plain = job.merges and last and not job.settings.sort_by and _has_plain_row_ids(run)
        run.with_row_ids = not plain
    rows = _sorted(_rows(run, job).combine_chunks(), job)
    run.held.clear()
    run.held_rows = run.held_bytes = 0
    if not rows.num_rows:
        return
    if run.writer is None:
        run.path = _new_path(run.sources[0], job)
        system, name = open_system(run.path)
        with writing_to(run.path):
            run.writer = pq.ParquetWriter(
                name, rows.schema, filesystem=system, **job.settings.writer
            )
    run.nans |= arrow.nan_columns(rows)
    with writing_to(run.path):
        run.writer.write_table(rows, row_group_size=max(1, job.settings.row_group))


def _sorted(rows: pa.Table, job: Job) -> pa.Table:
    """Sort the rows in memory by the table's sort keys, NULLs last."""
    there = set(rows.column_names)
    keys = [key for key in job.settings.sort_by if key.expression in there]
    if not keys or not rows.num_rows:
        return rows
    order = [(key.expression, "descending" if key.descending else "ascending") for key in keys]
    return rows.take(pc.sort_indices(rows, sort_keys=order))


def _has_plain_row_ids(run: _Run) -> bool:
    """Return whether each row's id is that of the first plus its position. (DuckDB 1.5.5 looks only
    at the catalog, and loses the row ids of files that embed them.)
    """
    if any(EMBEDDED_ROW_ID in piece.rows.column_names for piece, _ in run.held):
        return False
    ends = ((a.row_id_start, a.record_count, b.row_id_start) for a, b in pairwise(run.sources))
    return run.sources[0].row_id_start is not None and all(
        start is not None and start + count == following for start, count, following in ends
    )


def _rows(run: _Run, job: Job) -> pa.Table:
    """The rows in memory as they are written; files of one layout are converted together."""
    parts: list[pa.Table] = []
    for _, alike in groupby(run.held, key=lambda piece: id(piece[1])):
        listed = list(alike)
        held = [piece for piece, _ in listed]
        rows = pa.concat_tables([piece.rows for piece in held])
        columns = [
            arrow.conform(rows.column(column.at), column, wanted.type)
            for column, wanted in zip(listed[0][1], run.wanted, strict=True)
        ]
        schema = run.wanted
        for name, values in _system_columns(held, rows, run, job).items():
            columns.append(values)
            field_id = {arrow.FIELD_ID: str(EMBEDDED[name]).encode()}
            schema = schema.append(pa.field(name, pa.int64(), metadata=field_id))
        parts.append(_without_deleted(pa.table(columns, schema=schema), held, run))
    return pa.concat_tables(parts)


def _system_columns(
    held: Sequence[Piece], rows: pa.Table, run: _Run, job: Job
) -> dict[str, pa.ChunkedArray]:
    columns: dict[str, pa.ChunkedArray] = {}
    if run.with_row_ids:
        columns[EMBEDDED_ROW_ID] = _row_ids(held, rows)
    if job.merges:
        columns[SNAPSHOT_ID] = _snapshots(held, rows)
    return columns


def _row_ids(held: Sequence[Piece], rows: pa.Table) -> pa.ChunkedArray:
    """The row ids in the files; a row without one has its file's first id plus its position."""
    row_ids = (
        rows[EMBEDDED_ROW_ID].cast(pa.int64()) if EMBEDDED_ROW_ID in rows.column_names else None
    )
    if row_ids is not None and not row_ids.null_count:
        return row_ids
    firsts: list[int] = []
    offset = 1  # ranks begin with 1
    for piece in held:
        firsts.append((piece.file.row_id_start or 0) + piece.start - offset)
        offset += piece.rows.num_rows
    counted = pc.cumulative_sum(pa.repeat(arrow.int64(1), rows.num_rows))
    places = pc.add(counted, _for_each_row(firsts, held))
    return pa.chunked_array([places]) if row_ids is None else pc.coalesce(row_ids, places)


def _snapshots(held: Sequence[Piece], rows: pa.Table) -> pa.ChunkedArray:
    begins = _for_each_row([piece.file.begin_snapshot for piece in held], held)
    if SNAPSHOT_ID not in rows.column_names:
        return pa.chunked_array([begins])
    return pc.coalesce(rows[SNAPSHOT_ID].cast(pa.int64()), begins)


def _for_each_row(values: Sequence[int | None], held: Sequence[Piece]) -> pa.Int64Array:
    """The value of each piece, once for each of its rows."""
    pairs = [(value, piece.rows.num_rows) for value, piece in zip(values, held, strict=True)]
    filled = [(value, rows) for value, rows in pairs if rows]
    if not filled:
        return pa.array([], pa.int64())
    ends = pa.array(accumulate(rows for _, rows in filled), pa.int64())
    each = pa.array([value for value, _ in filled], pa.int64())
    return pc.run_end_decode(pa.RunEndEncodedArray.from_arrays(ends, each))


def _without_deleted(rows: pa.Table, held: Sequence[Piece], run: _Run) -> pa.Table:
    gone: list[pa.Array] = []
    offset = 0
    for piece in held:
        positions = run.deleted.get(piece.file.id or 0)
        if positions is not None:
            in_piece = pc.subtract(positions, arrow.int64(piece.start))
            inside = pc.and_(
                pc.greater_equal(in_piece, arrow.int64(0)),
                pc.less(in_piece, arrow.int64(piece.rows.num_rows)),
            )
            gone.append(pc.add(in_piece.filter(inside), arrow.int64(offset)))
        offset += piece.rows.num_rows
    if not gone:
        return rows
    places = pc.subtract(pc.cumulative_sum(pa.repeat(arrow.int64(1), offset)), arrow.int64(1))
    return rows.filter(pc.invert(pc.is_in(places, pa.concat_arrays(gone))))


def _new_path(first: DataFile, job: Job) -> str:
    """A path in the table's directory, in the same partition directories as the first source."""
    table, mark = job.table, f"{job.mark}-" if job.mark else ""
    below = first.path[len(table.path) :] if first.path.startswith(table.path) else ""
    folders = [part for part in below.split("/")[:-1] if "=" in part]
    directory = table.path + "".join(f"{part}/" for part in folders)
    if not is_remote(directory):
        make_directory(directory)
    return f"{directory}penstock-{mark}{new_uuid7()}.parquet"


def _described(run: _Run, job: Job) -> DataFile:
    system, name = open_system(run.path)
    metadata = pq.read_metadata(name, filesystem=system)
    first = run.sources[0]
    last = max(
        file.partial.last if file.partial is not None else file.begin_snapshot or 0
        for file in run.sources
    )
    plain = DataFile(
        path=run.path,
        record_count=metadata.num_rows,
        size_bytes=system.get_file_info(name).size,
        footer_size=metadata.serialized_size,
        has_row_ids=run.with_row_ids,
        row_id_start=None if run.with_row_ids else first.row_id_start,
        partition_id=first.partition_id,
        partition_values=first.partition_values,
        stats=_stats(metadata, run),
    )
    if not job.merges:
        return plain
    begin = min(file.begin_snapshot or 0 for file in run.sources)
    return replace(plain, begin_snapshot=begin, partial=Partial(last))


def _stats(metadata: pq.FileMetaData, run: _Run) -> tuple[ColumnStats, ...]:
    """The statistics without bounds of columns with a NaN, which Arrow's bounds ignore."""
    statistics = from_footer(metadata, run.schema, frozenset(run.nans))
    return tuple(
        replace(stats, min_value=None, max_value=None) if stats.contains_nan else stats
        for stats in statistics
    )


_ROW_GROUP = 122_880  # rows: DuckDB's default
_CODECS = {"lz4_raw": "lz4", "uncompressed": "none"}
_WITH_LEVEL = frozenset({"zstd", "gzip", "brotli"})


@dataclass(frozen=True, slots=True)
class ParquetSettings:
    """``row_group`` in rows, ``target`` (the size that files should come near) in bytes.

    ``sort_by`` are keys whose expressions are names of columns.
    """

    compression: str = "snappy"
    level: int | None = None
    data_page_version: str = "1.0"
    row_group: int = _ROW_GROUP
    target: int = TARGET_FILE_SIZE
    sort_by: tuple[SortKey, ...] = ()

    @property
    def writer(self) -> Mapping[str, Any]:
        """For `pyarrow.parquet.ParquetWriter`. Without Arrow's own copy of the schema: the types
        in the file are what others read."""
        return {
            "compression": self.compression,
            "compression_level": self.level if self.compression in _WITH_LEVEL else None,
            "data_page_version": self.data_page_version,
            "version": "2.6",
            "store_schema": False,
            "store_decimal_as_integer": True,
        }


def settings_of(catalog: Catalog, table: Table, snapshot_id: int) -> ParquetSettings:
    """The settings by the options in force for the table, and its sort keys."""
    with catalog.reading() as connection:
        facts = write_facts(connection, table.schema_name, table, snapshot_id)
    options = facts.options
    codec = options.get("parquet_compression", "snappy").lower()
    level = options.get("parquet_compression_level")
    return ParquetSettings(
        compression=_CODECS.get(codec, codec),  # `checked` knows no other
        level=None if level is None else int(level),
        data_page_version="2.0" if options.get("parquet_version", "").upper() == "V2" else "1.0",
        row_group=int(options.get("parquet_row_group_size") or _ROW_GROUP),
        target=bytes_of(options.get("target_file_size", "")) or TARGET_FILE_SIZE,
        sort_by=_by_columns(facts.sort_by, table),
    )


def _by_columns(keys: tuple[SortKey, ...], table: Table) -> tuple[SortKey, ...]:
    """The keys if all are plain columns, else none: the order helps the bounds of files and never
    changes the result of a query."""
    names = [key.expression.strip('"') for key in keys]
    plain = [column for name in names if (column := table.schema.find(name)) is not None]
    if len(plain) < len(keys) or any(column.children for column in plain):
        return ()
    return tuple(
        replace(key, expression=column.name) for key, column in zip(keys, plain, strict=True)
    )


MEMORY = 256 << 20  # bytes
SPARK_FROM = 2 << 30  # bytes: the calling process writes less than this before a session starts
_LEAST_MEMORY = 1 << 20


@dataclass(frozen=True, slots=True)
class Resources:
    """Limits of compaction, in bytes: ``Resources(memory=2 * 1024**3, spark_from=None)``.

    Each process that writes holds about ``memory`` at once.

    Where the files of one table that are to be rewritten have ``spark_from`` bytes or more in all,
    Spark's executors write them in parallel; with ``None``, and in a lake without a session, the
    calling process writes them. Raises ArgumentError for less memory than reading needs.
    """

    memory: int = MEMORY
    spark_from: int | None = SPARK_FROM

    def __post_init__(self) -> None:
        if self.memory < _LEAST_MEMORY:
            raise ArgumentError(
                f"memory is {self.memory} bytes, which is too little to read files in",
                hint=f"give {_LEAST_MEMORY} or more; {MEMORY} is the default",
            )


DEFAULT = Resources()


@dataclass(frozen=True, slots=True)
class Part:
    """A group of files, and the job that writes it."""

    files: Group
    job: Job


def write_on_spark(spark: SparkSession, parts: Sequence[Part]) -> list[NewFile]:
    """The new files of these parts, in their order, each written as by `write_together`.

    If one fails, no files are left behind. (A lost task that continues to write leaves an orphan.)
    Raises what `write_together` raises, EnvironmentMissing when the executors lack Penstock, and
    LakeError when Spark itself fails.
    """
    mark = new_uuid7()
    largest_first = sorted(range(len(parts)), key=lambda at: -_bytes(parts[at]))
    rows = [
        (place, at, _packed(parts[at], f"{mark}-{at}")) for place, at in enumerate(largest_first)
    ]
    try:
        results = _run(spark, rows)
        failed = [result for result in results.values() if isinstance(result, LakeError)]
        if failed:
            raise failed[0]
    except BaseException:
        _sweep(parts, mark)
        raise
    return [new for at in range(len(parts)) for new in results[at]]  # type: ignore[union-attr] # no error is left


def _bytes(part: Part) -> int:
    return sum(file.size_bytes for file in part.files)


def _packed(part: Part, mark: str) -> bytes:
    """The input of one task: the sources without what the task does not need."""
    files = tuple(replace(file, stats=()) for file in part.files)
    used = {file.mapping_id for file in files}
    mappings = {key: mapping for key, mapping in part.job.mappings.items() if key in used}
    job = replace(part.job, mappings=mappings, mark=mark)
    return pickle.dumps((files, job, storage_of(job.table.path)))


def _run(
    spark: SparkSession, rows: Sequence[tuple[int, int, bytes]]
) -> dict[int, list[NewFile] | LakeError]:
    from pyspark.errors import PySparkException
    from pyspark.sql.functions import udf
    from pyspark.sql.types import BinaryType

    write = udf(_written, BinaryType(), useArrow=False).asNondeterministic()
    try:
        results = (
            spark.createDataFrame(list(rows), "place INT, at INT, part BINARY")
            .repartitionByRange(len(rows), "place")
            .select("at", write("part").alias("result"))
            .collect()
        )
    except PySparkException as error:
        if lacks(error, "penstock"):
            raise EnvironmentMissing(
                "the Python of Spark's executors has no penstock",
                hint="install it there, or leave Spark out of it by Resources(spark_from=None)",
            ) from error
        raise LakeError(
            f"Spark failed to rewrite files: {str(error).splitlines()[0]}",
            hint="nothing was changed; Resources(spark_from=None) leaves Spark out of it",
        ) from error
    return {row.at: pickle.loads(row.result) for row in results}


def lacks(error: Exception, module: str) -> bool:
    """Return whether a task failed because the executors' Python lacks this module."""
    return f"No module named '{module}'" in str(error)


def _written(packed: bytes) -> bytes:
    """In a task: write one part, and return its files or its error, pickled."""
    files, job, storage = pickle.loads(packed)
    return pickle.dumps(_outcome(files, job, storage))


def _outcome(files: Group, job: Job, storage: Storage | None) -> list[NewFile] | LakeError:
    try:
        use(job.table.path, storage)
        return write_together(files, job)
    except LakeError as error:  # as itself: Spark would make text of it
        return error


def _sweep(parts: Sequence[Part], mark: str) -> None:
    """Remove the files of tasks that finished before another one failed."""
    for directory in {part.job.table.path for part in parts}:
        for path in list_files(directory):
            if f"/penstock-{mark}-" in path:
                remove_file(path)


Group = tuple[DataFile, ...]
