"""A PostgreSQL catalog copied to a zip file and back, and read from there without a server.

The zip file has a manifest and, for each table, the text of COPY. Only tables of the lake and of
Penstock are in it (``ducklake_*``, ``penstock_*``), with their columns, keys and indexes; whatever
else is in the schema is not ours. `unpack` makes a SQLite file of it.
"""

from __future__ import annotations

import json
import re
import sqlite3
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

from sqlalchemy import Connection, inspect, text
from sqlalchemy.schema import CreateSchema

from penstock.errors import CatalogCorrupt
from penstock.lake.catalog.backups.across import Progress, is_ours
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
        for done, packed in enumerate(listed, 1):
            with archive.open(entry(packed.name), "w", force_zip64=True) as out:
                _copy_out(connection, schema, packed, out)
            if progress is not None:
                progress(done, len(listed))


def _described(connection: Connection, schema: str, name: str) -> PackedTable:
    rows = connection.execute(text(_COLUMNS), {"schema": schema, "name": name})
    columns = tuple((str(row[0]), str(row[1]), bool(row[2])) for row in rows)
    inspector = inspect(connection)
    indexes = tuple(
        (str(index["name"]), tuple(str(c) for c in index["column_names"]), bool(index["unique"]))
        for index in inspector.get_indexes(name, schema)
    )
    key = tuple(inspector.get_pk_constraint(name, schema)["constrained_columns"])
    return PackedTable(name, columns, key, indexes)


def _copy_out(connection: Connection, schema: str, packed: PackedTable, out: IO[bytes]) -> None:
    columns = ", ".join(quote_identifier(name) for name, *_ in packed.columns)
    statement = f"COPY {_qualified(schema, packed.name)} ({columns}) TO STDOUT"
    with _cursor(connection) as cursor, cursor.copy(statement) as copy:
        for chunk in copy:
            out.write(chunk)


def copy_from(connection: Connection, source: Path, progress: Progress | None) -> None:
    """Make the tables of a backup in the metadata schema, within a transaction that writes."""
    schema = metadata_schema(connection) or "public"
    connection.execute(CreateSchema(schema, if_not_exists=True))
    with zipfile.ZipFile(source) as archive:
        listed = read_manifest(archive)
        for done, packed in enumerate(listed, 1):
            table = _qualified(schema, packed.name)
            connection.exec_driver_sql(create(table, packed))
            with archive.open(entry(packed.name)) as content:
                _copy_in(connection, schema, packed, content)
            for statement in indexes(table, packed):
                connection.exec_driver_sql(statement)
            if progress is not None:
                progress(done, len(listed))


def _copy_in(connection: Connection, schema: str, packed: PackedTable, content: IO[bytes]) -> None:
    columns = ", ".join(quote_identifier(name) for name, *_ in packed.columns)
    statement = f"COPY {_qualified(schema, packed.name)} ({columns}) FROM STDIN"
    with _cursor(connection) as cursor, cursor.copy(statement) as copy:
        while chunk := content.read(_CHUNK):
            copy.write(chunk)


def _qualified(schema: str, name: str) -> str:
    return f"{quote_identifier(schema)}.{quote_identifier(name)}"


def _cursor(connection: Connection) -> Any:
    """The driver's own cursor: COPY is beyond SQLAlchemy."""
    raw: Any = connection.connection.driver_connection
    return raw.cursor()


_MANIFEST = "manifest.json"
_FORM = 1  # of the manifest
_TYPE = re.compile(r"[\w .,()\[\]\"]+")


@dataclass(frozen=True, slots=True)
class PackedTable:
    """``columns`` are names, types and whether NOT NULL; ``indexes`` names, columns, unique."""

    name: str
    columns: tuple[tuple[str, str, bool], ...]
    key: tuple[str, ...]
    indexes: tuple[tuple[str, tuple[str, ...], bool], ...]


def entry(name: str) -> str:
    """The name of a table's rows in the archive."""
    return f"tables/{name}.copy"


def write_manifest(archive: zipfile.ZipFile, listed: Sequence[PackedTable]) -> None:
    manifest = {"form": _FORM, "kind": "postgres", "tables": [asdict(packed) for packed in listed]}
    archive.writestr(_MANIFEST, json.dumps(manifest, indent=1))


def read_manifest(archive: zipfile.ZipFile) -> tuple[PackedTable, ...]:
    """The tables in the manifest of a backup. Raises CatalogCorrupt for another file."""
    try:
        manifest = json.loads(archive.read(_MANIFEST))
        if manifest["form"] != _FORM:
            raise ValueError(f"form {manifest['form']}")
        return tuple(_table(described) for described in manifest["tables"])
    except (KeyError, TypeError, ValueError) as error:
        raise CatalogCorrupt(
            f"{archive.filename} is not a backup of a catalog that this version knows ({error})",
            hint="check the path, or restore it with a newer version of Penstock",
        ) from error


