"""Expiring snapshots, removing rows that no snapshot sees any more, and scheduling files.

This removes what DuckDB 1.5.5 removes (measured), and also what it leaves though nobody can see it:
ended inlined rows and deletes, column tags, name mappings and options of dropped tables. Earlier
columns, layouts and names of a table stay as long as the table: existing files were written with
them. Files are removed later, from a schedule.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, exists, func, or_, select
from sqlalchemy import Table as SqlTable

from penstock.lakes.catalog import reads
from penstock.lakes.catalog.database import metadata
from penstock.lakes.catalog.database import metadata as t
from penstock.lakes.catalog.database.location import resolve, resolve_directory, stored_path
from penstock.lakes.catalog.database.round_trips import chunks
from penstock.lakes.catalog.inlined import inlined
from penstock.lakes.catalog.inlined.flush import drop_superseded
from penstock.lakes.format.files import Table
from penstock.lakes.snapshot import Snapshot

_OF_FILES = (t.file_column_stats, t.file_partition_value, t.file_variant_stats)
_OF_TABLES = (
    *(t.table, t.column, t.table_stats, t.table_column_stats, t.column_tag, t.schema_versions),
    *(t.partition_info, t.partition_column, t.sort_info, t.sort_expression),
    *(t.inlined_data_tables, t.file_column_stats, t.file_partition_value),
)
_ENDING = (t.schema, t.view, t.macro, t.tag, t.column_tag)  # rows that stand on their own


def expire(
    connection: Connection, data_path: str, expires: Callable[[Snapshot], bool]
) -> list[Snapshot]:
    """Remove the snapshots for which ``expires`` is true, but never the latest; those removed.

    Needs a transaction that is alone in writing. Files that no snapshot sees any more are scheduled
    for deletion.
    """
    gone = [snapshot for snapshot in reads.snapshots(connection)[:-1] if expires(snapshot)]
    for chunk in chunks([snapshot.id for snapshot in gone]):
        for table in (t.snapshot, t.snapshot_changes):
            connection.execute(table.delete().where(table.c.snapshot_id.in_(chunk)))
    if gone:
        _sweep(connection, data_path)
    return gone


def _sweep(connection: Connection, data_path: str) -> None:
    tables = _gone_tables(connection)
    paths = table_paths(connection, data_path)
    _remove_files(connection, data_path, paths, tables)
    for table_id in tables:
        _remove_inlined(connection, table_id)
    for chunk in chunks(tables):
        mappings = select(t.column_mapping.c.mapping_id).where(
            t.column_mapping.c.table_id.in_(chunk)
        )
        _delete(connection, t.name_mapping, t.name_mapping.c.mapping_id.in_(mappings))
        for table in (*_OF_TABLES, t.column_mapping):
            _delete(connection, table, table.c.table_id.in_(chunk))
        of_tables = t.metadata.c.scope == "table"
        _delete(connection, t.metadata, of_tables, t.metadata.c.scope_id.in_(chunk))
    for table in _ENDING:
        _delete(connection, table, unseen(table))
    _remove_orphaned_parts(connection)
    _sweep_inlined(connection)


def unseen(table: Any) -> ColumnElement[bool]:
    """The rows of a versioned table that have ended and that no snapshot sees."""
    s = t.snapshot.c.snapshot_id
    seen = exists().where(s >= table.c.begin_snapshot, s < table.c.end_snapshot)
    return and_(table.c.end_snapshot.is_not(None), ~seen)


def _gone_tables(connection: Connection) -> list[int]:
    """The tables no version of which is seen."""
    c = t.table.c
    other = t.table.alias("other")
    s = t.snapshot.c.snapshot_id
    alive = exists().where(
        other.c.table_id == c.table_id,
        or_(
            other.c.end_snapshot.is_(None),
            exists().where(s >= other.c.begin_snapshot, s < other.c.end_snapshot),
        ),
    )
    return sorted(set(connection.execute(select(c.table_id).where(~alive)).scalars()))


def table_paths(connection: Connection, data_path: str) -> dict[int, str]:
    """The directories of all tables that ever were; renaming a table does not move it."""
    t = metadata.of(connection)
    s, c = t.schema.c, t.table.c
    schemas = {
        row.schema_id: resolve_directory(data_path, row.path, row.path_is_relative)
        for row in connection.execute(select(s.schema_id, s.path, s.path_is_relative))
    }
    query = select(c.table_id, c.schema_id, c.path, c.path_is_relative).order_by(c.begin_snapshot)
    return {
        row.table_id: resolve_directory(
            schemas.get(row.schema_id, data_path), row.path, row.path_is_relative
        )
        for row in connection.execute(query)
    }


def _remove_files(
    connection: Connection, data_path: str, paths: dict[int, str], tables: Sequence[int]
) -> None:
    """Remove data files that no snapshot sees with their rows, and delete files likewise."""
    c, d = t.data_file.c, t.delete_file.c
    files = _paths_by_id(connection, t.data_file, c.data_file_id, unseen(t.data_file))
    deletes = _paths_by_id(connection, t.delete_file, d.delete_file_id, unseen(t.delete_file))
    for chunk in chunks(tables):
        files |= _paths_by_id(connection, t.data_file, c.data_file_id, c.table_id.in_(chunk))
        deletes |= _paths_by_id(connection, t.delete_file, d.delete_file_id, d.table_id.in_(chunk))
    for chunk in chunks(sorted(files)):
        deletes |= _paths_by_id(
            connection, t.delete_file, d.delete_file_id, d.data_file_id.in_(chunk)
        )
        for table in (t.data_file, *_OF_FILES):
            _delete(connection, table, table.c.data_file_id.in_(chunk))
    for chunk in chunks(sorted(deletes)):
        _delete(connection, t.delete_file, d.delete_file_id.in_(chunk))
    now = dt.datetime.now(dt.UTC)
    rows = [
        {"data_file_id": file_id, "schedule_start": now}
        | stored_path(data_path, resolve(paths.get(row.table_id, data_path), *row[2:]))
        for file_id, row in (*files.items(), *deletes.items())
    ]
    if rows:
        connection.execute(t.files_scheduled_for_deletion.insert(), rows)


def _paths_by_id(
    connection: Connection, table: SqlTable, key: Any, condition: ColumnElement[bool]
) -> dict[int, Any]:
    """Rows by id: the id, the table's, the path and whether it is relative."""
    c = table.c
    query = select(key, c.table_id, c.path, c.path_is_relative).where(condition)
    return {row[0]: row for row in connection.execute(query)}


