"""Rows that satisfy a condition, found by Arrow on the driver, with their new values.

A job of Spark's takes longer to begin and to end than reading some columns of some million rows.
What Spark would not certainly compute alike (`arrow_expressions`), and what is too much to read on
one machine, is left to Spark: ``None``. Some row groups are read at once, some rows of each at a
time, and only what matches is held.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Lock

from penstock.lakes.arrow_expressions.compiled import (
    Expression,
    condition,
    expression,
    knows_settings,
    plain,
)
from penstock.lakes.arrow_expressions.nodes import NotSupportedByArrow
from penstock.lakes.candidate.table import CandidateTable
from penstock.lakes.format.files import DataFile, sequence
from penstock.lakes.format.inlined.values import arrow_schema
from penstock.lakes.format.schema import TableSchema
from penstock.lakes.limits import Limits
from penstock.lakes.reading import arrow_files
from penstock.lakes.reading.arrow_files import Deleted
from penstock.lakes.reading.deleted.positions import combined
from penstock.lakes.reading.parquet.reading import check_file
from penstock.lakes.reading.scan import ROW_ID, Scan
from penstock.lakes.rows.change import Condition, FileRows, MatchedRows, RowChange
from penstock.lakes.rows.route import Facts, changed_rows, is_flat
from penstock.lazy import pa, pc, pq
from penstock.sql.text import SqlExpression

_THREADS = max(2, min(8, os.cpu_count() or 2))
_CODE_BYTES = 4  # of a text that is written as a code: less
_NONE = pa.array([], pa.int64())
_PLACE_BYTES = 16  # a number, and what Arrow has beside it


@dataclass(frozen=True, slots=True)
class Computed:
    """The condition of a change as Arrow computes it, and its new values by column, if any."""

    condition: Expression
    values: Mapping[str, Expression] | None = None

    @property
    def reads(self) -> bool:
        """Return whether the condition reads a column: without one it is true of all rows or of
        none.
        """
        return bool(self.condition.columns)


def compiled(schema: TableSchema, change: RowChange) -> Computed | None:
    """``None`` where Arrow would not certainly compute what Spark does, over columns that exist."""
    where = change.match.where if isinstance(change.match, Condition) else None
    if not isinstance(where, SqlExpression):
        return None
    try:
        kinds = _kinds(schema)
        wanted = condition(where, kinds)
        if change.deletes:
            return Computed(wanted)
        values = change.clauses[0].values
        return None if values is None else Computed(wanted, _assigned(schema, values, kinds))
    except NotSupportedByArrow:
        return None


def settings_are_known(table: CandidateTable) -> bool:
    """Return whether the session computes as Arrow is known to."""
    return knows_settings(table.context.spark())


def find(source: Scan, computed: Computed, facts: Facts, limits: Limits) -> MatchedRows | None:
    """The rows of ``source`` for which the condition is true, with their new values, if any;
    ``None`` where they are more than the driver keeps, or Arrow does not compute them.
    """
    schema = source.schema
    if computed.values is None:
        bounds = Bounds(limits.places, limits.places * _PLACE_BYTES, limits.batch_rows)
    else:
        most = changed_rows(facts, limits)
        bounds = Bounds(most, limits.changed_bytes, limits.batch_rows)
    try:
        job = Reading(schema, computed.condition, Deleted.of(source), computed.values)
        rows = read(source.files.files, job, bounds)
        inlined = _inlined(source, job)
    except NotSupportedByArrow:
        return None
    found = MatchedRows.of_files(source, rows).with_inlined(inlined.ids.to_pylist())
    if found.total > bounds.rows:
        return None
    if computed.values is None:
        return found
    parts = [*((part.values, part.ids) for part in rows), (inlined.values, inlined.ids)]
    values = [own for own, _ in parts if own is not None]
    ids = pa.chunked_array([own for _, own in parts], pa.int64())
    return found.with_values(pa.concat_tables([arrow_schema(schema).empty_table(), *values]), ids)


@dataclass(frozen=True, slots=True)
class _Inlined:
    """The rows in the catalog that match, by their ids, and their new values, if any."""

    ids: pa.Int64Array
    values: pa.Table | None = None


def _inlined(source: Scan, job: Reading) -> _Inlined:
    """Raises NotSupportedByArrow where Spark turns the values of these rows."""
    if source.files.inlined is None:
        return _Inlined(_NONE)
    rows = arrow_files.inlined_rows(source.files.inlined, job.columns)
    if rows is None:
        raise NotSupportedByArrow("inlined rows of columns that were promoted")
    rows = rows.take(job.condition.matches(rows, sequence(rows.num_rows)))
    ids = combined(rows[ROW_ID])
    if job.values is None:
        return _Inlined(ids)
    return _Inlined(ids, _renewed(rows, job.schema, job.values))


def _kinds(schema: TableSchema) -> dict[str, pa.DataType]:
    """The columns of types that Arrow has as Spark has them."""
    known = [column for column in schema.columns if is_flat(TableSchema((column,)))]
    fields = arrow_schema(TableSchema(tuple(known)))
    return {field.name: field.type for field in fields}


def _assigned(
    schema: TableSchema, values: Mapping[str, object], kinds: Mapping[str, pa.DataType]
) -> dict[str, Expression]:
    """The new values by column, in the types of the columns."""
    assigned: dict[str, Expression] = {}
    for name, value in values.items():
        column = schema.find(name)
        if column is None or column.name in assigned or column.name not in kinds:
            raise NotSupportedByArrow(f"{name!r} is assigned")
        new = expression(value, kinds) if isinstance(value, str) else plain(value)
        assigned[column.name] = new.cast(kinds[column.name])
    return assigned


@dataclass(frozen=True, slots=True)
class Bounds:
    """Of what the driver holds in all: beyond them Spark does it. A thread has ``batch`` rows."""

    rows: int
    bytes: int
    batch: int


@dataclass(frozen=True, slots=True)
class Reading:
    """Rows as read: their places, and with ``values`` (by column) their new values."""

    schema: TableSchema
    condition: Expression
    deleted: Deleted
    values: Mapping[str, Expression] | None = None

    @property
    def others(self) -> list[str]:
        """Columns that are read beside those of the condition."""
        if self.values is None:
            return []
        used = frozenset[str]().union(*(value.columns for value in self.values.values()))
        wanted = used.union(name for name in self.schema.names if name not in self.values)
        return sorted(wanted - self.condition.columns)

    @property
    def columns(self) -> TableSchema:
        """All that is read, by name."""
        wanted = sorted({*self.condition.columns, *self.others})
        known = {column.name: column for column in self.schema.columns}
        return TableSchema(tuple(known[name] for name in wanted))


def read(files: Sequence[DataFile], job: Reading, bounds: Bounds) -> list[FileRows]:
    """The rows that match, in the order of the files.

    Raises NotSupportedByArrow, DataFileCorrupt.
    """
    held = _Held(bounds)
    try:
        with ThreadPoolExecutor(_THREADS, "penstock-rows") as pool:
            opened = list(pool.map(lambda file: _open(file, job), files))
            parts = [part for file in opened for part in file.parts()]
            matches = list(pool.map(lambda part: _read(part, job, held), parts))
    except (pa.ArrowException, OSError) as error:  # Spark says of a file what is wrong with it
        raise NotSupportedByArrow(str(error)) from error
    return [rows for rows in matches if len(rows.positions)]


@dataclass(slots=True)
class _Held:
    bounds: Bounds
    rows: int = 0
    bytes: int = 0
    lock: Lock = field(default_factory=Lock)

    def keep(self, rows: int, size: int) -> None:
        with self.lock:
            self.rows, self.bytes = self.rows + rows, self.bytes + size
            if self.rows > self.bounds.rows or self.bytes > self.bounds.bytes:
                raise NotSupportedByArrow("more rows than the driver keeps")


@dataclass(frozen=True, slots=True)
class _Opened:
    """A file with the names that it has for the columns of the table."""

    file: DataFile
    metadata: pq.FileMetaData
    names: Mapping[str, str]
    row_id: str | None

    def parts(self) -> list[_Part]:
        groups = [self.metadata.row_group(at) for at in range(self.metadata.num_row_groups)]
        starts = [0]
        for group in groups:
            starts.append(starts[-1] + group.num_rows)
        return [_Part(self, at, start) for at, start in enumerate(starts[:-1])]


@dataclass(frozen=True, slots=True)
class _Part:
    """A row group, the first row of which is the file's ``start``."""

    opened: _Opened
    at: int
    start: int

    def content(self) -> pq.ParquetFile:
        """The file, whose texts are read as codes where they are mostly written so.

        Codes of texts that are written plain would have to be made, which takes longer.
        """
        group = self.opened.metadata.row_group(self.at)
        chunks = [group.column(at) for at in range(group.num_columns)]
        coded = [
            chunk.path_in_schema
            for chunk in chunks
            if chunk.physical_type == "BYTE_ARRAY"
            and chunk.has_dictionary_page
            and chunk.total_uncompressed_size < _CODE_BYTES * chunk.num_values
        ]
        return pq.ParquetFile(
            self.opened.file.path,
            metadata=self.opened.metadata,
            memory_map=True,
            read_dictionary=coded,
        )


