"""What a write asks the catalog about its table.

Its options, sort keys and size of rows, and its columns and layout when its files were written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlalchemy import Connection, select

from penstock.lake.catalog import objects, reads
from penstock.lake.catalog.database import metadata
from penstock.lake.catalog.database.rows import check_counts
from penstock.lake.catalog.options import checked
from penstock.lake.files import Table
from penstock.lake.objects import SortKey
from penstock.lake.schema import TableSchema

_NEWEST = 20  # files whose rows tell how large rows are
_ENOUGH = 1_000  # rows, fewer tell nothing


@dataclass(frozen=True, slots=True)
class WriteFacts:
    """``options`` are those in force for the table; ``row_bytes`` is ``None`` for few rows."""

    options: Mapping[str, str] = field(default_factory=dict)
    sort_by: tuple[SortKey, ...] = ()
    row_bytes: float | None = None


def write_facts(
    connection: Connection, schema_name: str, table: Table | None, snapshot_id: int
) -> WriteFacts:
    """Of a table, or of one to be made in this schema.

    A table's options come before its schema's, those before the lake's.
    """
    table_id = None if table is None else table.id
    schema_id = _schema_id(connection, schema_name, snapshot_id)
    scopes = {(None, None): 0, ("schema", schema_id): 1, ("table", table_id): 2}
    rows = [row for row in reads.metadata_rows(connection) if (row.scope, row.scope_id) in scopes]
    rows.sort(key=lambda row: scopes[(row.scope, row.scope_id)])
    options = {row.key: row.value for row in rows}
    options = {key: checked(key, text) for key, text in options.items()}
    if table is None:
        return WriteFacts(options)
    sort_by = objects.sort_keys(connection, table.id, snapshot_id)
    return WriteFacts(options, sort_by, _row_bytes(connection, table.id))


def _schema_id(connection: Connection, name: str, snapshot_id: int) -> int | None:
    t = metadata.of(connection)
    s = t.schema.c
    query = select(s.schema_id).where(s.schema_name == name, reads.visible(t.schema, snapshot_id))
    return connection.execute(query).scalars().first()


def _row_bytes(connection: Connection, table_id: int) -> float | None:
    f = metadata.of(connection).data_file.c
    query = (
        select(f.data_file_id, f.file_size_bytes, f.footer_size, f.record_count)
        .where(f.table_id == table_id, f.end_snapshot.is_(None))
        .order_by(f.begin_snapshot.desc())
        .limit(_NEWEST)
    )
    rows = connection.execute(query).all()
    names = ("file_size_bytes", "footer_size", "record_count")
    check_counts(rows, lambda row: f"row {row.data_file_id} of ducklake_data_file", optional=names)
    count = sum(row.record_count or 0 for row in rows)
    size = sum((row.file_size_bytes or 0) - (row.footer_size or 0) for row in rows)
    return size / count if count >= _ENOUGH and size > 0 else None


def layout_begins(connection: Connection, table_id: int) -> list[int]:
    """The snapshots in which the table got other columns, another layout or name, ascending."""
    c = metadata.of(connection).schema_versions.c
    query = select(c.begin_snapshot).where(c.table_id == table_id).order_by(c.begin_snapshot)
    return list(connection.execute(query).scalars())


def columns_at(
    connection: Connection, data_path: str, table_id: int, snapshot_id: int
) -> TableSchema | None:
    """The table's columns at a snapshot, which may have expired."""
    found = reads.load_tables(connection, data_path, snapshot_id, table_id)
    return found[0].schema if found else None