def _remove_inlined(connection: Connection, table_id: int) -> None:
    stored = [
        *inlined.row_tables(connection, table_id),
        *inlined.delete_tables(connection, table_id),
    ]
    for table in stored:
        table.drop(connection)


def _sweep_inlined(connection: Connection) -> None:
    """Remove inlined rows that no snapshot sees, inlined deletes of removed files, and inlined
    tables that are empty and superseded before the oldest snapshot.
    """
    c = t.inlined_data_tables.c
    oldest = connection.execute(select(func.min(t.snapshot.c.schema_version))).scalar_one()
    for table_id in sorted(set(connection.execute(select(c.table_id)).scalars())):
        for stored in inlined.row_tables(connection, table_id):
            _delete(connection, stored, unseen(stored))
        files = select(t.data_file.c.data_file_id).where(t.data_file.c.table_id == table_id)
        for stored in inlined.delete_tables(connection, table_id):
            _delete(connection, stored, stored.c.file_id.not_in(files))
        drop_superseded(connection, table_id, oldest)


def _remove_orphaned_parts(connection: Connection) -> None:
    """Remove the overloads of dropped macros and the options of dropped schemas."""
    macros = select(t.macro.c.macro_id)
    for table in (t.macro_impl, t.macro_parameters):
        _delete(connection, table, table.c.macro_id.not_in(macros))
    schemas = select(t.schema.c.schema_id)
    m = t.metadata.c
    _delete(connection, t.metadata, m.scope == "schema", m.scope_id.not_in(schemas))


def _delete(connection: Connection, table: Any, *conditions: ColumnElement[bool]) -> None:
    connection.execute(table.delete().where(*conditions))


def known_files(connection: Connection, data_path: str) -> set[str]:
    """Absolute paths of the data and delete files of all snapshots."""
    t = metadata.of(connection)
    directories = table_paths(connection, data_path)
    return {
        resolve(directories.get(table_id, data_path), path, relative)
        for files in (t.data_file, t.delete_file)
        for table_id, path, relative in connection.execute(
            select(files.c.table_id, files.c.path, files.c.path_is_relative)
        )
    }


def in_force(connection: Connection, table: Table, *, before: int) -> set[str]:
    """Absolute paths of the data files of a table that are in force, begun before a snapshot."""
    c = t.data_file.c
    query = select(c.path, c.path_is_relative).where(
        c.table_id == table.id, c.end_snapshot.is_(None), c.begin_snapshot < before
    )
    return {resolve(table.path, path, relative) for path, relative in connection.execute(query)}


def scheduled(connection: Connection, data_path: str) -> set[str]:
    """Absolute paths of the files that are scheduled for deletion."""
    c = t.files_scheduled_for_deletion.c
    rows = connection.execute(select(c.path, c.path_is_relative))
    return {resolve(data_path, path, relative) for path, relative in rows}


@dataclass(frozen=True, slots=True)
class Scheduled:
    """A file that is to be removed. ``path`` is absolute, or a URI."""

    id: int
    path: str
    since: dt.datetime | None


def files_to_remove(connection: Connection, data_path: str) -> list[Scheduled]:
    """The files that wait for their deletion, in the order in which they were put there."""
    c = t.files_scheduled_for_deletion.c
    query = select(c.data_file_id, c.path, c.path_is_relative, c.schedule_start)
    return [
        Scheduled(row.data_file_id, resolve(data_path, row.path, row.path_is_relative), row[3])
        for row in connection.execute(query.order_by(c.schedule_start, c.data_file_id))
    ]


def forget(connection: Connection, removed: Sequence[Scheduled]) -> None:
    """Remove files from the schedule after their deletion."""
    c = t.files_scheduled_for_deletion.c
    for ids in chunks([file.id for file in removed]):
        connection.execute(t.files_scheduled_for_deletion.delete().where(c.data_file_id.in_(ids)))
