"""The files of a table at a snapshot: a fixed number of queries, however many files.

A merged file holds rows of several snapshots. Format 1.0 has the last of them
(``partial_max``), 0.3 has text in ``partial_file_info``: the same as
``partial_max:17``, or pairs of a snapshot and the rows up to it, as in ``15:3|16:6|17:9``, one for
each file that was merged.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise, repeat
from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, false, literal, not_, or_, select

from penstock.errors import CatalogCorrupt, UnsupportedFeature
from penstock.lakes.catalog.database import metadata
from penstock.lakes.catalog.database.faults import Record, check, check_counts, column_of
from penstock.lakes.catalog.database.location import resolve
from penstock.lakes.catalog.files.registration import load_mappings, mapped_by_history
from penstock.lakes.catalog.inlined import inlined
from penstock.lakes.catalog.reads import visible
from penstock.lakes.catalog.statistics import pruning
from penstock.lakes.format.files import DataFile, DeleteFile, FileSet, NameMapping, Partial, Table
from penstock.sql.text import Predicate


def load_files(
    connection: Connection,
    table: Table,
    snapshot_id: int,
    predicate: Predicate | None = None,
) -> FileSet:
    """The files in force, each with its delete file, the name mappings they use, and what the
    catalog itself holds of the table's rows and deletes.

    Files that cannot match ``predicate`` are pruned (`pruning`).

    Raises UnsupportedFeature, naming the feature, where the files alone would give wrong rows.
    """
    test = None if predicate is None else pruning.may_match(connection, table, predicate)
    query = _query(connection, table.id, snapshot_id)
    rows = connection.execute(query if test is None else query.where(test)).all()
    check_rows(rows)
    refuse(rows, table)
    _check_one_delete_each(rows, table)
    _check_counts(rows, table)
    partitioned = any(partition_id is not None for partition_id in column_of(rows, "partition_id"))
    values = _partition_values(connection, table.id, snapshot_id) if partitioned else {}
    return replace(
        _each_once(as_file_set(connection, table, rows, values)),
        inlined=inlined.load_rows(connection, table, snapshot_id),
        inlined_deletes=inlined.load_deletes(connection, table, snapshot_id),
    )


def as_file_set(
    connection: Connection,
    table: Table,
    rows: Sequence[Record],
    values: Mapping[int, Mapping[int, str | None]],
) -> FileSet:
    """Rows of `selected` as files with the mappings they use; ``values`` are partition values."""
    mapping_ids = set(column_of(rows, "mapping_id")) - {None}
    mappings = load_mappings(connection, table.id) if mapping_ids else {}
    _check_mappings(mapping_ids, mappings, table)
    files = _data_files(rows, table.path, values)
    if _has_changed(table):
        # A file may have been written from older files, with their names and types. 1.4.4 begins a
        # rewritten file where its last row was deleted, and not at the compaction; it has no first
        # row id in either version. A flushed file begins where its first row was inlined.
        compacted = _compactions(connection, table)
        files = (
            replace(f, rewritten=f.row_id_start is None or f.begin_snapshot in compacted)
            for f in files
        )
    files, by_history = mapped_by_history(connection, table, files)
    used = {key: mappings[key] for key in sorted(mapping_ids)}
    return FileSet(files=tuple(files), mappings={**used, **by_history})


# In the extra information of a snapshot: its files are copies of older ones (`rollback`).
ROLLBACK_MARK = '"penstock_rollback"'
_COMPACTIONS = ("rewrite_delete", "merge_adjacent", "inline_flush", "compacted", "flushed_inlined")


def _has_changed(table: Table) -> bool:
    """Return whether the table's columns have changed since it was created."""
    versions = [column.versions for column in table.schema.walk() if column.versions]
    return any(len(v) > 1 or v[0][0] != table.begin_snapshot for v in versions)


