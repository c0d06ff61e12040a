"""Registering files: data files, delete files, their statistics and name mappings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any

from sqlalchemy import Connection, func, select

from penstock.errors import CommitConflict
from penstock.lake.catalog import tables as t
from penstock.lake.catalog.files import load_mappings
from penstock.lake.catalog.paths import store
from penstock.lake.catalog.state import Ids
from penstock.lake.files import DataFile, DeleteFile
from penstock.lake.schema import Column, TableSchema
from penstock.lake.stats import TableColumnStats, merge

_CHUNK = 5000  # ids bound in one statement; both databases take 32,000 and more

_INNER_NAMES = {"list": ("list",), "map": ("key", "value")}


def add_files(
    connection: Connection,
    snapshot_id: int,
    ids: Ids,
    table_id: int,
    *,
    table_path: str,
    schema: TableSchema,
    partition_id: int | None,
    files: Sequence[DataFile],
) -> None:
    """Register data files and bring the table's statistics up to date."""
    mapping_id = None
    if any(file.uses_mapping for file in files):
        mapping_id = _mapping_for(connection, ids, table_id, schema)
    stats = _table_stats(connection, table_id)
    row_ids = accumulate((file.record_count for file in files), initial=stats.get("next_row_id", 0))
    numbered = list(zip(ids.files(len(files)), files, row_ids, strict=False))
    connection.execute(
        t.data_file.insert(),
        [
            _data_row(file_id, file, start, snapshot_id, table_id)
            | dict(zip(("path", "path_is_relative"), store(table_path, file.path), strict=True))
            | {
                "mapping_id": mapping_id if file.uses_mapping else file.mapping_id,
                "partition_id": None if file.partition_values is None else partition_id,
            }
            for file_id, file, start in numbered
        ],
    )
    _insert_all(connection, t.file_partition_value, _partition_rows(numbered, table_id))
    _insert_all(connection, t.file_column_stats, _stats_rows(numbered, table_id))
    _merge_table_stats(connection, table_id, schema, files, stats)


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
        "row_id_start": row_id_start,
    }


Numbered = Sequence[tuple[int, DataFile, int]]


def _partition_rows(numbered: Numbered, table_id: int) -> Iterator[dict[str, Any]]:
    for file_id, file, _ in numbered:
        for key, value in enumerate(file.partition_values or ()):
            yield {
                "data_file_id": file_id,
                "table_id": table_id,
                "partition_key_index": key,
                "partition_value": value,
            }


def _stats_rows(numbered: Numbered, table_id: int) -> Iterator[dict[str, Any]]:
    for file_id, file, _ in numbered:
        for one in file.stats:
            yield {
                "data_file_id": file_id,
                "table_id": table_id,
                "column_id": one.column_id,
                "column_size_bytes": one.size_bytes,
                "value_count": one.value_count,
                "null_count": one.null_count,
                "min_value": one.min_value,
                "max_value": one.max_value,
                "contains_nan": one.contains_nan,
            }


def _insert_all(connection: Connection, table: Any, rows: Iterator[dict[str, Any]]) -> None:
    listed = list(rows)
    if listed:
        connection.execute(table.insert(), listed)


def _table_stats(connection: Connection, table_id: int) -> dict[str, int]:
    c = t.table_stats.c
    query = select(c.record_count, c.next_row_id, c.file_size_bytes).where(c.table_id == table_id)
    row = connection.execute(query).first()
    return {} if row is None else dict(row._mapping)


def _merge_table_stats(
    connection: Connection,
    table_id: int,
    schema: TableSchema,
    files: Sequence[DataFile],
    before: Mapping[str, int],
) -> None:
    rows = sum(file.record_count for file in files)
    totals = {
        "record_count": before.get("record_count", 0) + rows,
        "next_row_id": before.get("next_row_id", 0) + rows,
        "file_size_bytes": before.get("file_size_bytes", 0)
        + sum(file.size_bytes for file in files),
    }
    if before:
        update = t.table_stats.update().where(t.table_stats.c.table_id == table_id)
        connection.execute(update.values(**totals))
    else:
        connection.execute(t.table_stats.insert().values(table_id=table_id, **totals))
    _merge_column_stats(connection, table_id, schema, files, fresh=not before)


