"""The parts of a table: data files, delete files, their statistics, and rows in the catalog.

The same values describe files in the catalog (``id`` set) and staged ones (``id`` is None), so a
candidate state is read by the same scan as a committed one. Values of inlined rows are as the
catalog stores them (numbers, text, bytes), column by column in Arrow; `inlined.values` makes typed
rows of them.

Delete files are written here. Positions are in order. A file that replaces another has a third
column with the snapshot that deleted each position, as DuckDB 1.5.5 writes it (`DuckLakeDelete`,
"delete file with snapshots"): its row in the catalog begins with the least of them, and ends with
the greatest.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from penstock.lakes.format.schema import OF_DELETES, SNAPSHOT_ID, TableSchema
from penstock.lakes.storage import is_remote, open_system, output
from penstock.lazy import pa, pc, pq


@dataclass(frozen=True, slots=True)
class ColumnStats:
    """Statistics of one leaf column in one file, bounds as the format's text."""

    column_id: int
    size_bytes: int | None
    value_count: int  # values that are not NULL, as the real extension counts them
    null_count: int | None
    min_value: str | None
    max_value: str | None
    contains_nan: bool | None = None


@dataclass(frozen=True, slots=True)
class DeleteFile:
    """Positions deleted from one data file. ``path`` is absolute (or a URI).

    ``format`` is ``parquet`` or ``puffin``; or ``vector``, which no DuckLake has: a deletion vector
    in a file of Delta's, where it begins at ``footer_size``. With ``partial_max`` the file (Parquet
    only) tells for each position which snapshot deleted it, the last of them being ``partial_max``.
    """

    path: str
    delete_count: int
    size_bytes: int
    footer_size: int
    id: int | None = None
    begin_snapshot: int | None = None
    partial_max: int | None = None
    format: str = "parquet"


@dataclass(frozen=True, slots=True)
class Partial:
    """The columns that tell the snapshots of a merged file's rows. From ``last`` on all are seen.

    ``counts`` are pairs of a snapshot and the position where its rows end (0.3); without them, a
    column of the file has each row's snapshot.
    """

    last: int
    counts: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class DataFile:
    """One Parquet file. ``path`` is absolute (or a URI); the catalog stores it relative."""

    path: str
    record_count: int
    size_bytes: int
    footer_size: int
    id: int | None = None
    begin_snapshot: int | None = None
    row_id_start: int | None = None
    mapping_id: int | None = None
    uses_mapping: bool = False  # staged: registered under the table's own name mapping
    has_row_ids: bool = False  # embeds _ducklake_internal_row_id (known for staged files)
    partition_id: int | None = None
    partition_values: tuple[str | None, ...] | None = None  # by key index
    delete: DeleteFile | None = None  # in force at the snapshot that was asked for
    stats: tuple[ColumnStats, ...] = ()  # filled for staged files only
    partial: Partial | None = None  # a merged file, which holds rows of several snapshots
    more_deletes: tuple[DeleteFile, ...] = ()  # in force too; only where the file has ended since
    rewritten: bool = False  # from older files: its columns may be those that the table had then
    # For a staged file that another tool wrote: the names of its columns in the file.
    mapping: NameMapping | None = field(default=None, compare=False)

    @property
    def deletes(self) -> tuple[DeleteFile, ...]:
        """All delete files in force; their positions count together."""
        return self.more_deletes if self.delete is None else (self.delete, *self.more_deletes)


@dataclass(frozen=True, slots=True)
class NameMapping:
    """``map_by_name``: source field path (names from the root) to field id.

    ``partitions`` are the ids of columns whose value is in the file's path, with their names there;
    a "name" that begins with ``=`` is the value itself (nothing after it: NULL), as in no DuckLake.
    With ``unless_ids`` the mapping comes from the catalog's history, as the columns' names when the
    file was added; field ids, where the file has them, take precedence over it.
    """

    id: int | None
    fields: Mapping[tuple[str, ...], int] = field(default_factory=dict)
    partitions: Mapping[int, str] = field(default_factory=dict)
    unless_ids: bool = False


@dataclass(frozen=True, slots=True)
class PartitionField:
    """A field that a table is partitioned by: ``PartitionField("id", "bucket(8)")``.

    ``transform`` is ``identity``, ``year``, ``month``, ``day``, ``hour`` or ``bucket(N)``.
    """

    column: str
    transform: str = "identity"


@dataclass(frozen=True, slots=True)
class Table:
    """A table's metadata at one snapshot."""

    id: int
    uuid: str
    schema_name: str
    name: str
    path: str  # absolute, ends in "/"
    schema: TableSchema
    begin_snapshot: int
    partition_id: int | None = None
    partition_by: tuple[PartitionField, ...] = ()
    schema_version: int | None = None

    @property
    def qualified_name(self) -> str:
        return f"{self.schema_name}.{self.name}"


@dataclass(frozen=True, slots=True)
class FileSet:
    """All files of a table at one snapshot, with the mappings they use, by id.

    ``inlined`` and ``inlined_deletes`` are the inlined rows and deletes, ``None`` without any.
    """

    files: tuple[DataFile, ...]
    mappings: Mapping[int, NameMapping] = field(default_factory=dict)
    inlined: InlinedRows | None = None
    inlined_deletes: InlinedDeletes | None = None


