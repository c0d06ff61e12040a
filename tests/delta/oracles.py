"""Other readers of Delta tables, to check everything against: DuckDB's extension, and delta-rs."""

from __future__ import annotations

import importlib
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder

Row = tuple[Any, ...]


@cache
def _duckdb() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(config={"threads": 1, "allow_unsigned_extensions": True})
    package = importlib.import_module("duckdb_extension_delta")
    folder = Path(package.__path__[0]) / "extensions" / f"v{duckdb.__version__}"
    connection.execute(f"LOAD '{folder / 'delta.duckdb_extension'}'")
    connection.execute("SET TimeZone = 'UTC'")
    return connection


def by_duckdb(uri: str, version: int, columns: str = "*") -> list[Row]:
    """The rows of a version, sorted."""
    query = f"SELECT {columns} FROM delta_scan('{uri}', version => {version})"
    return sort(map(tuple, _duckdb().sql(query).fetchall()))


def by_delta_rs(uri: str, version: int, columns: str = "*") -> list[Row]:
    """The rows of a version, sorted."""
    table = DeltaTable(uri, version=version)
    found = QueryBuilder().register("t", table).execute(f"SELECT {columns} FROM t").read_all()
    return rows_of(pa.table(found))


def rows_of(table: pa.Table) -> list[Row]:
    """The rows of an Arrow table, sorted."""
    return sort(tuple(row.values()) for row in table.to_pylist())


def sort(rows: Any) -> list[Row]:
    """Rows in an order that NULLs do not disturb."""
    return sorted(rows, key=repr)
