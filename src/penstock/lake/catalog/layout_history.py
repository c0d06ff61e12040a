"""What a table's columns and layout were when its files were written."""

from __future__ import annotations

from sqlalchemy import Connection, select

from penstock.lake.catalog import reads, tables
from penstock.lake.schema import TableSchema


def layout_begins(connection: Connection, table_id: int) -> list[int]:
    """The snapshots in which the table got other columns, another layout or name, ascending."""
    c = tables.of(connection).schema_versions.c
    query = select(c.begin_snapshot).where(c.table_id == table_id).order_by(c.begin_snapshot)
    return list(connection.execute(query).scalars())


def columns_at(
    connection: Connection, data_path: str, table_id: int, snapshot_id: int
) -> TableSchema | None:
    """The table's columns at a snapshot, which may have expired."""
    found = reads.load_tables(connection, data_path, snapshot_id, table_id)
    return found[0].schema if found else None