# The system columns of `InlinedPart.rows`; the table's own follow, named by their field ids.
ROW_ID_COLUMN = "row_id"
BEGIN_COLUMN = "begin_snapshot"
END_COLUMN = "end_snapshot"
# How nested values are written: all as a cast to text does it, or some as SQL literals
# (`nested_text`).
NestedTexts = Literal["cast", "sql"]


@dataclass(frozen=True, slots=True)
class InlinedPart:
    """Inlined rows of one schema version: the columns of that version, and the stored values.

    ``rows`` has ROW_ID_COLUMN, BEGIN_COLUMN, END_COLUMN (int64) and for each column of ``schema``
    a column named by its field id, in the Arrow type in which the catalog stores it. ``table`` is
    the catalog's table that has them.
    """

    schema: TableSchema
    rows: pa.Table
    texts: NestedTexts = "sql"
    table: str | None = None


@dataclass(frozen=True, slots=True)
class InlinedRows:
    """The inlined rows of a table at one snapshot, at least one."""

    parts: tuple[InlinedPart, ...]

    @property
    def count(self) -> int:
        return sum(part.rows.num_rows for part in self.parts)

    def row_ids(self) -> tuple[int, ...]:
        return tuple(id_ for part in self.parts for id_ in part.rows[ROW_ID_COLUMN].to_pylist())


@dataclass(frozen=True, slots=True)
class InlinedDeletes:
    """Rows of data files deleted in the catalog, at least one.

    ``rows`` has the int64 columns ``file_id``, ``position`` (the row's place in its file from 0,
    whatever row ids the file embeds) and ``snapshot`` (the one that deleted it).
    """

    rows: pa.Table


@dataclass(frozen=True, slots=True)
class InlinedChanges:
    """Inlined rows that began and that ended in a range of snapshots; both may be empty.

    An update is the end of a row and the beginning of one with the same row id, in one snapshot.
    A row that began and ended within the range is in both. Rows that were flushed to a file are
    in neither: the file has them.
    """

    begun: tuple[InlinedPart, ...]
    ended: tuple[InlinedPart, ...]


def live_rows(files: Iterable[DataFile]) -> int:
    """The number of rows in the files, without those that their delete files delete."""
    return sum(f.record_count - sum(d.delete_count for d in f.deletes) for f in files)


def all_rows(files: FileSet) -> int:
    """The number of rows of a table: undeleted rows in files, and inlined rows."""
    inlined = 0 if files.inlined is None else files.inlined.count
    deleted = 0 if files.inlined_deletes is None else files.inlined_deletes.rows.num_rows
    return live_rows(files.files) + inlined - deleted


# Positions in order take a byte or two as differences, where a dictionary of them takes ten.
_SETTINGS = {
    "compression": "snappy",
    "use_dictionary": ["file_path"],
    "column_encoding": {"pos": "DELTA_BINARY_PACKED"},
    "store_schema": False,
}


def write(
    path: str, data_path: str, positions: pa.Array, since: pa.Array | None = None
) -> DeleteFile:
    """Write ``positions`` of the data file ``data_path``; ``since`` are their snapshots.

    The directory of ``path`` exists. What the snapshots mean for the catalog is the caller's.
    """
    codes = pa.repeat(pa.scalar(0, pa.int32()), len(positions))
    names = pa.DictionaryArray.from_arrays(codes, pa.array([data_path], pa.string()))
    columns = [names, positions, *([] if since is None else [since])]
    return _written(path, columns)


def renumbered(file: DeleteFile, snapshot_id: int) -> DeleteFile:
    """The staged ``file`` with ``snapshot_id`` in place of the snapshot that it assumed.

    The commit lost a race for that snapshot; positions of older snapshots keep theirs. The file is
    overwritten, once for each lost race. Nobody reads it before it is committed.
    """
    assert file.partial_max is not None, "only such files tell snapshots"
    system, place = open_system(file.path)
    with system.open_input_file(place) as source:
        content = pq.read_table(source, columns=list(OF_DELETES), read_dictionary=["file_path"])
    snapshots = content[SNAPSHOT_ID]
    mine = pc.greater_equal(snapshots, file.partial_max)
    since = pc.if_else(mine, pa.scalar(snapshot_id, pa.int64()), snapshots)
    if not is_remote(file.path):  # Hadoop's checksum is that of the content before
        folder, _, name = file.path.rpartition("/")
        Path(f"{folder}/.{name}.crc").unlink(missing_ok=True)
    columns = [content["file_path"], content["pos"], since]
    return replace(_written(file.path, columns), begin_snapshot=file.begin_snapshot)


def _written(path: str, columns: Sequence[pa.Array | pa.ChunkedArray]) -> DeleteFile:
    types = (pa.dictionary(pa.int32(), pa.string()), pa.int64(), pa.int64())
    fields = [
        pa.field(name, kind, metadata={"PARQUET:field_id": str(number)})
        for (name, number), kind in zip(OF_DELETES.items(), types, strict=True)
    ]
    content = pa.table(list(columns), schema=pa.schema(fields[: len(columns)]))
    with output(path) as out:
        pq.write_table(content, out, **_SETTINGS)
        size = out.tell()
    system, place = open_system(path)
    with system.open_input_file(place) as source:
        footer = pq.read_metadata(source).serialized_size
    return DeleteFile(path, content.num_rows, size, footer)


def sequence(count: int) -> pa.Int64Array:
    """The integers from 0 on. Python's range would take 60 ms a million under the interpreter's
    lock."""
    return pc.cumulative_sum(pa.repeat(pa.scalar(1, pa.int64()), count), start=-1)