def _compactions(connection: Connection, table: Table) -> frozenset[int]:
    """Snapshots whose files may have been compacted, flushed or rolled back, and so were written
    later than the snapshot says.

    These are all snapshots that did not insert files into the table. A snapshot without a record
    may be one of them.
    """
    t = metadata.of(connection)
    f, c = t.data_file.c, t.snapshot_changes.c
    tokens = literal(",") + c.changes_made + literal(",")
    compacted = or_(
        c.changes_made.is_(None),
        not_(tokens.contains(f",inserted_into_table:{table.id},", autoescape=True)),
        c.commit_extra_info.contains(ROLLBACK_MARK, autoescape=True),
        *(c.changes_made.contains(token) for token in _COMPACTIONS),
    )
    query = (
        select(f.begin_snapshot)
        .distinct()
        .join_from(t.data_file, t.snapshot_changes, c.snapshot_id == f.begin_snapshot, isouter=True)
        .where(f.table_id == table.id, compacted)
    )
    return frozenset(connection.execute(query).scalars())


def _each_once(listed: FileSet) -> FileSet:
    """Each file once, with all its delete files."""
    if len({file.id for file in listed.files}) == len(listed.files):
        return listed
    by_id: dict[int | None, list[DataFile]] = {}
    for file in listed.files:
        by_id.setdefault(file.id, []).append(file)
    once = (
        replace(first, more_deletes=tuple(d for file in others for d in file.deletes))
        for first, *others in by_id.values()
    )
    return replace(listed, files=tuple(once))


def _query(connection: Connection, table_id: int, snapshot_id: int) -> Any:
    t = metadata.of(connection)
    f, d = t.data_file.c, t.delete_file.c
    in_force: ColumnElement[bool] = false()  # no search for delete files where none exist
    any_delete = select(d.table_id).where(d.table_id == table_id).limit(1)
    if connection.execute(any_delete).first() is not None:
        in_force = and_(
            d.data_file_id == f.data_file_id,
            d.table_id == table_id,
            visible(t.delete_file, snapshot_id),
        )
    return (
        select(*selected(t))
        .join_from(t.data_file, t.delete_file, in_force, isouter=True)
        .where(f.table_id == table_id, visible(t.data_file, snapshot_id))
        .order_by(f.data_file_id, d.delete_file_id)
    )


def selected(t: metadata.Tables) -> list[ColumnElement[Any]]:
    """Return what a `DataFile` with its `DeleteFile` is made of."""
    f, d = t.data_file.c, t.delete_file.c
    return [
        f.data_file_id,
        f.begin_snapshot,
        f.end_snapshot,
        f.path,
        f.path_is_relative,
        f.file_format,
        f.record_count,
        f.file_size_bytes,
        f.footer_size,
        f.row_id_start,
        f.partition_id,
        f.encryption_key,
        f.mapping_id,
        f.partial_max,
        t.partial_file_info,
        d.delete_file_id,
        d.data_file_id.label("delete_of"),
        d.begin_snapshot.label("delete_begin"),
        d.end_snapshot.label("delete_end"),
        d.path.label("delete_path"),
        d.path_is_relative.label("delete_relative"),
        d.format.label("delete_format"),
        d.delete_count,
        d.file_size_bytes.label("delete_size"),
        d.footer_size.label("delete_footer"),
        d.encryption_key.label("delete_key"),
        d.partial_max.label("delete_partial_max"),
    ]


def _data_files(
    rows: Sequence[Record], base: str, values: Mapping[int, Mapping[int, str | None]]
) -> Iterable[DataFile]:
    ids, paths = column_of(rows, "data_file_id"), column_of(rows, "path")
    if not set(map(type, paths)) <= {str}:
        for row in rows:
            check(row, _data_row(row), texts=("path",))
    merged = any(partial_max is not None for partial_max in column_of(rows, "partial_max")) or any(
        column_of(rows, "partial_file_info")
    )
    deleted = any(delete_of is not None for delete_of in column_of(rows, "delete_of"))
    nothing = repeat(None)
    return map(
        DataFile,
        map(resolve, repeat(base), paths, column_of(rows, "path_is_relative")),
        column_of(rows, "record_count"),
        column_of(rows, "file_size_bytes"),
        column_of(rows, "footer_size"),
        ids,
        column_of(rows, "begin_snapshot"),
        column_of(rows, "row_id_start"),
        column_of(rows, "mapping_id"),
        repeat(False),  # uses_mapping
        repeat(False),  # has_row_ids
        column_of(rows, "partition_id"),
        [_in_order(values.get(file_id)) for file_id in ids] if values else nothing,
        [_delete_file(row, base) for row in rows] if deleted else nothing,
        repeat(()),  # stats
        [partial_of(row) for row in rows] if merged else nothing,
    )


