"""The types of an inlined table's columns on each database, and how values go into them.

DuckDB stores a value natively where the database has a type for all values of its own, as text
elsewhere; on PostgreSQL text goes into bytes, since its text holds no NUL (measured with 1.5.5).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from penstock.lake.format.naming import quote_identifier
from penstock.lake.format.schema import Column
from penstock.lake.format.values.bounds import base_type, bound_to_text

_SQLITE = dict.fromkeys(
    ("boolean", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32"), "BIGINT"
) | {"blob": "BLOB"}

_POSTGRES = {
    "boolean": "BOOLEAN",
    "int8": "SMALLINT",
    "int16": "SMALLINT",
    "int32": "INTEGER",
    "int64": "BIGINT",
    "uint8": "INTEGER",
    "uint16": "INTEGER",
    "uint32": "BIGINT",
    "float32": "REAL",
    "float64": "DOUBLE PRECISION",
    "time": "TIME",
    "timetz": "TIMETZ",
    "uuid": "UUID",
    "interval": "INTERVAL",
    **dict.fromkeys(("varchar", "json", "blob"), "BYTEA"),
}

_DUCKDB = {
    "boolean": "BOOLEAN",
    "int8": "TINYINT",
    "int16": "SMALLINT",
    "int32": "INTEGER",
    "int64": "BIGINT",
    "uint8": "UTINYINT",
    "uint16": "USMALLINT",
    "uint32": "UINTEGER",
    "uint64": "UBIGINT",
    "int128": "HUGEINT",
    "uint128": "UHUGEINT",
    "float32": "FLOAT",
    "float64": "DOUBLE",
    "timetz": "TIME WITH TIME ZONE",
    "timestamptz": "TIMESTAMP WITH TIME ZONE",
    **{
        name: name.upper()
        for name in (
            *("date", "time", "timestamp", "timestamp_s", "timestamp_ms", "timestamp_ns"),
            *("varchar", "json", "uuid", "blob", "interval"),
        )
    },
}


def storage_type(column: Column, dialect: str) -> str:
    """The type of a column of an inlined table, as this database spells it."""
    return _TYPES[dialect](column)


def _on_sqlite(column: Column) -> str:
    return _SQLITE.get(base_type(column.type), "VARCHAR")


def _on_postgres(column: Column) -> str:
    if base_type(column.type) == "decimal":
        return column.type.lower().replace("decimal", "NUMERIC")
    return _POSTGRES.get(base_type(column.type), "VARCHAR")


def _on_duckdb(column: Column) -> str:
    if column.type == "list":
        return f"{_on_duckdb(column.children[0])}[]"
    if column.type == "map":
        return f"MAP({', '.join(map(_on_duckdb, column.children))})"
    if column.type == "struct":
        fields = (f"{quote_identifier(c.name)} {_on_duckdb(c)}" for c in column.children)
        return f"STRUCT({', '.join(fields)})"
    if base_type(column.type) == "decimal":
        return column.type.upper()
    return _DUCKDB[base_type(column.type)]


_TYPES: Mapping[str, Callable[[Column], str]] = {
    "sqlite": _on_sqlite,
    "postgresql": _on_postgres,
    "duckdb": _on_duckdb,
}


def placeholder(column: Column, dialect: str) -> str:
    """What stands for a value in an INSERT, ``?`` for the parameter."""
    return f"CAST(? AS {_on_duckdb(column)})" if dialect == "duckdb" else "?"


def bound(value: Any, column: Column, dialect: str) -> Any:
    """A value as `inlined.text` stores it, for the parameter."""
    if value is None:
        return None
    kind = base_type(column.type)
    if dialect == "sqlite" and kind in {"float32", "float64"}:
        return bound_to_text(column.type, value) or "nan"
    if dialect == "sqlite" and kind == "boolean":
        return int(value)
    if dialect == "postgresql" and kind in {"varchar", "json"}:
        return value.encode()
    return value
