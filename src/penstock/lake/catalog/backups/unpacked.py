"""A backup of a PostgreSQL catalog as a SQLite file, so that it can be read without a server."""

from __future__ import annotations

import re
import sqlite3
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import IO, Any

from penstock.errors import CatalogCorrupt
from penstock.lake.catalog.backups.packed import (
    PackedTable,
    create,
    entry,
    indexes,
    read_manifest,
)
from penstock.lake.format.naming import quote_identifier

_CHUNK = 5_000  # rows

Convert = Callable[[str], Any]


def unpack(source: Path, target: Path) -> None:
    """Make the new SQLite file ``target`` with the tables of a backup.

    Values that SQLite has no type for are PostgreSQL's text. Raises CatalogCorrupt.
    """
    try:
        with zipfile.ZipFile(source) as archive, closing(sqlite3.connect(target)) as connection:
            for one in read_manifest(archive):
                table = quote_identifier(one.name)
                connection.execute(create(table, one, lambda kind: _kind(kind)[0]))
                for statement in indexes(table, one):
                    connection.execute(statement)
                with archive.open(entry(one.name)) as content:
                    _fill(connection, one, content)
            connection.commit()
    except (zipfile.BadZipFile, UnicodeDecodeError, ValueError, KeyError) as error:
        raise CatalogCorrupt(
            f"{source} is no backup of a catalog, or only a part of one ({error})",
            hint="take another backup",
        ) from error


def _fill(connection: sqlite3.Connection, one: PackedTable, content: IO[bytes]) -> None:
    marks = ", ".join("?" for _ in one.columns)
    statement = f"INSERT INTO {quote_identifier(one.name)} VALUES ({marks})"
    converts = [_kind(kind)[1] for _, kind, _ in one.columns]
    for rows in _chunks(_rows(content, converts)):
        connection.executemany(statement, rows)


def _chunks(rows: Iterator[list[Any]]) -> Iterator[list[list[Any]]]:
    chunk: list[list[Any]] = []
    for row in rows:
        chunk.append(row)
        if len(chunk) == _CHUNK:
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