def _merge_column_stats(
    connection: Connection,
    table_id: int,
    schema: TableSchema,
    files: Sequence[DataFile],
    *,
    fresh: bool,
) -> None:
    c = t.table_column_stats.c
    query = select(c.column_id, c.contains_null, c.contains_nan, c.min_value, c.max_value)
    before = {
        row.column_id: TableColumnStats(*row)
        for row in connection.execute(query.where(c.table_id == table_id))
    }
    by_column = _stats_by_column(files)
    after: list[TableColumnStats] = []
    for column in schema.walk():
        known = before.get(column.id or 0)
        if column.children or (known is None and not fresh):
            continue  # no row and not fresh: unknown, and must stay so
        listed = [stats.get(column.id or 0) for stats in by_column]
        merged = merge(column, known, listed)
        if merged is not None:
            after.append(merged)
    touched = {column.id for column in schema.walk()} & before.keys()
    if touched:
        connection.execute(
            t.table_column_stats.delete().where(c.table_id == table_id, c.column_id.in_(touched))
        )
    if after:
        connection.execute(
            t.table_column_stats.insert(), [_column_stats_row(table_id, one) for one in after]
        )


def _stats_by_column(files: Sequence[DataFile]) -> list[dict[int, Any]]:
    return [{one.column_id: one for one in file.stats} for file in files if file.record_count]


def _column_stats_row(table_id: int, one: TableColumnStats) -> dict[str, Any]:
    return {
        "table_id": table_id,
        "column_id": one.column_id,
        "contains_null": one.contains_null,
        "contains_nan": one.contains_nan,
        "min_value": one.min_value,
        "max_value": one.max_value,
    }


def end_files(
    connection: Connection, snapshot_id: int, table_id: int, file_ids: Sequence[int], name: str
) -> None:
    """End data files whole, and the delete files that were in force on them."""
    for chunk in _chunks(file_ids):
        ended = _end(connection, t.data_file, snapshot_id, table_id, chunk)
        if ended != len(chunk):
            raise _files_gone(name)
        _end(connection, t.delete_file, snapshot_id, table_id, chunk)


def add_deletes(
    connection: Connection,
    snapshot_id: int,
    ids: Ids,
    table_id: int,
    *,
    table_path: str,
    deletes: Mapping[int, DeleteFile],
    name: str,
) -> None:
    """Register cumulative delete files; each takes the place of the one before it."""
    for chunk in _chunks(list(deletes)):
        if _in_force(connection, table_id, chunk) != len(chunk):
            raise _files_gone(name)
        _end(connection, t.delete_file, snapshot_id, table_id, chunk)
    rows = []
    for data_file_id, file in deletes.items():
        path, is_relative = store(table_path, file.path)
        rows.append(
            {
                "delete_file_id": ids.file(),
                "table_id": table_id,
                "begin_snapshot": snapshot_id,
                "data_file_id": data_file_id,
                "path": path,
                "path_is_relative": is_relative,
                "format": file.format,
                "delete_count": file.delete_count,
                "file_size_bytes": file.size_bytes,
                "footer_size": file.footer_size,
            }
        )
    connection.execute(t.delete_file.insert(), rows)


def _end(
    connection: Connection, table: Any, snapshot_id: int, table_id: int, file_ids: Sequence[int]
) -> int:
    c = table.c
    result = connection.execute(
        table.update()
        .where(c.data_file_id.in_(file_ids), c.table_id == table_id, c.end_snapshot.is_(None))
        .values(end_snapshot=snapshot_id)
    )
    return int(result.rowcount)


def _in_force(connection: Connection, table_id: int, file_ids: Sequence[int]) -> int:
    c = t.data_file.c
    query = select(func.count()).where(
        c.data_file_id.in_(file_ids), c.table_id == table_id, c.end_snapshot.is_(None)
    )
    return connection.execute(query).scalar_one()


def _chunks(file_ids: Sequence[int]) -> Iterator[Sequence[int]]:
    for start in range(0, len(file_ids), _CHUNK):
        yield file_ids[start : start + _CHUNK]


def _files_gone(name: str) -> CommitConflict:
    return CommitConflict(
        f"files of table {name} that this commit replaces are not there any more",
        hint="run it again on the table as it is now",
    )


def _mapping_for(connection: Connection, ids: Ids, table_id: int, schema: TableSchema) -> int:
    """The name mapping of the table's columns as they are now, made when there is none alike."""
    wanted = dict(mapping_paths(schema.columns))
    for mapping_id, mapping in load_mappings(connection, table_id).items():
        if mapping.fields == wanted:
            return mapping_id
    mapping_id = ids.file()
    connection.execute(
        t.column_mapping.insert().values(
            mapping_id=mapping_id, table_id=table_id, type="map_by_name"
        )
    )
    numbers = {path: number for number, path in enumerate(wanted)}
    connection.execute(
        t.name_mapping.insert(),
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
