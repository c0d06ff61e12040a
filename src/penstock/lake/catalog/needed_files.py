"""Which files the catalog knows: those that snapshots need, and those scheduled for deletion."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, select

from penstock.lake.catalog import tables as t
from penstock.lake.catalog.expiry import table_paths
from penstock.lake.catalog.paths import resolve

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


def scheduled(connection: Connection, data_path: str) -> list[Scheduled]:
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
