"""Rows and deletes that live in the catalog itself: one table for each version of a schema.

`ducklake_inlined_data_<table>_<schema version>` has rows with the snapshots in which they began
and ended, `ducklake_inlined_delete_<table>` the positions of rows in data files and the snapshots
that deleted them. Flushing moves both to files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    ColumnElement,
    Connection,
    MetaData,
    Select,
    Table,
    and_,
    exists,
    inspect,
    literal,
    or_,
    select,
    union_all,
)

from penstock.lakes.catalog.database import metadata
from penstock.lakes.catalog.database.engine import metadata_schema
from penstock.lakes.catalog.database.faults import check_column
from penstock.lakes.catalog.inlined.columns import Schemas, arrow_type, pick, settle, to_arrow
from penstock.lakes.catalog.reads import begun, visible
from penstock.lakes.format.files import (
    BEGIN_COLUMN,
    END_COLUMN,
    ROW_ID_COLUMN,
    InlinedChanges,
    InlinedDeletes,
    InlinedPart,
    InlinedRows,
    NestedTexts,
)
from penstock.lakes.format.files import Table as TableInfo
from penstock.lakes.format.schema import Column as SchemaColumn
from penstock.lakes.format.schema import TableSchema
from penstock.lazy import pa

_BATCH = 10_000  # rows that are Python's at a time
_TERMS = 100  # of one UNION ALL; SQLite ends at 500
_SYSTEM = (ROW_ID_COLUMN, BEGIN_COLUMN, END_COLUMN)

# Since 1.1 system columns have names that users' columns cannot have. The table of deletes has no
# columns of users.
_PREFIXES = {"1.1": "_ducklake_"}

# Of the snapshots in which a row began and ended.
_Condition = Callable[[ColumnElement[int], ColumnElement[int]], ColumnElement[bool]]


@dataclass(frozen=True, slots=True)
class Stored:
    """An inlined table and the version of the schema that it was made for."""

    rows: Table
    version: int


def load_rows(connection: Connection, of: TableInfo, snapshot_id: int) -> InlinedRows | None:
    """The inlined rows in force at a snapshot with the columns of ``of.schema``, if any."""
    parts = _load(connection, of, _visible(snapshot_id))
    return InlinedRows(parts) if parts else None


def load_deletes(connection: Connection, of: TableInfo, snapshot_id: int) -> InlinedDeletes | None:
    """The inlined deletes in force at a snapshot, of files in force there, if any."""
    f = metadata.of(connection).data_file
    queries = [
        select(stored.c.file_id, stored.c.row_id, stored.c.begin_snapshot)
        .join_from(stored, f, f.c.data_file_id == stored.c.file_id)
        .where(begun(stored.c.begin_snapshot, snapshot_id), visible(f, snapshot_id))
        for stored in delete_tables(connection, of.id)
    ]
    deletes = _deletes(connection, queries)
    return deletes if deletes.rows.num_rows else None


def load_changes(connection: Connection, of: TableInfo, first: int, last: int) -> InlinedChanges:
    """The inlined rows that began, and that ended, in the snapshots ``first`` to ``last``.

    With the columns of ``of.schema``.
    """
    return InlinedChanges(
        begun=_load(connection, of, lambda begin, _: begin.between(first, last)),
        ended=_load(connection, of, lambda _, end: end.between(first, last)),
    )


def load_delete_changes(
    connection: Connection, of: TableInfo, first: int, last: int
) -> InlinedDeletes:
    """The inlined deletes of the snapshots ``first`` to ``last``, of files in force or not."""
    queries = [
        select(stored.c.file_id, stored.c.row_id, stored.c.begin_snapshot).where(
            stored.c.begin_snapshot.between(first, last)
        )
        for stored in delete_tables(connection, of.id)
    ]
    return _deletes(connection, queries)


def files_that_lost(
    connection: Connection, table_id: int, first: int, last: int
) -> list[Select[Any]]:
    """Queries for the ids of data files with inlined deletes of these snapshots."""
    return [
        select(stored.c.file_id).where(stored.c.begin_snapshot.between(first, last))
        for stored in delete_tables(connection, table_id)
    ]


def changed_since(connection: Connection, table_id: int, snapshot_id: int) -> bool:
    """Return whether inlined rows or deletes changed after a snapshot."""
    rows = _having(
        connection,
        stored_tables(connection, table_id),
        lambda begin, end: or_(begin > snapshot_id, end > snapshot_id),
    )
    return bool(rows) or any(
        connection.execute(
            select(literal(1)).where(d.c.begin_snapshot > snapshot_id).limit(1)
        ).first()
        for d in delete_tables(connection, table_id)
    )


def _visible(snapshot_id: int) -> _Condition:
    return lambda begin, end: and_(begun(begin, snapshot_id), or_(end.is_(None), end > snapshot_id))


def _load(connection: Connection, of: TableInfo, where: _Condition) -> tuple[InlinedPart, ...]:
    stored = _having(connection, stored_tables(connection, of.id), where)
    if not stored:
        return ()
    settle(connection)
    schemas = Schemas(connection, of)
    return tuple(load_part(connection, table, schemas, of, where) for table in stored)


def load_part(
    connection: Connection, stored: Stored, schemas: Schemas, of: TableInfo, where: _Condition
) -> InlinedPart:
    """The rows of one table for which ``where`` holds: one query for its columns, one for them."""
    name = stored.rows.name
    picked, source = pick(connection, name, schemas.at(stored.version), of.schema)
    system = [source.c[stored.rows.c[each].name] for each in _SYSTEM]
    values = [*system, *(each.value for each in picked)]
    begin, end = (source.c[stored.rows.c[each].name] for each in (BEGIN_COLUMN, END_COLUMN))
    query = (
        select(*(value.label(f"c{n}") for n, value in enumerate(values)))
        .where(where(begin, end))
        .order_by(system[0], begin)
        .execution_options(yield_per=_BATCH)
    )
    columns = tuple(each.column for each in picked)
    batches = (_batch(rows, columns, name) for rows in connection.execute(query).partitions(_BATCH))
    rows = _table(batches, columns)
    return InlinedPart(TableSchema(columns), rows, _texts(connection), name)


def _batch(rows: Sequence[Any], columns: Sequence[SchemaColumn], name: str) -> pa.RecordBatch:
    turned = list(zip(*rows, strict=True))
    count = len(_SYSTEM)
    system = [
        pa.array(check_column(values, name, each, optional=each == END_COLUMN), pa.int64())
        for each, values in zip(_SYSTEM, turned[:count], strict=True)
    ]
    own = [to_arrow(v, c, name) for v, c in zip(turned[count:], columns, strict=True)]
    return pa.record_batch([*system, *own], schema=_schema(columns))


def _schema(columns: Sequence[SchemaColumn]) -> pa.Schema:
    system = [pa.field(name, pa.int64()) for name in _SYSTEM]
    return pa.schema([*system, *(pa.field(str(c.id), arrow_type(c)) for c in columns)])


def _table(batches: Iterable[pa.RecordBatch], columns: Sequence[SchemaColumn]) -> pa.Table:
    return pa.Table.from_batches(batches, _schema(columns))


def _texts(connection: Connection) -> NestedTexts:
    """DuckDB has nested types, and 1.4 wrote all of them to SQLite as a cast does."""
    dialect = connection.dialect.name
    old = connection.get_execution_options()[metadata.FORMAT] == "0.3"
    return "cast" if dialect == "duckdb" or (old and dialect == "sqlite") else "sql"


def _deletes(connection: Connection, queries: Sequence[Select[Any]]) -> InlinedDeletes:
    names = ("file_id", "position", "snapshot")
    schema = pa.schema([(name, pa.int64()) for name in names])
    batches: list[pa.RecordBatch] = []
    for query in queries:
        result = connection.execute(query.execution_options(yield_per=_BATCH))
        batches += [
            pa.record_batch(
                [
                    pa.array(check_column(values, "a table of inlined deletes", name), pa.int64())
                    for name, values in zip(names, zip(*rows, strict=True), strict=True)
                ],
                schema,
            )
            for rows in result.partitions(_BATCH)
        ]
    return InlinedDeletes(pa.Table.from_batches(batches, schema))


def _having(connection: Connection, stored: Sequence[Stored], where: _Condition) -> list[Stored]:
    """The tables with rows that match ``where``: most are empty, as every ALTER creates one."""
    with_rows: set[int] = set()
    for first in range(0, len(stored), _TERMS):
        queries = [
            select(literal(n).label("n")).where(
                exists().select_from(table.rows).where(where(*_bounds(table.rows)))
            )
            for n, table in enumerate(stored[first : first + _TERMS], first)
        ]
        with_rows.update(connection.execute(union_all(*queries)).scalars())
    return [table for n, table in enumerate(stored) if n in with_rows]


def _bounds(stored: Table) -> tuple[Column[int], Column[int]]:
    return stored.c[BEGIN_COLUMN], stored.c[END_COLUMN]


def stored_tables(connection: Connection, table_id: int) -> list[Stored]:
    """The registered inlined tables, one per schema version with inlining, oldest first."""
    c = metadata.of(connection).inlined_data_tables.c
    query = select(c.table_name, c.schema_version).where(c.table_id == table_id)
    rows = connection.execute(query.order_by(c.schema_version)).all()
    prefix = _PREFIXES.get(connection.get_execution_options()[metadata.FORMAT], "")
    return [Stored(_row_table(name, prefix), version) for name, version in rows]


@lru_cache(maxsize=256)
def _row_table(name: str, prefix: str) -> Table:
    """The same table for a name each time, so that SQLAlchemy can reuse its compiled queries."""
    columns = (Column(f"{prefix}{each}", BigInteger, key=each) for each in _SYSTEM)
    return Table(name, MetaData(), *columns)


def row_tables(connection: Connection, table_id: int) -> list[Table]:
    """The tables of inlined rows, with the system columns' names as of `stored_tables`."""
    return [table.rows for table in stored_tables(connection, table_id)]


def delete_tables(connection: Connection, table_id: int) -> list[Table]:
    """The table of inlined deletes: it has a fixed name and is created by the first delete."""
    name = f"ducklake_inlined_delete_{int(table_id)}"
    if not inspect(connection).has_table(name, schema=metadata_schema(connection)):
        return []
    columns = (Column(each, BigInteger) for each in ("file_id", "row_id", "begin_snapshot"))
    return [Table(name, MetaData(), *columns)]
