"""Registering data files, their name mappings and delete files, and ending them.

A data file has its rows, row ids, partition values and statistics in the catalog. The fields of a
file without field ids are found by path, in a name mapping.
"""

from __future__ import annotations

import datetime as dt
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any

from sqlalchemy import Connection, func, select
from sqlalchemy import Table as SqlTable

from penstock.errors import CommitConflict, UnsupportedFeature
from penstock.lakes.catalog.commit_context import CommitContext, Ids, Target
from penstock.lakes.catalog.database import metadata
from penstock.lakes.catalog.database import metadata as t
from penstock.lakes.catalog.database.faults import Record
from penstock.lakes.catalog.database.location import resolve, stored_path
from penstock.lakes.catalog.database.round_trips import chunks
from penstock.lakes.catalog.inlined.columns import Schemas
from penstock.lakes.catalog.statistics import totals
from penstock.lakes.format.files import DataFile, DeleteFile, NameMapping, Table, renumbered
from penstock.lakes.format.schema import Column, TableSchema


def add_files(context: CommitContext, target: Target, files: Sequence[DataFile]) -> None:
    """Register data files and bring the table's statistics up to date.

    A file from which the same transaction deleted rows is registered with its delete file. A file
    that was staged before the partitioning changed keeps the older one. A file with rows that the
    table had before (`rollback`) has their row ids.
    """
    connection, table_id = context.connection, target.id
    mapping_ids = _mapping_ids(connection, context.ids, table_id, target.schema, files)
    first = totals.of(context, table_id).next_row_id
    row_ids = accumulate(map(totals.new_row_ids, files), initial=first)
    numbered = list(zip(context.ids.files(len(files)), files, row_ids, strict=False))
    context.insert(
        t.data_file,
        [
            _data_row(file_id, file, start, context.snapshot_id, table_id)
            | stored_path(target.path, file.path)
            | {"mapping_id": mapping_id, "partition_id": _partition_id(file, target)}
            for (file_id, file, start), mapping_id in zip(numbered, mapping_ids, strict=True)
        ],
    )
    by_id = [(file_id, file) for file_id, file, _ in numbered]
    context.insert(t.file_partition_value, list(partition_rows(by_id, table_id)))
    context.insert(t.file_column_stats, list(stats_rows(by_id, table_id)))
    deletes = [
        delete_row(target, file_id, file.delete, context.ids.file())
        | {"begin_snapshot": context.snapshot_id}
        for file_id, file, _ in numbered
        if file.delete is not None
    ]
    context.insert(t.delete_file, deletes)
    totals.add(context, target, files)
    context.tokens.of("inserted_into_table", table_id)


def _partition_id(file: DataFile, target: Target) -> int | None:
    if file.partition_values is None:
        return None
    return target.partition_id if file.partition_id is None else file.partition_id


def _mapping_ids(
    connection: Connection,
    ids: Ids,
    table_id: int,
    schema: TableSchema,
    files: Sequence[DataFile],
) -> list[int | None]:
    """The name mapping of each file, if any. Files that share a mapping share one value of it."""
    own = None
    if any(file.uses_mapping for file in files):
        own = mapping_for(connection, ids, table_id, schema)
    mappings = {id(file.mapping): file.mapping for file in files if file.mapping is not None}
    made = dict(
        zip(mappings, mappings_for(connection, ids, table_id, list(mappings.values())), strict=True)
        if mappings
        else ()
    )
    return [
        own if file.uses_mapping else made.get(id(file.mapping), file.mapping_id) for file in files
    ]


def _data_row(
    file_id: int, file: DataFile, row_id_start: int, snapshot_id: int, table_id: int
) -> dict[str, Any]:
    return {
        "data_file_id": file_id,
        "table_id": table_id,
        "begin_snapshot": snapshot_id,
        "file_format": "parquet",
        "record_count": file.record_count,
        "file_size_bytes": file.size_bytes,
        "footer_size": file.footer_size,
        "row_id_start": row_id_start if file.row_id_start is None else file.row_id_start,
    }


