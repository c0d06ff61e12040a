"""A lake that was moved: its catalog still has the place where its files were."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Connection, select

from penstock.lake.catalog import reads, tables
from penstock.lake.catalog.paths import is_remote, resolve


def was_moved(connection: Connection, stored: str, wanted: str) -> bool:
    """Whether the directory ``stored`` is gone and the lake's files are in ``wanted``.

    Of each table one file is looked for; a lake without files shows nothing.
    """
    if is_remote(stored) or is_remote(wanted) or Path(stored).exists():
        return False
    latest = reads.latest(connection)
    if latest is None:
        return False
    file, found = tables.of(connection).data_file, False
    for table in reads.load_tables(connection, wanted, latest.id):
        some = select(file.c.path, file.c.path_is_relative).where(
            file.c.table_id == table.id, reads.visible(file, latest.id)
        )
        row = connection.execute(some.limit(1)).first()
        if row and not Path(resolve(table.path, row.path, row.path_is_relative)).is_file():
            return False
        found = found or row is not None
    return found
