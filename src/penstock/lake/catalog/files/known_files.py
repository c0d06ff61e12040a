"""Files that the catalog names, by absolute path: those in use and those scheduled for deletion."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, select

from penstock.lake.catalog.database import metadata
from penstock.lake.catalog.database import metadata as t
from penstock.lake.catalog.database.location import resolve, resolve_directory
from penstock.lake.catalog.snapshots.expiry import table_paths
from penstock.lake.format.files import Table


def known_files(connection: Connection, data_path: str) -> Iterator[str]:
    """Paths of data and delete files of all snapshots; one that two rows share comes twice."""
    t = metadata.of(connection)
    directories = _directories(connection, data_path)
    for files in (t.data_file, t.delete_file):
        c = files.c
        for table_id, path, relative in connection.execute(
            select(c.table_id, c.path, c.path_is_relative)
        ):
            yield resolve(directories.get(table_id, data_path), path, relative)


def _directories(connection: Connection, data_path: str) -> dict[int, str]:
    """The directories of all tables that ever were; renaming one does not move it."""
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


_CHUNK = 5000  # ids bound in one statement


@dataclass(frozen=True, slots=True)
class Scheduled:
    """A file that is to be removed. ``path`` is absolute, or a URI."""

    id: int
    path: str
    since: dt.datetime | None


def needed(connection: Connection, data_path: str) -> set[str]:
    """The paths of all data and delete files that the catalog names, at whatever snapshot."""
    paths = table_paths(connection, data_path)
    found: set[str] = set()
    for table in (t.data_file, t.delete_file):
        c = table.c
        rows = connection.execute(select(c.table_id, c.path, c.path_is_relative))
        found.update(
            resolve(paths.get(table_id, data_path), path, relative)
            for table_id, path, relative in rows
        )
    return found


def files_to_remove(connection: Connection, data_path: str) -> list[Scheduled]:
    """The files that wait for their deletion, in the order in which they were put there."""
    c = t.files_scheduled_for_deletion.c
    query = select(c.data_file_id, c.path, c.path_is_relative, c.schedule_start)
    return [
        Scheduled(row.data_file_id, resolve(data_path, row.path, row.path_is_relative), row[3])
        for row in connection.execute(query.order_by(c.schedule_start, c.data_file_id))
    ]


def forget(connection: Connection, removed: Sequence[Scheduled]) -> None:
    """Take files off the schedule: they are gone."""
    c = t.files_scheduled_for_deletion.c
    for start in range(0, len(removed), _CHUNK):
        ids = [one.id for one in removed[start : start + _CHUNK]]
        connection.execute(t.files_scheduled_for_deletion.delete().where(c.data_file_id.in_(ids)))
