"""Options of a lake, and what else a write reads about its table before it begins.

Options are rows of ``ducklake_metadata`` as DuckDB 1.5.5 writes them, in no snapshot. A write needs
the table's options, sort keys and size of rows, and its columns and layout when its files were
written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, select

from penstock.errors import ArgumentError, CatalogCorrupt, SchemaNotFound, TableNotFound
from penstock.lakes.catalog import reads
from penstock.lakes.catalog.database import metadata
from penstock.lakes.catalog.database import metadata as t
from penstock.lakes.catalog.database.faults import check_counts, damaged
from penstock.lakes.catalog.definitions import tables
from penstock.lakes.format.files import Table
from penstock.lakes.format.naming import DEFAULT_SCHEMA, fold
from penstock.lakes.format.objects import Option, SortKey
from penstock.lakes.format.option_values import OPTIONS
from penstock.lakes.format.schema import TableSchema
from penstock.sql.identifiers import did_you_mean

Scope = tuple[
    str | None, int | None
]  # of `ducklake_metadata`: None, "schema" or "table", and an id


@dataclass(frozen=True, slots=True)
class Options:
    """All options of a lake as they were at one time: ``(key, value, scope, scope_id)``."""

    rows: Sequence[Any] = ()

    def by_schema(self, key: str) -> bool:
        """Return whether a schema has an option of its own."""
        return any(row.key == key and row.scope == "schema" for row in self.rows)

    def value(self, key: str, table_id: int | None, schema_id: int | None) -> str | None:
        """The option of the table, else of its schema, else of the lake."""
        wanted: list[tuple[str | None, int | None]] = [(None, None)]
        if schema_id is not None:
            wanted.insert(0, ("schema", schema_id))
        if table_id is not None:
            wanted.insert(0, ("table", table_id))
        values = {(row.scope, row.scope_id): row.value for row in self.rows if row.key == key}
        return next((checked(key, values[scope]) for scope in wanted if scope in values), None)


def checked(key: str, text: str) -> str:
    """The option's value, parsed from the catalog's text. Raises CatalogCorrupt."""
    kind = OPTIONS.get(key)
    if kind is not None:
        try:
            kind.reads(key, text)
        except ArgumentError as error:
            raise CatalogCorrupt(
                f"the catalog is damaged: {text!r} is not a value of the option {key}",
                hint=f"set it again (set_option): {error.hint}",
                data={"option": key, "value": text},
            ) from error
    return text


def find_scope(connection: Connection, schema: str | None, table: str | None) -> Scope:
    """The scope of an option: the lake, a schema, or a table (of ``main`` without a schema).

    Raises SchemaNotFound, TableNotFound.
    """
    if schema is None and table is None:
        return None, None
    latest = reads.latest(connection)
    if latest is None:
        raise damaged("it holds no snapshot")
    snapshot_id, wanted = latest.id, schema or DEFAULT_SCHEMA
    schemas = reads.schema_rows(connection, snapshot_id)
    schema_row = next((row for row in schemas if fold(row.schema_name) == fold(wanted)), None)
    if schema_row is None:
        raise SchemaNotFound(
            f"schema {wanted!r} does not exist",
            hint=did_you_mean(wanted, [row.schema_name for row in schemas], "schemas"),
            data={"schema": wanted},
        )
    if table is None:
        return "schema", schema_row.schema_id
    rows = reads.table_names(connection, snapshot_id)
    for row in rows:
        if (fold(row.schema_name), fold(row.table_name)) == (fold(wanted), fold(table)):
            return "table", row.table_id
    raise TableNotFound(
        f"table {wanted}.{table} does not exist",
        hint=did_you_mean(
            f"{wanted}.{table}", [f"{r.schema_name}.{r.table_name}" for r in rows], "tables"
        ),
        data={"schema": wanted, "table": table},
    )


def write_option(connection: Connection, scope: Scope, key: str, value: str | None) -> None:
    """Set an option in its scope, or remove it by ``None``. Needs a transaction that writes."""
    where = _of(scope, key)
    if value is None:
        connection.execute(t.metadata.delete().where(where))
        return
    if connection.execute(select(t.metadata.c.value).where(where)).first() is not None:
        connection.execute(t.metadata.update().where(where).values(value=value))
        return
    kind, scope_id = scope
    connection.execute(
        t.metadata.insert().values(key=key, value=value, scope=kind, scope_id=scope_id)
    )


def _of(scope: Scope, key: str) -> ColumnElement[bool]:
    kind, scope_id = scope
    c = t.metadata.c
    if kind is None:
        return and_(c.key == key, c.scope.is_(None))
    return and_(c.key == key, c.scope == kind, c.scope_id == scope_id)


_NEWEST = 20  # files whose rows tell how large rows are
_ENOUGH = 1_000  # rows; fewer say nothing about the size of a row


@dataclass(frozen=True, slots=True)
class WriteFacts:
    """``options`` are those in force for the table; ``row_bytes`` is ``None`` for few rows."""

    options: Mapping[str, str] = field(default_factory=dict)
    sort_by: tuple[SortKey, ...] = ()
    row_bytes: float | None = None


def write_facts(
    connection: Connection, schema_name: str, table: Table | None, snapshot_id: int
) -> WriteFacts:
    """The settings of a table, or of a table to be created in this schema.

    A table's options override its schema's, and these the lake's.
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
    sort_by = tables.sort_keys(connection, table.id, snapshot_id)
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
    """The snapshots that changed the table's columns, layout or name, ascending."""
    c = metadata.of(connection).schema_versions.c
    query = select(c.begin_snapshot).where(c.table_id == table_id).order_by(c.begin_snapshot)
    return list(connection.execute(query).scalars())