Numbered = Sequence[tuple[int, DataFile, int]]


FilesById = Iterable[tuple[int, DataFile]]  # the id of each file


def partition_rows(numbered: FilesById, table_id: int) -> Iterator[dict[str, Any]]:
    for file_id, file in numbered:
        for key, value in enumerate(file.partition_values or ()):
            yield {
                "data_file_id": file_id,
                "table_id": table_id,
                "partition_key_index": key,
                "partition_value": value,
            }


def stats_rows(numbered: FilesById, table_id: int) -> Iterator[dict[str, Any]]:
    for file_id, file in numbered:
        for stat in file.stats:
            yield {
                "data_file_id": file_id,
                "table_id": table_id,
                "column_id": stat.column_id,
                "column_size_bytes": stat.size_bytes,
                "value_count": stat.value_count,
                "null_count": stat.null_count,
                "min_value": stat.min_value,
                "max_value": stat.max_value,
                "contains_nan": stat.contains_nan,
            }


_THREADS = 16


def end_files(context: CommitContext, target: Target, file_ids: Sequence[int]) -> None:
    """End data files whole, and the delete files that were in force on them."""
    for chunk in chunks(file_ids):
        if _end(context, t.data_file, target.id, chunk) != len(chunk):
            raise _files_gone(target.name)
        _end(context, t.delete_file, target.id, chunk)
    context.tokens.of("deleted_from_table", target.id)


def add_deletes(context: CommitContext, target: Target, deletes: Mapping[int, DeleteFile]) -> None:
    """Register cumulative delete files; each replaces the one before it.

    For a file that says which snapshot deleted each row, the catalog's row of the older file is
    replaced, as in DuckDB: the new row begins with the first of these snapshots, and the older
    file is scheduled for deletion. If that row were ended instead, it would overlap the row that
    DuckDB writes next, which begins with the least snapshot in the file. The staged file assumes
    the snapshot after the transaction's base; where others committed first, it is corrected now,
    while nobody else commits.

    For a file that does not say it, the older row ends and the new row begins.
    """
    connection, snapshot_id = context.connection, context.snapshot_id
    earlier = _deletes_in_force(connection, target.id, list(deletes), target.name)
    succeeding = {key for key, file in deletes.items() if file.partial_max and key in earlier}
    replaced = [earlier[key] for key in succeeding]
    _replace_deletes(connection, replaced, context.data_path, target.path)
    for chunk in chunks([key for key in earlier if key not in succeeding]):
        _end(context, t.delete_file, target.id, chunk)
    late = [key for key in succeeding if deletes[key].partial_max != snapshot_id]
    from concurrent.futures import ThreadPoolExecutor  # seldom needed

    with ThreadPoolExecutor(_THREADS, "penstock-renumbered") as pool:
        corrected = pool.map(lambda key: renumbered(deletes[key], snapshot_id), late)
        settled = {**deletes, **dict(zip(late, corrected, strict=True))}
    context.insert(
        t.delete_file,
        [
            delete_row(target, key, file, context.ids.file())
            | {
                "begin_snapshot": file.begin_snapshot if key in succeeding else snapshot_id,
                "partial_max": snapshot_id if key in succeeding else None,
            }
            for key, file in settled.items()
        ],
    )
    context.tokens.of("deleted_from_table", target.id)


def delete_row(target: Target, data_file_id: int, file: DeleteFile, own_id: int) -> dict[str, Any]:
    """A row of ``ducklake_delete_file`` without its snapshots."""
    return {
        "delete_file_id": own_id,
        "table_id": target.id,
        "data_file_id": data_file_id,
        "format": file.format,
        "delete_count": file.delete_count,
        "file_size_bytes": file.size_bytes,
        "footer_size": file.footer_size,
    } | stored_path(target.path, file.path)


