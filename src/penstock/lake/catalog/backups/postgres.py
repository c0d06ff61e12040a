"""A PostgreSQL catalog copied to a zip file and back: a manifest, and each table as COPY's text.

Only tables of the lake and of Penstock are copied (``ducklake_*``, ``penstock_*``), with their
columns, keys and indexes; whatever else is in the schema is not ours.
"""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

from sqlalchemy import Connection, inspect, text
from sqlalchemy.schema import CreateSchema

from penstock.errors import CatalogCorrupt
from penstock.lake.catalog.engine import metadata_schema
from penstock.lake.naming import quote_identifier

_MANIFEST = "manifest.json"
_FORM = 1  # of the manifest
_CHUNK = 1 << 20  # bytes
_TYPE = re.compile(r"[\w .,()\[\]\"]+")
_COLUMNS = """
SELECT a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull
FROM pg_attribute a
JOIN pg_class c ON c.oid = a.attrelid
JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = :schema AND c.relname = :name AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY a.attnum
"""

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class _Table:
    """``columns`` are names, types and whether NOT NULL; ``indexes`` names, columns, unique."""

    name: str
    columns: tuple[tuple[str, str, bool], ...]
    key: tuple[str, ...]
    indexes: tuple[tuple[str, tuple[str, ...], bool], ...]


def copy_to(connection: Connection, target: Path, progress: Progress | None) -> None:
    """Copy what this transaction sees, which must be one state, to a new zip file."""
    schema = metadata_schema(connection) or "public"
    names = sorted(n for n in inspect(connection).get_table_names(schema) if is_ours(n))
    listed = [_described(connection, schema, name) for name in names]
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=3) as archive:
        manifest = {"form": _FORM, "kind": "postgres", "tables": [asdict(one) for one in listed]}
        archive.writestr(_MANIFEST, json.dumps(manifest, indent=1))
        for done, one in enumerate(listed, 1):
            with archive.open(_entry(one.name), "w", force_zip64=True) as out:
                _copy_out(connection, schema, one, out)
            if progress is not None:
                progress(done, len(listed))


def is_ours(name: str) -> bool:
    return name.startswith(("ducklake_", "penstock_"))


def _entry(name: str) -> str:
    return f"tables/{name}.copy"


def _described(connection: Connection, schema: str, name: str) -> _Table:
    rows = connection.execute(text(_COLUMNS), {"schema": schema, "name": name})
    columns = tuple((str(row[0]), str(row[1]), bool(row[2])) for row in rows)
    found = inspect(connection)
    indexes = tuple(
        (str(one["name"]), tuple(str(c) for c in one["column_names"]), bool(one["unique"]))
        for one in found.get_indexes(name, schema)
    )
    key = tuple(found.get_pk_constraint(name, schema)["constrained_columns"])
    return _Table(name, columns, key, indexes)


def _copy_out(connection: Connection, schema: str, one: _Table, out: IO[bytes]) -> None:
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
            connection.exec_driver_sql(_create(schema, one))
            with archive.open(_entry(one.name)) as content:
                _copy_in(connection, schema, one, content)
            for name, columns, unique in one.indexes:
                connection.exec_driver_sql(_index(schema, one.name, name, columns, unique))
            if progress is not None:
                progress(done, len(listed))


def read_manifest(archive: zipfile.ZipFile) -> tuple[_Table, ...]:
    """Raises CatalogCorrupt for what is no manifest of ours."""
    try:
        manifest = json.loads(archive.read(_MANIFEST))
        if manifest["form"] != _FORM:
            raise ValueError(f"form {manifest['form']}")
        return tuple(_table(one) for one in manifest["tables"])
    except (KeyError, TypeError, ValueError) as error:
        raise CatalogCorrupt(
            f"{archive.filename} is no backup of a catalog that this version knows ({error})",
            hint="check the path, or restore it with a newer version of Penstock",
        ) from error


def _table(one: Mapping[str, Any]) -> _Table:
    columns = tuple(
        (str(name), str(kind), bool(required)) for name, kind, required in one["columns"]
    )
    if not is_ours(one["name"]) or not all(_TYPE.fullmatch(kind) for _, kind, _ in columns):
        raise ValueError(f"table {one['name']}")
    indexes = tuple((str(n), tuple(c), bool(u)) for n, c, u in one["indexes"])
    return _Table(one["name"], columns, tuple(one["key"]), indexes)


def _create(schema: str, one: _Table) -> str:
    parts = [
        f"{quote_identifier(name)} {kind}{' NOT NULL' if required else ''}"
        for name, kind, required in one.columns
    ]
    if one.key:
        parts.append(f"PRIMARY KEY ({', '.join(map(quote_identifier, one.key))})")
    return f"CREATE TABLE {_qualified(schema, one.name)} ({', '.join(parts)})"


def _index(schema: str, table: str, name: str, columns: tuple[str, ...], unique: bool) -> str:
    listed = ", ".join(map(quote_identifier, columns))
    kind = "UNIQUE INDEX" if unique else "INDEX"
    return f"CREATE {kind} {quote_identifier(name)} ON {_qualified(schema, table)} ({listed})"


def _copy_in(connection: Connection, schema: str, one: _Table, content: IO[bytes]) -> None:
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
