"""A PostgreSQL catalog copied to a zip file (`packed`) and back."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import IO, Any

from sqlalchemy import Connection, inspect, text
from sqlalchemy.schema import CreateSchema

from penstock.lake.catalog.backups.file_copies import Progress
from penstock.lake.catalog.backups.packed import (
    PackedTable,
    create,
    entry,
    indexes,
    is_ours,
    read_manifest,
    write_manifest,
)
from penstock.lake.catalog.database.engine import metadata_schema
from penstock.lake.catalog.inlined.columns import settle
from penstock.lake.format.naming import quote_identifier

_CHUNK = 1 << 20  # bytes
_COLUMNS = """
SELECT a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull
FROM pg_attribute a
JOIN pg_class c ON c.oid = a.attrelid
JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = :schema AND c.relname = :name AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY a.attnum
"""

# Values are text in one form, whatever the server's settings.
_SETTINGS = {"bytea_output": "hex", "datestyle": "ISO", "timezone": "UTC"}


def copy_to(connection: Connection, target: Path, progress: Progress | None) -> None:
    """Copy what this transaction sees, which must be one state, to a new zip file."""
    settle(connection)
    for name, value in _SETTINGS.items():
        connection.execute(text(f"SET LOCAL {name} = '{value}'"))
    schema = metadata_schema(connection) or "public"
    names = sorted(n for n in inspect(connection).get_table_names(schema) if is_ours(n))
    listed = [_described(connection, schema, name) for name in names]
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=3) as archive:
        write_manifest(archive, listed)
        for done, one in enumerate(listed, 1):
            with archive.open(entry(one.name), "w", force_zip64=True) as out:
                _copy_out(connection, schema, one, out)
            if progress is not None:
                progress(done, len(listed))


def _described(connection: Connection, schema: str, name: str) -> PackedTable:
    rows = connection.execute(text(_COLUMNS), {"schema": schema, "name": name})
    columns = tuple((str(row[0]), str(row[1]), bool(row[2])) for row in rows)
    found = inspect(connection)
    indexes = tuple(
        (str(index["name"]), tuple(str(c) for c in index["column_names"]), bool(index["unique"]))
        for index in found.get_indexes(name, schema)
    )
    key = tuple(found.get_pk_constraint(name, schema)["constrained_columns"])
    return PackedTable(name, columns, key, indexes)


def _copy_out(connection: Connection, schema: str, one: PackedTable, out: IO[bytes]) -> None:
    columns = ", ".join(quote_identifier(name) for name, *_ in one.columns)
    statement = f"COPY {_qualified(schema, one.name)} ({columns}) TO STDOUT"
    with _cursor(connection) as cursor, cursor.copy(statement) as copy:
        for chunk in copy:
            out.write(chunk)


def copy_from(connection: Connection, source: Path, progress: Progress | None) -> None:
    """Make the tables of a backup in the metadata schema, within a transaction that writes."""
    schema = metadata_schema(connection) or "public"
    connection.execute(CreateSchema(schema, if_not_exists=True))
    with zipfile.ZipFile(source) as archive:
        listed = read_manifest(archive)
        for done, one in enumerate(listed, 1):
            table = _qualified(schema, one.name)
            connection.exec_driver_sql(create(table, one))
            with archive.open(entry(one.name)) as content:
                _copy_in(connection, schema, one, content)
            for statement in indexes(table, one):
                connection.exec_driver_sql(statement)
            if progress is not None:
                progress(done, len(listed))


def _copy_in(connection: Connection, schema: str, one: PackedTable, content: IO[bytes]) -> None:
    columns = ", ".join(quote_identifier(name) for name, *_ in one.columns)
    statement = f"COPY {_qualified(schema, one.name)} ({columns}) FROM STDIN"
    with _cursor(connection) as cursor, cursor.copy(statement) as copy:
        while chunk := content.read(_CHUNK):
            copy.write(chunk)


def _qualified(schema: str, name: str) -> str:
    return f"{quote_identifier(schema)}.{quote_identifier(name)}"


def _cursor(connection: Connection) -> Any:
    """The driver's own cursor: COPY is beyond SQLAlchemy."""
    raw: Any = connection.connection.driver_connection
    return raw.cursor()