def _deletes_in_force(
    connection: Connection, table_id: int, file_ids: Sequence[int], name: str
) -> dict[int, Record]:
    """The delete files in force by data file. Raises CommitConflict if a data file has ended."""
    c = t.delete_file.c
    in_force: dict[int, Record] = {}
    for chunk in chunks(file_ids):
        if _in_force(connection, table_id, chunk) != len(chunk):
            raise _files_gone(name)
        query = t.delete_file.select().where(
            c.data_file_id.in_(chunk), c.table_id == table_id, c.end_snapshot.is_(None)
        )
        in_force |= {row.data_file_id: row for row in connection.execute(query)}
    return in_force


def _replace_deletes(
    connection: Connection, rows: Sequence[Record], data_path: str, table_path: str
) -> None:
    """Remove the rows of delete files, and schedule the files for deletion."""
    if not rows:
        return
    c = t.delete_file.c
    for chunk in chunks([row.delete_file_id for row in rows]):
        connection.execute(t.delete_file.delete().where(c.delete_file_id.in_(chunk)))
    now = dt.datetime.now(dt.UTC)
    connection.execute(
        t.files_scheduled_for_deletion.insert(),
        [
            {"data_file_id": row.delete_file_id, "schedule_start": now}
            | stored_path(data_path, resolve(table_path, row.path, row.path_is_relative))
            for row in rows
        ],
    )


def _end(context: CommitContext, table: SqlTable, table_id: int, file_ids: Sequence[int]) -> int:
    return context.end(table, table.c.data_file_id.in_(file_ids), table.c.table_id == table_id)


def _in_force(connection: Connection, table_id: int, file_ids: Sequence[int]) -> int:
    c = t.data_file.c
    query = select(func.count()).where(
        c.data_file_id.in_(file_ids), c.table_id == table_id, c.end_snapshot.is_(None)
    )
    return connection.execute(query).scalar_one()


def _files_gone(name: str) -> CommitConflict:
    return CommitConflict(
        f"files of table {name} that this commit replaces no longer exist",
        hint="run it again on the table as it is now",
    )


_INNER_NAMES = {"list": ("list",), "map": ("key", "value")}


def load_mappings(connection: Connection, table_id: int) -> dict[int, NameMapping]:
    """All name mappings of a table, by id.

    Rows are numbered within their mapping and name their parent by that number; a list's child is
    called ``list``, a map's ``key`` and ``value``.
    """
    t = metadata.of(connection)
    m, n = t.column_mapping.c, t.name_mapping.c
    query = (
        select(
            m.mapping_id,
            m.type,
            n.column_id,
            n.source_name,
            n.target_field_id,
            n.parent_column,
            n.is_partition,
        )
        .join_from(t.column_mapping, t.name_mapping, m.mapping_id == n.mapping_id)
        .where(m.table_id == table_id)
        .order_by(m.mapping_id, n.column_id)
    )
    grouped: dict[int, list[Record]] = defaultdict(list)
    for row in connection.execute(query):
        grouped[row.mapping_id].append(row)
    return {key: _mapping(key, rows) for key, rows in grouped.items()}


def _mapping(mapping_id: int, rows: Sequence[Record]) -> NameMapping:
    for row in rows:
        if row.type != "map_by_name":
            raise UnsupportedFeature(
                f"name mapping {mapping_id} takes columns by {row.type!r}",
                hint="read the table with DuckDB, or rewrite it there",
            )
    by_number = {row.column_id: row for row in rows}

    def path(row: Record) -> tuple[str, ...]:
        parent = by_number.get(row.parent_column)
        return (*(path(parent) if parent is not None else ()), row.source_name)

    return NameMapping(
        mapping_id,
        {path(row): row.target_field_id for row in rows if not row.is_partition},
        {row.target_field_id: row.source_name for row in rows if row.is_partition},
    )


def mapping_for(connection: Connection, ids: Ids, table_id: int, schema: TableSchema) -> int:
    """The name mapping of the table's present columns; created unless an equal one exists."""
    wanted = NameMapping(None, dict(mapping_paths(schema.columns)))
    return mappings_for(connection, ids, table_id, [wanted])[0]


