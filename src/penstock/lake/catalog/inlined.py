"""Rows and deletes that live in the catalog itself. Not read yet: found, to be refused."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    MetaData,
    Select,
    Table,
    inspect,
    literal,
    or_,
    select,
    union_all,
)

from penstock.lake.catalog import tables
from penstock.lake.catalog.engine import metadata_schema
from penstock.lake.catalog.reads import visible


def in_force(connection: Connection, table_id: int, snapshot_id: int) -> tuple[bool, bool]:
    """Whether a table has inlined rows, and inlined deletes, that count at a snapshot."""
    rows = [
        select(literal(1)).where(visible(table, snapshot_id))
        for table in _row_tables(connection, table_id)
    ]
    deletes = [
        select(literal(1)).where(table.c.begin_snapshot <= snapshot_id)
        for table in _delete_tables(connection, table_id)
    ]
    return _any(connection, rows), _any(connection, deletes)


def changed_since(connection: Connection, table_id: int, snapshot_id: int) -> bool:
    """Whether inlined rows or deletes came or went after a snapshot."""
    rows = [
        select(literal(1)).where(
            or_(table.c.begin_snapshot > snapshot_id, table.c.end_snapshot > snapshot_id)
        )
        for table in _row_tables(connection, table_id)
    ]
    deletes = [
        select(literal(1)).where(table.c.begin_snapshot > snapshot_id)
        for table in _delete_tables(connection, table_id)
    ]
    return _any(connection, [*rows, *deletes])


def _any(connection: Connection, queries: Sequence[Select[int]]) -> bool:
    if not queries:
        return False
    return connection.execute(union_all(*queries).limit(1)).first() is not None


def _row_tables(connection: Connection, table_id: int) -> list[Table]:
    """They are registered, one per schema version that had inlined rows."""
    c = tables.of(connection).inlined_data_tables.c
    names = connection.execute(select(c.table_name).where(c.table_id == table_id)).scalars()
    return [_table(name, "begin_snapshot", "end_snapshot") for name in names]


def _delete_tables(connection: Connection, table_id: int) -> list[Table]:
    """Known by its name alone, and made only when the first delete is inlined."""
    name = f"ducklake_inlined_delete_{int(table_id)}"
    found = inspect(connection).has_table(name, schema=metadata_schema(connection))
    return [_table(name, "begin_snapshot")] if found else []


def _table(name: str, *columns: str) -> Table:
    return Table(name, MetaData(), *(Column(column, BigInteger) for column in columns))
