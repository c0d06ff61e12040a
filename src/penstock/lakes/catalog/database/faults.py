"""Errors of the databases, classified by their codes, never by their messages; and rows that the
format does not allow, found before they become a wrong result.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import Boolean, ColumnElement, Row, exc
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

from penstock.errors import (
    CatalogCancelled,
    CatalogCorrupt,
    CatalogError,
    CatalogFull,
    CatalogLocked,
    CatalogMissing,
    CatalogUnreachable,
    CatalogVersionUnsupported,
    LakeError,
    ReadOnlyLake,
)
from penstock.lakes.catalog.database.location import CatalogLocation


@dataclass(frozen=True, slots=True)
class Fault:
    """A kind of failure of a catalog's database, and the error that reports it."""

    error: type[LakeError]
    message: str
    hint: str
    server_hint: str = ""

    def __call__(self, where: CatalogLocation, detail: str) -> LakeError:
        hint = self.server_hint if self.server_hint and where.kind == "postgres" else self.hint
        return self.error(self.message.format(where=where, detail=detail), hint=hint)


_locked = Fault(
    CatalogLocked,
    "the catalog {where} is locked by another process ({detail})",
    "run again when it has finished",
)
# The server undoes the transaction, also where it was its COMMIT that was cancelled.
_cancelled = Fault(
    CatalogCancelled,
    "the server of the catalog {where} cancelled a statement ({detail}): its setting "
    "statement_timeout, or an administrator's pg_cancel_backend",
    "nothing was changed: run again; if it times out again, give the role more time: "
    "ALTER ROLE ... SET statement_timeout = '60s'",
)
_read_only = Fault(
    ReadOnlyLake,
    "the catalog {where} cannot be written ({detail})",
    "check its permissions, or attach it read-only",
)
_unreachable = Fault(
    CatalogUnreachable,
    "the catalog {where} cannot be opened ({detail})",
    "check the path, its permissions and its disk",
    "check that the server runs (its log says why it stopped: its disk may be full), "
    "its port, and the credentials",
)
_denied = Fault(
    CatalogUnreachable,
    "the server of the catalog {where} refuses the user or the password ({detail})",
    "check user and password of the catalog, and the variables that it names, such as PGPASSWORD",
)
_full = Fault(
    CatalogFull,
    "the disk of the catalog {where} is full ({detail})",
    "nothing was changed: free some space there and run again",
)
_corrupt = Fault(
    CatalogCorrupt,
    "the catalog {where} is damaged or is not a DuckLake ({detail})",
    "check that the path is right; restore it from a backup if it is",
)
_missing = Fault(
    CatalogMissing,
    "the database of the catalog {where} does not exist ({detail})",
    "create the database first; Penstock then creates the catalog in it",
)
_newer = Fault(
    CatalogVersionUnsupported,
    "the catalog {where} is a file that a newer DuckDB wrote ({detail})",
    "copy it with that DuckDB: ATTACH 'old' AS old; ATTACH 'new' AS new (STORAGE_VERSION "
    "'v1.5.0'); COPY FROM DATABASE old TO new. A lake that Penstock is to write is made with "
    "DUCKLAKE_VERSION '1.0'",
)
_hot_journal = Fault(
    CatalogUnreachable,
    "a writer of the catalog {where} was killed while it committed, and what it had begun "
    "cannot be undone by this user ({detail})",
    "nothing is lost: read it once as a user who may write to the file and its directory "
    "(`penstock status` will do), which undoes it",
)

# Extended result codes, https://sqlite.org/rescode.html
_SQLITE_EXTENDED: Mapping[int, Fault] = {
    776: _hot_journal,  # READONLY_ROLLBACK
    264: _hot_journal,  # READONLY_RECOVERY
}
# Primary ones.
_SQLITE: Mapping[int, Fault] = {
    1: _corrupt,  # ERROR: no such table or column, as all statements are ours
    3: _read_only,  # PERM
    5: _locked,  # BUSY
    6: _locked,  # LOCKED
    8: _read_only,  # READONLY
    10: _unreachable,  # IOERR
    11: _corrupt,  # CORRUPT
    13: _full,  # FULL
    14: _unreachable,  # CANTOPEN
    23: _unreachable,  # AUTH
    26: _corrupt,  # NOTADB
}

# SQLSTATE, whole or by its class, https://www.postgresql.org/docs/current/errcodes-appendix.html
_POSTGRES: Mapping[str, Fault] = {
    "55P03": _locked,  # lock_not_available
    "57014": _cancelled,  # query_canceled
    "25006": _read_only,  # read_only_sql_transaction
    "42501": _read_only,  # insufficient_privilege
    "3D000": _missing,  # invalid_catalog_name
    "3F000": _missing,  # invalid_schema_name
    "42P01": _corrupt,  # undefined_table
    "42703": _corrupt,  # undefined_column
    "08": _unreachable,
    "28": _denied,
    "53100": _full,  # disk_full
    "53": _unreachable,
    "57": _unreachable,
    "58": _unreachable,
}

