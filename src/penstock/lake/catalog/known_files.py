"""Every file that a catalog names, by its absolute path."""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import Connection, select

from penstock.lake.catalog import tables
from penstock.lake.catalog.paths import resolve, resolve_directory


def known_files(connection: Connection, data_path: str) -> Iterator[str]:
    """Paths of data and delete files of all snapshots; one that two rows share comes twice."""
    t = tables.of(connection)
    directories = _directories(connection, data_path)
    for files in (t.data_file, t.delete_file):
        c = files.c
        for table_id, path, relative in connection.execute(
            select(c.table_id, c.path, c.path_is_relative)
        ):
            yield resolve(directories.get(table_id, data_path), path, relative)


def _directories(connection: Connection, data_path: str) -> dict[int, str]:
    """The directories of all tables that ever were; renaming one does not move it."""
    t = tables.of(connection)
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
