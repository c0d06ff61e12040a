"""What a table's columns were before: files keep the types that they were written with."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from sqlalchemy import Connection, select

from penstock.lake.catalog import tables
from penstock.lake.catalog.rows import damaged

# By table and column: the snapshots in which its versions began and their types, oldest first.
History = Mapping[tuple[int, int], tuple[tuple[int, str], ...]]


def load_history(connection: Connection, snapshot_id: int, table_id: int | None) -> History:
    """The versions that ended, up to a snapshot, of one table or of all."""
    c = tables.of(connection).column.c
    query = select(c.table_id, c.column_id, c.begin_snapshot, c.column_type)
    query = query.where(c.end_snapshot <= snapshot_id).order_by(c.begin_snapshot)
    if table_id is not None:
        query = query.where(c.table_id == table_id)
    found: dict[tuple[int, int], list[tuple[int, str]]] = defaultdict(list)
    for table, column, begin, kind in connection.execute(query):
        if not isinstance(begin, int):
            raise damaged(
                f"column {column} of table {table} in ducklake_column has {begin!r} as its "
                "begin_snapshot, where a number must be"
            )
        found[table, column].append((begin, kind))
    return {key: tuple(versions) for key, versions in found.items()}