def mappings_for(
    connection: Connection, ids: Ids, table_id: int, wanted: Sequence[NameMapping]
) -> list[int]:
    """Ids of these mappings, in their order; those that the table lacks are created.

    Two mappings are equal when they give the same names to the same fields, in whatever order.
    """
    known = {_content(mapping): key for key, mapping in load_mappings(connection, table_id).items()}
    mapping_ids: list[int] = []
    for mapping in wanted:
        if _content(mapping) not in known:
            known[_content(mapping)] = _insert(connection, ids, table_id, mapping)
        mapping_ids.append(known[_content(mapping)])
    return mapping_ids


def _content(mapping: NameMapping) -> tuple[frozenset[Any], frozenset[Any]]:
    return frozenset(mapping.fields.items()), frozenset(mapping.partitions.items())


def _insert(connection: Connection, ids: Ids, table_id: int, mapping: NameMapping) -> int:
    mapping_id, wanted = ids.file(), mapping.fields
    connection.execute(
        metadata.column_mapping.insert().values(
            mapping_id=mapping_id, table_id=table_id, type="map_by_name"
        )
    )
    numbers = {path: number for number, path in enumerate(wanted)}
    connection.execute(
        metadata.name_mapping.insert(),
        [
            {
                "mapping_id": mapping_id,
                "column_id": number,
                "source_name": path[-1],
                "target_field_id": wanted[path],
                "parent_column": numbers.get(path[:-1]),
                "is_partition": False,
            }
            for path, number in numbers.items()
        ]
        + [
            {
                "mapping_id": mapping_id,
                "column_id": number,
                "source_name": name,
                "target_field_id": field_id,
                "parent_column": None,
                "is_partition": True,
            }
            for number, (field_id, name) in enumerate(mapping.partitions.items(), len(numbers))
        ],
    )
    return mapping_id


def mapping_paths(
    columns: Sequence[Column], parent: tuple[str, ...] = (), names: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], int]]:
    """Pairs of a field's path in the file and its id; a list's child is called ``list``."""
    for index, column in enumerate(columns):
        path = (*parent, names[index] if names else column.name)
        yield path, column.id or 0
        yield from mapping_paths(column.children, path, _INNER_NAMES.get(column.type, ()))


# Files of other tools that were added before lakes had name mappings have neither field ids nor a
# mapping: their columns are found by the names of that time. DuckDB 1.5.5 finds them by position,
# which is the same until a column is dropped (`DuckLakeMultiFileReader::CreateMapping`, "legacy
# external file"). Only the footer shows whether a file lacks field ids, so the files in question
# are those whose names neither DuckDB nor Penstock has chosen.
_NAMES = ("/ducklake-", "/penstock-")
_UUID = re.compile("/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}[/.]")  # Spark's writes are below one
_FIRST = -1_000_000_000  # commits and transactions number mappings from other values


def mapped_by_history(
    connection: Connection, table: Table, files: Iterable[DataFile]
) -> tuple[list[DataFile], Mapping[int, NameMapping]]:
    """The files, those in question with a mapping of the names of that time; the mappings by id."""
    listed = list(files)
    odd = [file for file in listed if file.mapping_id is None and not _is_ours(file.path)]
    if not odd:
        return listed, {}
    schemas = Schemas(connection, table)
    mappings: dict[int, NameMapping] = {}
    for begin in {file.begin_snapshot or 0 for file in odd}:
        paths = dict(mapping_paths(schemas.in_force(begin).columns))
        mappings[_FIRST - begin] = NameMapping(_FIRST - begin, paths, unless_ids=True)
    ids = {file.id for file in odd}
    return [_mapped(file, mappings) if file.id in ids else file for file in listed], mappings


def _mapped(file: DataFile, mappings: Mapping[int, NameMapping]) -> DataFile:
    own = mappings[_FIRST - (file.begin_snapshot or 0)]
    # A copy of the file (`rollback`) is registered under it.
    return replace(file, mapping_id=own.id, mapping=replace(own, id=None, unless_ids=False))


def _is_ours(path: str) -> bool:
    return any(name in path for name in _NAMES) or _UUID.search(path) is not None