# The kind of exception and the system's errno, if any. A file of another format is an IO error
# without a number; a table or column that our statement does not find means a damaged catalog.
_DUCKDB: Mapping[tuple[str, str | None], Fault] = {
    ("IO", "11"): _locked,  # EAGAIN
    ("IO", "1"): _read_only,  # EPERM
    ("IO", "30"): _read_only,  # EROFS
    ("IO", "28"): _full,  # ENOSPC
    ("IO", None): _corrupt,
    ("Binder", None): _corrupt,
    ("Catalog", None): _corrupt,
    ("Serialization", None): _corrupt,
    ("FATAL", None): _unreachable,
    ("INTERNAL", None): _unreachable,
}

# "DUCK" and the number of the storage version, after a checksum.
_MAGIC, _MAGIC_AT, _VERSION_AT = b"DUCK", 8, slice(12, 20)
_NEWEST_STORAGE = 68  # of DuckDB 1.5
# What libpq says before there is a connection, and so no SQLSTATE.
_DENIED = re.compile(
    r"password authentication failed|no password supplied|role .* does not exist|pg_hba\.conf"
)
_MAY_BE_FULL = frozenset({"IO", "FATAL", "TransactionContext"})
_LEAST_ROOM = 1 << 20  # bytes; DuckDB writes blocks of 256 KiB

_LOST_RACES = frozenset({"40001", "40P01"})  # serialization_failure, deadlock_detected


@contextmanager
def translating(where: CatalogLocation) -> Iterator[None]:
    """Turn the database's errors into LakeErrors; errors with other codes pass through."""
    try:
        yield
    except exc.DBAPIError as error:
        translated = translate(where, error)
        if translated is None:
            raise
        raise translated from error


def translate(where: CatalogLocation, error: exc.DBAPIError) -> LakeError | None:
    """The tree's error for one of the database's, if there is one."""
    detail = _first_line(error)
    code = getattr(error.orig, "sqlite_errorcode", None)
    if code is not None:
        fault = _SQLITE_EXTENDED.get(code) or _SQLITE.get(code & 0xFF)
        return None if fault is None else fault(where, detail)
    kind, number = duckdb_code(error.orig)
    if kind is not None:
        fault = _DUCKDB.get((kind, number)) or (_unreachable if kind == "IO" else None)
        if kind in _MAY_BE_FULL and number is None and _has_no_room(where):
            fault = _full
        newer = _newer_storage(where) if (kind, number) == ("IO", None) else None
        if newer is not None:
            return _newer(where, newer)
        return None if fault is None else fault(where, _said(error.orig))
    state = sql_state(error)
    if state is None:
        lost = error.connection_invalidated or isinstance(error, exc.OperationalError)
        if lost and _DENIED.search(detail):
            return _denied(where, detail)
        return _unreachable(where, detail) if lost else None
    fault = _POSTGRES.get(state) or _POSTGRES.get(state[:2])
    return None if fault is None else fault(where, detail)


def _has_no_room(where: CatalogLocation) -> bool:
    """Return whether a checkpoint found the disk full, for which DuckDB has no error number."""
    try:
        return shutil.disk_usage(Path(where.target).parent).free < _LEAST_ROOM
    except OSError:
        return False


def _newer_storage(where: CatalogLocation) -> str | None:
    """The storage version of a DuckDB file that DuckDB 1.5 does not read; ``None`` for others."""
    try:
        with Path(where.target).open("rb") as file:
            head = file.read(_VERSION_AT.stop)
    except OSError:
        return None
    version = int.from_bytes(head[_VERSION_AT], "little")
    if head[_MAGIC_AT : _VERSION_AT.start] != _MAGIC or version <= _NEWEST_STORAGE:
        return None
    return f"its storage version is {version}; DuckDB 1.5 reads up to {_NEWEST_STORAGE}"


def duckdb_code(error: BaseException | None) -> tuple[str | None, str | None]:
    """DuckDB's kind of error and the system's number, if any; two ``None`` for others' errors."""
    said = _duckdb_json(error)
    return said.get("exception_type"), said.get("errno")


def _duckdb_json(error: BaseException | None) -> Mapping[str, str]:
    """Return what DuckDB says when it is asked for JSON; the kind's name stands in front of it."""
    text = str(error)
    try:
        said = json.loads(text[text.index("{") :])
    except ValueError:
        return {}
    return said if isinstance(said, dict) else {}


def _said(error: BaseException | None) -> str:
    return (_duckdb_json(error).get("exception_message") or str(error)).splitlines()[0]


def sql_state(error: exc.DBAPIError) -> str | None:
    state = getattr(error.orig, "sqlstate", None)
    return state if isinstance(state, str) else None


def lost_race(error: exc.DBAPIError) -> bool:
    """Return whether the transaction failed only because another one was quicker."""
    return sql_state(error) in _LOST_RACES


def busy(error: exc.DBAPIError) -> bool:
    """Return whether SQLite waited for a lock in vain."""
    code: int | None = getattr(error.orig, "sqlite_errorcode", None)
    return code is not None and code & 0xFF == 5


def locked(where: CatalogLocation, error: exc.DBAPIError) -> LakeError:
    """The error for a transaction that is `busy`."""
    return _locked(where, _first_line(error))