def _in_order(keys: Mapping[int, str | None] | None) -> tuple[str | None, ...] | None:
    return None if keys is None else tuple(keys[key] for key in sorted(keys))


def _delete_file(row: Record, base: str) -> DeleteFile | None:
    if row.delete_of is None:
        return None
    check(row, _delete_row(row), texts=("delete_path",))
    return DeleteFile(
        path=resolve(base, row.delete_path, row.delete_relative),
        delete_count=row.delete_count,
        size_bytes=row.delete_size,
        footer_size=row.delete_footer,
        id=row.delete_file_id,
        begin_snapshot=row.delete_begin,
        partial_max=row.delete_partial_max,
        format=row.delete_format,
    )


def _data_row(row: Record) -> str:
    return f"row {row.data_file_id} of ducklake_data_file"


def _delete_row(row: Record) -> str:
    return f"row {row.delete_file_id} of ducklake_delete_file"


_DATA_NUMBERS = ("data_file_id", "begin_snapshot", "record_count", "file_size_bytes")
_DATA_OPTIONAL = (
    *("end_snapshot", "footer_size", "row_id_start"),
    *("partition_id", "mapping_id", "partial_max"),
)
_DELETE_NUMBERS = ("delete_file_id", "delete_begin", "delete_count", "delete_size")
_DELETE_OPTIONAL = ("delete_end", "delete_footer", "delete_partial_max")
_DELETE_LABELS = {
    "delete_begin": "begin_snapshot",
    "delete_end": "end_snapshot",
    "delete_size": "file_size_bytes",
    "delete_footer": "footer_size",
    "delete_partial_max": "partial_max",
}


def check_rows(rows: Sequence[Record]) -> None:
    """Raise CatalogCorrupt for a row of `selected` with invalid or negative numbers."""
    check_counts(rows, _data_row, numbers=_DATA_NUMBERS, optional=_DATA_OPTIONAL)
    of = column_of(rows, "delete_of")
    deletes = [row for row, data_file_id in zip(rows, of, strict=True) if data_file_id is not None]
    check_counts(
        deletes,
        _delete_row,
        numbers=_DELETE_NUMBERS,
        optional=_DELETE_OPTIONAL,
        labels=_DELETE_LABELS,
    )


_Test = Callable[[Record], bool]

_REFUSED: Mapping[str, _Test] = {
    "encrypted files": lambda row: bool(row.encryption_key or row.delete_key),
    "data files that are not Parquet": lambda row: (row.file_format or "parquet") != "parquet",
    "delete files that are neither Parquet nor puffin": lambda row: (
        row.delete_format not in {None, "parquet", "puffin", "vector"}
    ),
}


def refuse(rows: Sequence[Record], table: Table) -> None:
    """Raise UnsupportedFeature for a row of `selected` with a feature that is not supported."""
    columns = ("encryption_key", "delete_key", "file_format", "delete_format")
    kinds = zip(*(column_of(rows, name) for name in columns), strict=True)
    for row in dict(zip(kinds, rows, strict=True)).values():  # one of each kind
        for feature, test in _REFUSED.items():
            if test(row):
                raise _unsupported(table, feature, row)


