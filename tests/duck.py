"""The real DuckDB with its ducklake extension, to check everything against.

The extensions come as Python packages: nothing is downloaded, and none of them is unsigned.

DuckDB brings its own SQLite, and two SQLite libraries in one process undo each other's file locks
(https://sqlite.org/howtocorrupt.html, 2.2.1). So on a SQLite catalog let DuckDB and Penstock take
turns within a process; to run them at the same time, give DuckDB a process of its own.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import pytest

_PACKAGES = ("ducklake", "sqlite_scanner", "postgres_scanner")


def connect() -> duckdb.DuckDBPyConnection:
    """An in-memory DuckDB that can attach lakes on SQLite and PostgreSQL.

    With more than one thread its ``table_changes`` calls, once in some hundred times, the postimage
    of an update an insert (seen with 1.5.5).
    """
    _check_signatures()
    connection = _loaded(unsigned=True)
    connection.execute("SET TimeZone = 'UTC'")
    return connection


@cache
def _check_signatures() -> None:
    """Once in a process: DuckDB hashes 100 MB for it, 0.4 seconds of each of a thousand lakes."""
    _loaded(unsigned=False).close()


def _loaded(*, unsigned: bool) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(config={"threads": 1, "allow_unsigned_extensions": unsigned})
    for name in _PACKAGES:
        package = importlib.import_module(f"duckdb_extension_{name}")
        folder = Path(package.__path__[0]) / "extensions" / f"v{duckdb.__version__}"
        connection.execute(f"LOAD '{folder / name}.duckdb_extension'")
    return connection


def attach(
    uri: str, data_path: str | Path | None = None, *, inline: int = 0, **options: Any
) -> duckdb.DuckDBPyConnection:
    """A DuckDB with the lake at ``uri`` attached as ``lk`` and in use.

    ``inline`` is the number of rows from which on an insert makes a file (0: always a file).
    """
    settings = {"data_inlining_row_limit": inline, **options}
    if data_path is not None:
        settings["data_path"] = f"{data_path}/"
    connection = connect()
    connection.execute(_attach(uri, settings))
    connection.execute("USE lk")
    return connection


def _attach(uri: str, settings: Mapping[str, Any]) -> str:
    listed = ", ".join(f"{key} {_literal(value)}" for key, value in settings.items())
    return f"ATTACH {_literal(uri)} AS lk" + (f" ({listed})" if listed else "")


def _literal(value: object) -> str:
    if isinstance(value, bool | int):
        return str(value)
    return "'" + str(value).replace("'", "''") + "'"


def rows(uri: str, query: str, *, order: bool = True, **options: Any) -> list[tuple[Any, ...]]:
    """The rows of one query on the lake at ``uri``, freshly attached as ``lk``.

    Sorted, as sets of rows compare, unless ``order`` is off.
    """
    cursor = _shared().cursor()
    try:
        cursor.execute(_attach(uri, options))
        cursor.execute("USE lk")
        found = cursor.execute(query).fetchall()
    finally:
        cursor.execute("USE memory")
        cursor.execute("DETACH DATABASE IF EXISTS lk")
        cursor.close()
    return sorted(found, key=repr) if order else found


@cache
def _shared() -> duckdb.DuckDBPyConnection:
    """Loading the extensions takes longer than most queries."""
    return connect()


def available() -> bool:
    try:
        connect().close()
    except (ImportError, duckdb.Error):
        return False
    return True


def required() -> None:
    """Skip, saying why, where the extensions cannot be loaded."""
    if not available():
        pytest.skip("the duckdb extra is not installed: pip install 'penstock-spark[duckdb]'")