def connection_lost(error: exc.DBAPIError) -> bool:
    """Return whether the server may have gone on without us, so that the
    outcome of COMMIT is open.
    """
    code: int | None = getattr(error.orig, "sqlite_errorcode", None)
    if code is not None:
        return code & 0xFF == 10  # IOERR: the file may or may not hold the commit
    kind, _ = duckdb_code(error.orig)
    if kind is not None:
        return kind in {"IO", "FATAL", "INTERNAL"}
    state = sql_state(error)
    if state == "57014":  # query_canceled: by a running server, which has undone it
        return False
    return state is None or state[:2] in {"08", "57", "58"}


def corrupt(where: CatalogLocation, what: str) -> CatalogError:
    """The error for a row that the format does not allow."""
    error = _corrupt(where, what)
    assert isinstance(error, CatalogError)
    return error


def _first_line(error: exc.DBAPIError) -> str:
    lines = str(error.orig).strip().splitlines()
    return lines[0] if lines else type(error.orig).__name__


Record = Row[*tuple[Any, ...]]

_NUMBER: frozenset[type] = frozenset({int})
_OR_NULL = _NUMBER | {type(None)}


class NoNumber(FunctionElement[bool]):
    """Test that a BIGINT is not a number: NULL, or on SQLite, which stores any value, text."""

    type = Boolean()
    inherit_cache = True
    name = "no_number"

    def __init__(self, column: ColumnElement[Any]) -> None:
        super().__init__(column)


@compiles(NoNumber)
def _is_null(element: NoNumber, compiler: SQLCompiler, **kw: Any) -> str:
    return f"({compiler.process(*element.clauses, **kw)} IS NULL)"


@compiles(NoNumber, "sqlite")
def _is_no_integer(element: NoNumber, compiler: SQLCompiler, **kw: Any) -> str:
    return f"(typeof({compiler.process(*element.clauses, **kw)}) <> 'integer')"


def check(
    row: Record, what: str, *, numbers: Sequence[str] = (), texts: Sequence[str] = ()
) -> None:
    """Raise CatalogCorrupt unless each of ``numbers`` is an integer and each of ``texts`` a text.

    ``what`` names the row. SQLite stores any value in any column.
    """
    kinds = ((numbers, int, "a number"), (texts, str, "a text"))
    for names, kind, called in kinds:
        for name in names:
            value = getattr(row, name)
            if not isinstance(value, kind):
                raise damaged(f"{what} has {_shown(value)} as its {name}, where {called} must be")


def column_of(rows: Sequence[Record], name: str) -> list[Any]:
    """A column of all rows: for 100,000 rows, reading columns is three times as fast."""
    at = rows[0]._fields.index(name) if rows else 0
    return [row[at] for row in rows]


def check_counts(
    rows: Sequence[Record],
    what: Callable[[Record], str],
    *,
    numbers: Sequence[str] = (),
    optional: Sequence[str] = (),
    labels: Mapping[str, str] | None = None,
) -> None:
    """Raise CatalogCorrupt unless ``numbers`` are integers and not negative; ``optional`` or NULL.

    For many rows: column by column, and ``what`` names a row only when it is damaged. ``labels``
    has what the catalog calls columns that have other names in the rows.
    """
    for names, kinds in ((numbers, _NUMBER), (optional, _OR_NULL)):
        for name in names:
            values = column_of(rows, name)
            bad = set(map(type, values)) - kinds
            if not bad and min(filter(None, values), default=0) >= 0:
                continue
            row, value = next(
                (row, value)
                for row, value in zip(rows, values, strict=True)
                if type(value) not in kinds or (value is not None and value < 0)
            )
            shown, called = _shown(value), (labels or {}).get(name, name)
            raise damaged(f"{what(row)} has {shown} as its {called}, where a number must be")


def check_begin(rows: Iterable[Record], table: str, key: str) -> None:
    """Raise CatalogCorrupt for a row of `visible` that does not say when it began.

    ``key`` is the column by which the row is named.
    """
    for row in rows:
        if not isinstance(row.begin_snapshot, int):
            check(row, f"row {getattr(row, key)} of ducklake_{table}", numbers=("begin_snapshot",))


def check_column(
    values: Sequence[Any], table: str, name: str, *, optional: bool = False
) -> Sequence[Any]:
    """``values`` of a column of ``table``.

    Raises CatalogCorrupt unless all are integers, or NULL where that may be.
    """
    kinds = _OR_NULL if optional else _NUMBER
    if set(map(type, values)) - kinds:
        bad = next(value for value in values if type(value) not in kinds)
        raise damaged(f"{table} has {_shown(bad)} as a {name}, where a number must be")
    return values


def check_unique(names: Iterable[str], what: str) -> None:
    """Raise CatalogCorrupt when two of ``names`` are the same; letter case counts."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise damaged(f"{what} {name!r} is there twice at one snapshot")
        seen.add(name)


def damaged(what: str) -> CatalogCorrupt:
    return CatalogCorrupt(
        f"the catalog is damaged: {what}", hint="restore the catalog from a backup"
    )


def _shown(value: Any) -> str:
    return "NULL" if value is None else repr(value)