def _unsupported(table: Table, feature: str, row: Record) -> UnsupportedFeature:
    said = f"data file {row.data_file_id} in format {row.file_format!r}"
    if row.delete_of is not None:
        said += f", delete file {row.delete_file_id} in format {row.delete_format!r}"
    return UnsupportedFeature(
        f"table {table.qualified_name} has {feature}, which this version does not read ({said})",
        hint="read the table with DuckDB, or rewrite it there",
        data={"feature": feature, "table": table.qualified_name},
    )


def _check_one_delete_each(rows: Sequence[Record], table: Table) -> None:
    """Raise CatalogCorrupt where a file in force has two delete files.

    A rewritten file may have two: DuckDB 1.5.5 flushes inlined deletes of a file that was rewritten
    meanwhile to a second delete file, and both are needed for time travel.
    """
    ids = column_of(rows, "data_file_id")
    if len(set(ids)) == len(ids):
        return
    counts = Counter(row.data_file_id for row in rows if row.end_snapshot is None)
    doubled = sorted(i for i, count in counts.items() if count > 1)[:5]
    if doubled:
        raise CatalogCorrupt(
            f"data files {doubled} of table {table.qualified_name} have two delete files at once",
            hint="find out which writer registered them; one of the two must end",
        )


def _check_counts(rows: Sequence[Record], table: Table) -> None:
    for row in rows if any(column_of(rows, "delete_count")) else ():
        if (row.delete_count or 0) > row.record_count:
            raise CatalogCorrupt(
                f"data file {row.data_file_id} of table {table.qualified_name} has "
                f"{row.record_count} rows, of which {row.delete_count} are deleted",
                hint="restore the catalog from a backup",
            )


def _check_mappings(wanted: set[int], mappings: Mapping[int, NameMapping], table: Table) -> None:
    missing = wanted - mappings.keys()
    if missing:
        raise CatalogCorrupt(
            f"table {table.qualified_name} has files under name mapping {min(missing)}, "
            "which the catalog does not hold",
            hint="restore the catalog from a backup",
        )


def _partition_values(
    connection: Connection, table_id: int, snapshot_id: int
) -> dict[int, dict[int, str | None]]:
    t = metadata.of(connection)
    v, f = t.file_partition_value.c, t.data_file.c
    query = (
        select(v.data_file_id, v.partition_key_index, v.partition_value)
        .join_from(t.file_partition_value, t.data_file, v.data_file_id == f.data_file_id)
        .where(f.table_id == table_id, visible(t.data_file, snapshot_id))
    )
    by_file: dict[int, dict[int, str | None]] = defaultdict(dict)
    # DuckDB 1.5.5 adds files with all parts of one column (year, month, day) under one key.
    mixed: set[int] = set()
    for data_file_id, key, value in connection.execute(query):
        own = by_file[data_file_id]
        if key in own:
            mixed.add(data_file_id)
        own[key] = value
    return {id_: values for id_, values in by_file.items() if id_ not in mixed}


_LAST = re.compile(r"partial_max:(\d+)")
_COUNTS = re.compile(r"\d+:\d+(\|\d+:\d+)*")


def partial_of(row: Record) -> Partial | None:
    """The snapshots of a merged file, from ``partial_max`` and ``partial_file_info`` of its row.

    Raises CatalogCorrupt for another text.
    """
    if row.partial_max is not None:
        return Partial(row.partial_max)
    text = row.partial_file_info
    if not text:
        return None
    match = _LAST.fullmatch(text)
    if match is not None:
        return Partial(int(match[1]))
    counts = _counts(text)
    if not counts or any(before > after for (_, before), (_, after) in pairwise(counts)):
        raise CatalogCorrupt(
            f"data file {row.data_file_id} is merged of {text!r}, which is not in the format",
            hint="restore the catalog from a backup",
            data={"data_file_id": row.data_file_id},
        )
    return Partial(max(snapshot for snapshot, _ in counts), counts)


def _counts(text: str) -> tuple[tuple[int, int], ...]:
    if _COUNTS.fullmatch(text) is None:
        return ()
    pairs = (pair.split(":") for pair in text.split("|"))
    return tuple((int(snapshot), int(rows)) for snapshot, rows in pairs)