def columns_at(
    connection: Connection, data_path: str, table_id: int, snapshot_id: int
) -> TableSchema | None:
    """The table's columns at a snapshot, which may have expired."""
    loaded = reads.load_tables(connection, data_path, snapshot_id, table_id)
    return loaded[0].schema if loaded else None


# Descriptions of the options that the real extension stores.
_DESCRIPTIONS = {
    "version": "version of the format",
    "created_by": "what made the lake",
    "data_path": "where data files are",
    "encrypted": "whether data files are encrypted",
    "data_inlining_row_limit": "up to how many rows an insert stays in the catalog",
    "target_file_size": "size of data files that writes and compactions aim at, in bytes",
    "parquet_compression": "compression of Parquet files",
    "parquet_compression_level": "level of that compression",
    "parquet_version": "version of Parquet's data pages",
    "parquet_row_group_size": "rows of a row group",
    "parquet_row_group_size_bytes": "bytes of a row group",
    "hive_file_pattern": "whether partitioned files go to directories named for their values",
    "require_commit_message": "whether a commit needs a message",
    "rewrite_delete_threshold": "share of deleted rows from which a file is rewritten",
    "delete_older_than": "age from which unused files are removed",
    "expire_older_than": "age from which snapshots are expired",
    "auto_compact": "whether compaction without arguments includes the table",
    "per_thread_output": "whether every thread writes a file of its own",
}


def load_options(connection: Connection) -> list[Option]:
    """Every stored option, by name; its schema or table under its present name."""
    t = metadata.of(connection)
    m = t.metadata.c
    rows = connection.execute(select(m.key, m.value, m.scope, m.scope_id)).all()
    scoped = {row.scope for row in rows if row.scope}
    entries = _entries(connection) if scoped else {}
    options = [
        Option(
            name=row.key,
            value=row.value,
            scope=(row.scope or "global").upper(),
            entry=entries.get((row.scope, row.scope_id)) if row.scope else None,
            description=_DESCRIPTIONS.get(row.key, ""),
        )
        for row in rows
    ]
    order = {"GLOBAL": 0, "SCHEMA": 1, "TABLE": 2}
    return sorted(options, key=lambda o: (o.name, order.get(o.scope, 3), o.entry or ""))


def _entries(connection: Connection) -> dict[tuple[str, int], str]:
    """Names of schemas and tables, those of dropped ones as well, by scope and id."""
    t = metadata.of(connection)
    s, c = t.schema.c, t.table.c
    schemas = {row[0]: row[1] for row in connection.execute(select(s.schema_id, s.schema_name))}
    query = select(c.table_id, c.schema_id, c.table_name).order_by(c.begin_snapshot)
    named = {
        ("table", table_id): f"{schemas.get(schema_id, '')}.{name}"
        for table_id, schema_id, name in connection.execute(query)
    }
    return named | {("schema", schema_id): name for schema_id, name in schemas.items()}
