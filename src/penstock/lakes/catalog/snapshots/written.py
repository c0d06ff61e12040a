"""Count what snapshots wrote: data files, their bytes and rows, and rows that were deleted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlalchemy import Connection, func, select

from penstock.lakes.catalog.database import metadata


@dataclass(frozen=True, slots=True)
class Written:
    """Files of one table that a snapshot began, as far as they are not compacted since. Rows that
    the catalog itself holds are in no file.
    """

    files: int = 0
    bytes: int = 0
    rows: int = 0
    deleted: int = 0


def written_in(
    connection: Connection, snapshot_ids: Sequence[int]
) -> dict[tuple[int, str], Written]:
    """Return what was written by snapshot and table, ``schema.table``."""
    t = metadata.of(connection)
    d, e = t.data_file.c, t.delete_file.c
    found: dict[tuple[int, int], Written] = {}
    data = select(
        d.begin_snapshot,
        d.table_id,
        func.count(),
        func.sum(d.file_size_bytes),
        func.sum(d.record_count),
    )
    data = data.where(d.begin_snapshot.in_(snapshot_ids)).group_by(d.begin_snapshot, d.table_id)
    for begin, table, files, size, rows in connection.execute(data):
        found[begin, table] = Written(int(files), int(size or 0), int(rows or 0))
    deletes = select(e.begin_snapshot, e.table_id, func.sum(e.delete_count))
    deletes = deletes.where(e.begin_snapshot.in_(snapshot_ids))
    for begin, table, rows in connection.execute(deletes.group_by(e.begin_snapshot, e.table_id)):
        known = found.get((begin, table), Written())
        found[begin, table] = replace(known, deleted=int(rows or 0))
    names = _names(connection, {table for _, table in found})
    return {(begin, names[table]): of for (begin, table), of in found.items() if table in names}


def _names(connection: Connection, ids: set[int]) -> dict[int, str]:
    """The last name of each table."""
    t = metadata.of(connection)
    query = select(t.table.c.table_id, t.schema.c.schema_name, t.table.c.table_name)
    query = query.join_from(t.table, t.schema, t.table.c.schema_id == t.schema.c.schema_id)
    query = query.where(t.table.c.table_id.in_(ids)).order_by(t.table.c.begin_snapshot)
    return {id_: f"{schema}.{name}" for id_, schema, name in connection.execute(query)}