def _open(file: DataFile, job: Reading) -> _Opened:
    columns = job.columns
    with pq.ParquetFile(file.path, memory_map=True) as content:
        metadata, held = content.metadata, content.schema_arrow
    check_file(file, metadata)
    ids = [column.id for column in columns.columns]
    names = arrow_files.names(held, ids, arrow_schema(columns))
    if names is None or arrow_files.has_old_days(metadata):
        raise NotSupportedByArrow(f"{file.path} has other columns, or days of another calendar")
    called = dict(zip(columns.names, names.columns, strict=True))
    return _Opened(file, metadata, called, names.row_id)


def _read(part: _Part, job: Reading, held: _Held) -> FileRows:
    opened = part.opened
    names = {opened.names[column]: column for column in job.condition.columns}
    with part.content() as content:
        slices = list(_slices(content, part, job, names, held.bounds.batch))
        positions = pa.concat_arrays([_NONE, *(slice_.positions for slice_ in slices)])
        held.keep(len(positions), positions.nbytes)
        if job.values is None or not len(positions):
            return FileRows(opened.file, positions)
        rows = {
            column: pa.chunked_array([slice_.values[name] for slice_ in slices])
            for name, column in names.items()
        }
        for column in job.others:
            name = opened.names[column]
            rows[column] = _picked(content, part, name, slices, held.bounds.batch)
        ids = None
        if opened.row_id is not None:
            ids = _picked(content, part, opened.row_id, slices, held.bounds.batch)
            ids = ids.combine_chunks()
    values = _renewed(pa.table(rows), job.schema, job.values)
    held.keep(0, values.nbytes)
    return FileRows(opened.file, positions, ids, values)


