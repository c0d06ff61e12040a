"""DESCRIBE a table, a view or a query: its columns as DuckDB lists them, with their comments."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.errors import TableNotFound
from penstock.lake.format.naming import TableRef, fold
from penstock.lake.format.schema import Column, TableSchema
from penstock.lake.reading.conversions.spark_types import schema_of
from penstock.lake.statements.answer import Answer, table
from penstock.lake.statements.session import Session, name_of, table_ref
from penstock.lake.statements.types import duckdb_type
from penstock.sql.statement import Reader, alone
from penstock.sql.tokens import NAME, WORD

if TYPE_CHECKING:
    from collections.abc import Mapping

_NEAREST = {
    "CATALOG": "use SELECT * FROM settings()",
    "DATABASE": "use SHOW TABLES IN schema",
    "DETAIL": "use SELECT * FROM table_info(), and lake.table(name).info() for its partitioning",
    "FUNCTION": "use SHOW FUNCTIONS for the lake's macros",
    "HISTORY": "use SELECT * FROM snapshots(), or table_changes('t', from, to)",
    "NAMESPACE": "use SHOW TABLES IN schema",
    "SCHEMA": "use SHOW TABLES IN schema",
    "VOLUME": "a lake has none",
}
_COLUMNS = (
    "column_name STRING, column_type STRING, null STRING, key STRING, default STRING, "
    "extra STRING, comment STRING"
)


def run(session: Session, reader: Reader) -> Answer:
    """``DESCRIBE [TABLE] t``, ``DESCRIBE SELECT ...``; ``t`` may be a view."""
    reader.next()
    if reader.token.upper in {"SELECT", "WITH", "FROM", "VALUES"} or reader.accept("QUERY"):
        df = session.query(alone(reader, reader.rest()))
        return columns(session, schema_of(df))
    for word, nearest in _NEAREST.items():
        if reader.sees(word) and reader.ahead(1).kind in {WORD, NAME}:
            raise reader.unsupported(f"DESCRIBE {word}", nearest)
    if reader.ahead(1).kind != "end" and reader.ahead(1).text != ".":
        reader.accept_any("TABLE", "VIEW")
    reader.accept_any("EXTENDED", "FORMATTED")
    ref = table_ref(reader)
    if not reader.done:
        raise reader.unsupported(
            f"{reader.shown()} after the table",
            "DESCRIBE t lists all columns; lake.table(t).describe(version=...) those of a snapshot",
        )
    return of(session, ref)


def of(session: Session, ref: TableRef) -> Answer:
    """The columns of a table or view."""
    transaction = session.transaction
    if transaction is not None:
        staged = transaction.table(name_of(ref))
        if staged.exists and staged.candidate.change() is not None:
            return columns(session, staged.schema)
    snapshot_id = session.snapshot_id()
    found = session.catalog.find_table(ref.schema, ref.name, snapshot_id)
    if found is not None:
        from penstock.lake.catalog import objects

        with session.catalog.reading() as connection:
            told = objects.describe(connection, found, snapshot_id)
        return columns(session, found.schema, told.column_tags)
    names = session.names(transaction)
    at = names.snapshot(names.at)
    view = names.find_view(ref, at)
    if view is not None:
        return columns(session, schema_of(names.view(view, at)), view.column_tags)
    session.catalog.table(ref.schema, ref.name, snapshot_id)  # raises and suggests
    raise TableNotFound(f"there is no table {ref.schema}.{ref.name}")


def columns(
    session: Session, schema: TableSchema, tags: Mapping[str, Mapping[str, str]] | None = None
) -> Answer:
    comments = {fold(name): of.get("comment") for name, of in (tags or {}).items()}
    rows = [_row(column, comments.get(fold(column.name))) for column in schema.columns]
    return table(session.spark, _COLUMNS, rows)


def _row(column: Column, comment: str | None) -> tuple[str | None, ...]:
    null = "YES" if column.nullable else "NO"
    return (column.name, duckdb_type(column), null, None, shown_default(column), None, comment)


def shown_default(column: Column) -> str | None:
    """A default as SQL: text in quotes, but for numbers and expressions."""
    if column.default is None or column.default_kind != "literal":
        return column.default
    if column.type.startswith(("int", "uint", "float", "decimal", "boolean")):
        return column.default
    return "'" + column.default.replace("'", "''") + "'"
