"""Which files the catalog knows by their paths already."""

from __future__ import annotations

from sqlalchemy import Connection, select

from penstock.lake.catalog import tables as t
from penstock.lake.catalog.paths import resolve
from penstock.lake.files import Table


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
