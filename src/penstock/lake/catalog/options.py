"""Options: rows of ``ducklake_metadata`` as DuckDB 1.5.5 writes them, in no snapshot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, select

from penstock.errors import ArgumentError, CatalogCorrupt, SchemaNotFound, TableNotFound
from penstock.lake.catalog import reads
from penstock.lake.catalog.database import metadata as t
from penstock.lake.catalog.database.rows import damaged
from penstock.lake.catalog.suggest import did_you_mean
from penstock.lake.naming import DEFAULT_SCHEMA, fold
from penstock.lake.option_values import OPTIONS

Scope = tuple[
    str | None, int | None
]  # of `ducklake_metadata`: None, "schema" or "table", and an id


@dataclass(frozen=True, slots=True)
class Options:
    """All options of a lake as they were at one time: ``(key, value, scope, scope_id)``."""

    rows: Sequence[Any] = ()

    def by_schema(self, key: str) -> bool:
        """Whether a schema has an option of its own."""
        return any(row.key == key and row.scope == "schema" for row in self.rows)

    def value(self, key: str, table_id: int | None, schema_id: int | None) -> str | None:
        """The table's, else its schema's, else the lake's."""
        wanted: list[tuple[str | None, int | None]] = [(None, None)]
        if schema_id is not None:
            wanted.insert(0, ("schema", schema_id))
        if table_id is not None:
            wanted.insert(0, ("table", table_id))
        values = {(row.scope, row.scope_id): row.value for row in self.rows if row.key == key}
        return next((checked(key, values[scope]) for scope in wanted if scope in values), None)


def checked(key: str, text: str) -> str:
    """The text of an option as the catalog has it. Raises CatalogCorrupt for what it cannot be."""
    kind = OPTIONS.get(key)
    if kind is not None:
        try:
            kind.reads(key, text)
        except ArgumentError as error:
            raise CatalogCorrupt(
                f"the catalog is damaged: {text!r} is not a value of the option {key}",
                hint=f"set it anew (set_option): {error.hint}",
                data={"option": key, "value": text},
            ) from error
    return text


def find_scope(connection: Connection, schema: str | None, table: str | None) -> Scope:
    """What an option is set for: the lake, a schema, or a table (of ``main`` without a schema).

    Raises SchemaNotFound, TableNotFound.
    """
    if schema is None and table is None:
        return None, None
    latest = reads.latest(connection)
    if latest is None:
        raise damaged("it holds no snapshot")
    snapshot_id, wanted = latest.id, schema or DEFAULT_SCHEMA
    schemas = reads.schema_rows(connection, snapshot_id)
    found = next((row for row in schemas if fold(row.schema_name) == fold(wanted)), None)
    if found is None:
        raise SchemaNotFound(
            f"there is no schema {wanted!r}",
            hint=did_you_mean(wanted, [row.schema_name for row in schemas], "schemas"),
            data={"schema": wanted},
        )
    if table is None:
        return "schema", found.schema_id
    rows = reads.table_names(connection, snapshot_id)
    for row in rows:
        if (fold(row.schema_name), fold(row.table_name)) == (fold(wanted), fold(table)):
            return "table", row.table_id
    raise TableNotFound(
        f"there is no table {wanted}.{table}",
        hint=did_you_mean(
            f"{wanted}.{table}", [f"{r.schema_name}.{r.table_name}" for r in rows], "tables"
        ),
        data={"schema": wanted, "table": table},
    )


def write_option(connection: Connection, scope: Scope, key: str, value: str | None) -> None:
    """Set an option in its scope; ``None`` takes it away. Within a transaction that writes."""
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