@dataclass(frozen=True, slots=True)
class _Slice:
    """Matches among some rows: places among them, and in the file; what the condition read."""

    rows: int
    places: pa.Int64Array
    positions: pa.Int64Array
    values: Mapping[str, pa.Array]


def _slices(
    content: pq.ParquetFile, part: _Part, job: Reading, names: Mapping[str, str], size: int
) -> Iterator[_Slice]:
    start, numbers = part.start, sequence(size)
    for rows in _batches(content, part, list(names), size):
        named = rows.rename_columns([names[name] for name in rows.schema.names])
        places = job.condition.matches(named, numbers.slice(0, rows.num_rows))
        positions = pc.add(places, pa.scalar(start, pa.int64()))
        left = job.deleted.left(part.opened.file, positions)
        if left is not None:
            places, positions = places.filter(left), positions.filter(left)
        wanted = () if job.values is None else names
        values = {name: _taken(rows[name], places) for name in wanted}
        yield _Slice(rows.num_rows, places, positions, values)
        start += rows.num_rows


def _picked(
    content: pq.ParquetFile, part: _Part, name: str, slices: Sequence[_Slice], size: int
) -> pa.ChunkedArray:
    """The values of a column in rows that match: of the others none is held."""
    values = []
    for rows, known in zip(_batches(content, part, [name], size), slices, strict=True):
        if rows.num_rows != known.rows:
            raise NotSupportedByArrow("columns that are not read alike")
        values.append(_taken(rows[name], known.places))
    return pa.chunked_array(values)


def _taken(values: pa.Array, places: pa.Int64Array) -> pa.Array:
    taken = values.take(places)
    return taken.dictionary_decode() if pa.types.is_dictionary(taken.type) else taken


def _batches(
    content: pq.ParquetFile, part: _Part, names: Sequence[str], size: int
) -> Iterator[pa.RecordBatch]:
    """The columns, one at least, of the row group, some rows at a time."""
    groups = [part.at]
    yield from content.iter_batches(size, row_groups=groups, columns=names, use_threads=False)


def _renewed(rows: pa.Table, schema: TableSchema, values: Mapping[str, Expression]) -> pa.Table:
    """All columns of the table: those with new values, and the others as they are."""
    columns = []
    for column, wanted in zip(schema.columns, arrow_schema(schema), strict=True):
        value = values.get(column.name)
        new = rows[column.name].cast(wanted.type) if value is None else value.array(rows)
        if new.null_count and not column.nullable:
            raise NotSupportedByArrow(f"NULL in {column.name}")  # Spark shows the row
        columns.append(new)
    return pa.table(columns, schema=arrow_schema(schema))