def _table(described: Mapping[str, Any]) -> PackedTable:
    columns = tuple(
        (str(name), str(kind), bool(required)) for name, kind, required in described["columns"]
    )
    if not is_ours(described["name"]) or not all(_TYPE.fullmatch(kind) for _, kind, _ in columns):
        raise ValueError(f"table {described['name']}")
    indexes = tuple((str(n), tuple(c), bool(u)) for n, c, u in described["indexes"])
    return PackedTable(described["name"], columns, tuple(described["key"]), indexes)


def create(table: str, packed: PackedTable, kind_of: Callable[[str], str] = str) -> str:
    """The CREATE TABLE statement for ``table``; ``kind_of`` translates PostgreSQL's types."""
    parts = [
        f"{quote_identifier(name)} {kind_of(kind)}{' NOT NULL' if required else ''}"
        for name, kind, required in packed.columns
    ]
    if packed.key:
        parts.append(f"PRIMARY KEY ({', '.join(map(quote_identifier, packed.key))})")
    return f"CREATE TABLE {table} ({', '.join(parts)})"


def indexes(table: str, packed: PackedTable) -> Iterator[str]:
    """The CREATE INDEX statements for ``table``."""
    for name, columns, unique in packed.indexes:
        listed = ", ".join(map(quote_identifier, columns))
        kind = "UNIQUE INDEX" if unique else "INDEX"
        yield f"CREATE {kind} {quote_identifier(name)} ON {table} ({listed})"


_ROWS_AT_A_TIME = 5_000  # rows
Convert = Callable[[str], Any]


def unpack(source: Path, target: Path) -> None:
    """Make the new SQLite file ``target`` with the tables of a backup.

    Values that SQLite has no type for are PostgreSQL's text. Raises CatalogCorrupt.
    """
    try:
        with zipfile.ZipFile(source) as archive, closing(sqlite3.connect(target)) as connection:
            for packed in read_manifest(archive):
                table = quote_identifier(packed.name)
                connection.execute(create(table, packed, lambda kind: _kind(kind)[0]))
                for statement in indexes(table, packed):
                    connection.execute(statement)
                with archive.open(entry(packed.name)) as content:
                    _fill(connection, packed, content)
            connection.commit()
    except (zipfile.BadZipFile, UnicodeDecodeError, ValueError, KeyError) as error:
        raise CatalogCorrupt(
            f"{source} is not a backup of a catalog, or only a part of one ({error})",
            hint="take another backup",
        ) from error


def _fill(connection: sqlite3.Connection, packed: PackedTable, content: IO[bytes]) -> None:
    marks = ", ".join("?" for _ in packed.columns)
    statement = f"INSERT INTO {quote_identifier(packed.name)} VALUES ({marks})"
    converts = [_kind(kind)[1] for _, kind, _ in packed.columns]
    for rows in _chunks(_rows(content, converts)):
        connection.executemany(statement, rows)


def _chunks(rows: Iterator[list[Any]]) -> Iterator[list[list[Any]]]:
    chunk: list[list[Any]] = []
    for row in rows:
        chunk.append(row)
        if len(chunk) == _ROWS_AT_A_TIME:
            yield chunk
            chunk = []
    yield chunk


def _rows(content: IO[bytes], converts: list[Convert]) -> Iterator[list[Any]]:
    r"""COPY's text: a line for a row, tabs between, ``\N`` for NULL."""
    for line in content:
        fields = line.decode().removesuffix("\n").split("\t")
        pairs = zip(converts, fields, strict=True)
        yield [None if field == r"\N" else convert(_plain(field)) for convert, field in pairs]


_ESCAPED = re.compile(r"\\(x[0-9a-fA-F]{1,2}|[0-7]{1,3}|.)", re.S)
_CHARACTERS = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


def _plain(field: str) -> str:
    return _ESCAPED.sub(_character, field) if "\\" in field else field


def _character(match: re.Match[str]) -> str:
    code = match[1]
    if code[0] == "x" and len(code) > 1:
        return chr(int(code[1:], 16))
    return chr(int(code, 8)) if code.isdigit() else _CHARACTERS.get(code, code)


def _bytes(text: str) -> bytes:
    return bytes.fromhex(text.removeprefix("\\x"))


_KINDS: Mapping[str, tuple[str, Convert]] = {
    **dict.fromkeys(("bigint", "integer", "smallint"), ("BIGINT", int)),
    "boolean": ("BIGINT", lambda text: int(text == "t")),
    "bytea": ("BLOB", _bytes),
}


def _kind(kind: str) -> tuple[str, Convert]:
    """SQLite's type for one of PostgreSQL's, and its values from COPY's text."""
    return _KINDS.get(kind, ("VARCHAR", str))
