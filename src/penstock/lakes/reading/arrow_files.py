"""Data files read on the driver by Arrow, and the rows of small tables made of them.

Arrow reads a small table faster than Spark plans the read. It is used only where the files have the
columns with the table's types, or are older than a column; everything else falls back to Spark, as
does a file that cannot be read, which Spark then reports.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.errors import DataFileCorrupt
from penstock.lakes.format.files import ROW_ID_COLUMN, DataFile, InlinedRows, all_rows
from penstock.lakes.format.inlined.values import arrow_schema, batch_schema, batches, default_value
from penstock.lakes.format.schema import ROW_ID_FIELD, TableSchema
from penstock.lakes.format.values.bounds import base_type
from penstock.lakes.limits import LIMITS, Limits
from penstock.lakes.reading.deleted.frames import Deletes, places_on_driver, read_on_driver
from penstock.lakes.reading.deleted.positions import RowAddresses
from penstock.lakes.reading.parquet.reading import check_file
from penstock.lakes.reading.scan import FILE, POSITION, ROW_ID, Scan
from penstock.lazy import pa, pc, pq

_FIELD_ID = b"PARQUET:field_id"
_OLD_DAYS = b"org.apache.spark.legacy"  # ...DateTime, ...INT96


def are_plain(source: Scan) -> bool:
    """Return whether all files are local, have field ids, and have no row of a later snapshot.

    It does not look at inlined rows.
    """
    within = source.snapshot_id
    return all(
        file.mapping_id is None
        and not file.uses_mapping
        and "://" not in file.path
        and not (file.partial and within is not None and within < file.partial.last)
        for file in source.files.files
    )


@dataclass(frozen=True, slots=True)
class Read:
    """Rows of a file, in its order, and the row ids that it embeds, if it does."""

    rows: pa.Table
    ids: pa.ChunkedArray | None = None


def read(
    file: DataFile,
    ids: Sequence[int | None],
    schema: pa.Schema,
    *,
    row_ids: bool = False,
    default: Callable[[int], Any] | None = None,
) -> Read | None:
    """The top-level columns with these field ids, with the names and types of ``schema``.

    ``default`` returns the value of a column that is younger than the file, by its position in
    ``schema``. The result is ``None`` where the file lacks another column, has it with another
    type, or cannot be read. Raises DataFileCorrupt where it is not the file that the catalog names.
    """
    try:
        with pq.ParquetFile(file.path, memory_map=True) as content:
            check_file(file, content.metadata)
            lacking = set() if default is None else _lacking(content.schema_arrow, ids)
            places = [place for place in range(len(ids)) if place not in lacking]
            held = pa.schema([schema.field(place) for place in places])
            held_names = names(content.schema_arrow, [ids[place] for place in places], held)
            if held_names is None or has_old_days(content.metadata):
                return None
            embedded = held_names.row_id if row_ids else None
            asked = [*held_names.columns, *([] if embedded is None else [embedded])]
            rows = content.read(asked, use_threads=False)
    except (pa.ArrowException, OSError):
        return None
    columns = dict(zip(places, (rows[name] for name in held_names.columns), strict=True))
    for place in lacking:
        assert default is not None, "without it none is lacking"
        value = pa.scalar(default(place), schema.field(place).type)
        columns[place] = pa.chunked_array([pa.repeat(value, file.record_count)])
    named = pa.table([columns[place] for place in range(len(ids))], names=schema.names)
    return Read(named, None if embedded is None else rows[embedded])


def read_batches(
    file: DataFile,
    ids: Sequence[int | None],
    schema: pa.Schema,
    size: int,
    *,
    row_ids: str | None = None,
) -> Iterator[pa.RecordBatch] | None:
    """As `read`, ``size`` rows at a time. Raises ArrowException where it cannot be read.

    ``row_ids`` is the name of a last column for the row ids that the file embeds, else NULL.
    """
    try:
        content = pq.ParquetFile(file.path, memory_map=True)
    except (pa.ArrowException, OSError):
        return None
    try:
        check_file(file, content.metadata)
    except DataFileCorrupt:
        content.close()
        raise
    held_names = names(content.schema_arrow, ids, schema)
    if held_names is None or has_old_days(content.metadata):
        content.close()
        return None
    return _batches(content, held_names, schema.names, size, row_ids)


def _batches(
    content: pq.ParquetFile, held: Names, names: Sequence[str], size: int, row_ids: str | None
) -> Iterator[pa.RecordBatch]:
    embedded = None if row_ids is None else held.row_id
    asked = [*held.columns, *([] if embedded is None else [embedded])]
    called = [*names, *([] if row_ids is None else [row_ids])]
    with content:
        for batch in content.iter_batches(size, columns=asked, use_threads=False):
            arrays = [batch.column(name) for name in asked]
            if row_ids is not None and embedded is None:
                arrays.append(pa.nulls(batch.num_rows, pa.int64()))
            yield pa.record_batch(arrays, names=called)


def has_old_days(metadata: pq.FileMetaData) -> bool:
    """Return whether Spark rebases dates and times of this file as it reads them (SPARK-31404)."""
    return any(key.startswith(_OLD_DAYS) for key in metadata.metadata or {})


def _lacking(held: pa.Schema, ids: Sequence[int | None]) -> set[int]:
    """The positions of ids that the file lacks; empty unless all its columns have ids."""
    known = {int((field.metadata or {}).get(_FIELD_ID, -1)) for field in held}
    if -1 in known:
        return set()
    return {place for place, number in enumerate(ids) if number not in known}


@dataclass(frozen=True, slots=True)
class Names:
    """The names of columns in a file, and of its row ids, if it embeds them."""

    columns: Sequence[str]
    row_id: str | None


def names(held: pa.Schema, ids: Sequence[int | None], schema: pa.Schema) -> Names | None:
    """The names of the top-level columns with these field ids, if all have the right types."""
    fields = {int((field.metadata or {}).get(_FIELD_ID, -1)): field for field in held}
    matched = [fields[number] for number in ids if number is not None and number in fields]
    embedded = fields.get(ROW_ID_FIELD)
    if [field.type for field in matched] != schema.types:
        return None
    if any("." in field.name for field in (*matched, *([embedded] if embedded else []))):
        return None  # it would be a path
    return Names([field.name for field in matched], embedded.name if embedded else None)


@dataclass(frozen=True, slots=True)
class Deleted:
    """The deleted rows of some files, numbered by ``places``."""

    places: RowAddresses | None = None
    numbers: pa.Int64Array = ()  # in order

    @classmethod
    def of(cls, source: Scan) -> Deleted:
        """Of a scan with `small_deletes`."""
        deletes = _deletes(source)
        if not deletes.files:
            return cls()
        places = RowAddresses.by_order(deletes.files)
        numbers = None if places is None else places_on_driver(deletes, places)
        assert numbers is not None, "the deletes are small"
        return cls(places, numbers.sort())

    def left(self, file: DataFile, positions: pa.Int64Array) -> pa.BooleanArray | None:
        """Return which of the rows at ``positions``, given in order, are not deleted; ``None``:
        all.
        """
        if self.places is None or file.path not in self.places.codes or not len(positions):
            return None
        base = self.places.base(file)
        start = self._below(base + positions[0].as_py())
        end = self._below(base + positions[-1].as_py() + 1)
        gone = pc.subtract(self.numbers.slice(start, end - start), base)
        return pc.invert(pc.is_in(positions, value_set=gone))

    def _below(self, number: int) -> int:
        return bisect_left(self.numbers, number, key=lambda scalar: scalar.as_py())


def small_deletes(source: Scan) -> bool:
    """Return whether what is deleted already is little enough to be read without Spark. Reads
    nothing.
    """
    deletes = _deletes(source)
    if not deletes.files:
        return True
    return RowAddresses.by_order(deletes.files) is not None and read_on_driver(deletes)


def _deletes(source: Scan) -> Deletes:
    inlined = source.files.inlined_deletes
    hit = set() if inlined is None else set(inlined.rows["file_id"].to_pylist())
    files = [file for file in source.files.files if file.deletes or file.id in hit]
    return Deletes(source.table, files, source.snapshot_id, inlined)


# Types that files store as Spark has them; nested types are missing, as they have inner names.
PLAIN = frozenset(
    {
        *("boolean", "int8", "int16", "int32", "int64", "float32", "float64", "decimal"),
        *("date", "timestamp", "timestamptz", "varchar", "blob"),
    }
)
_TYPES = PLAIN | {"json"}  # which is checked where it is written


def read_small(source: Scan, names: Sequence[str], limits: Limits = LIMITS) -> pa.Table | None:
    """The columns ``names`` of the rows of ``source``, in no particular order.

    Names are spelt as in the table; types are those of Spark's rows as Arrow. ``None`` where there
    are more rows than ``limits`` allows, or where only Spark can read them.
    """
    placed = read_small_placed(source, names, limits)
    return None if placed is None else placed.select(list(names))


def read_small_placed(
    source: Scan, names: Sequence[str], limits: Limits = LIMITS
) -> pa.Table | None:
    """As `read_small`, with the further columns FILE, POSITION and ROW_ID of a scan with positions.

    ROW_ID is the id that is embedded in the file, else NULL.
    """
    columns = {column.name: column for column in source.schema.columns}
    wanted = TableSchema(tuple(columns[name] for name in names))
    if not is_simple(source, wanted, limits):
        return None
    deleted = Deleted.of(source)
    schema, keys = arrow_schema(wanted), source.keys()
    parts = [_placed(schema.empty_table(), None)]
    for file in source.files.files:
        rows = _rows(file, keys.key(file.path), wanted, schema)
        if rows is None:
            return None
        left = deleted.left(file, rows[POSITION].combine_chunks())
        parts.append(rows if left is None else rows.filter(left))
    if source.files.inlined is not None:
        inlined = inlined_rows(source.files.inlined, wanted)
        if inlined is None:
            return None
        parts.append(inlined)
    return pa.concat_tables(parts)


def reads_at_once(rows: int, files: int, size: float, limits: Limits) -> bool:
    """Return whether a table is small enough to be read whole; ``size`` is its files' in bytes."""
    return rows <= limits.table_rows and files <= limits.table_files and size <= limits.table_bytes


def is_simple(source: Scan, wanted: TableSchema, limits: Limits) -> bool:
    """Return whether Arrow can read the rows from the files, within the limits."""
    files = source.files.files
    size = sum(file.size_bytes for file in files)
    return (
        reads_at_once(all_rows(source.files), len(files), size, limits)
        and all(base_type(column.type) in _TYPES for column in wanted.columns)
        and are_plain(source)
        and small_deletes(source)
    )


def _rows(file: DataFile, key: str, wanted: TableSchema, schema: pa.Schema) -> pa.Table | None:
    ids = [column.id for column in wanted.columns]
    content = read(
        file, ids, schema, row_ids=True, default=lambda place: default_value(wanted.columns[place])
    )
    return None if content is None else _placed(content.rows, key, content.ids)


def inlined_rows(inlined: InlinedRows, wanted: TableSchema) -> pa.Table | None:
    """Rows in the catalog as `few_placed` has them; ``None`` where Spark turns their values."""
    schema = arrow_schema(wanted)
    if any(batch_schema(part, wanted) != wanted for part in inlined.parts):
        return None
    found_batches = [batch for part in inlined.parts for batch in batches(part, wanted)]
    chunks = [chunk for part in inlined.parts for chunk in part.rows[ROW_ID_COLUMN].chunks]
    ids = pa.chunked_array(chunks, pa.int64())
    return _placed(pa.Table.from_batches(found_batches, schema), None, ids)


def _placed(rows: pa.Table, key: str | None, ids: pa.ChunkedArray | None = None) -> pa.Table:
    """``rows`` with their file, their positions in it, and the row ids that it embeds."""
    count = rows.num_rows
    places = range(count) if key is not None else [None] * count
    own = ids if ids is not None else pa.nulls(count, pa.int64())
    rows = rows.append_column(FILE, pa.repeat(pa.scalar(key, pa.string()), count))
    rows = rows.append_column(POSITION, pa.array(places, pa.int64()))
    return rows.append_column(ROW_ID, own)
