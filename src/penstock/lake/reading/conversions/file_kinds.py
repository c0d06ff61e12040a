"""Which columns of Parquet files Spark reads as a table's type by itself, and which it does not.

A *kind* is the name of the DuckLake type that a file's column holds, whatever the table says: files
that are older than a promotion, or were added from elsewhere, hold others than the table's. Beside
the types' names there are `INT96`, `MILLISECONDS` and what Parquet has and the format has not.
Measured with Spark 4.3 and DuckDB 1.5.5.
"""

from __future__ import annotations

from collections.abc import Mapping

from penstock.lake.format.types import parse
from penstock.lake.format.values.bounds import base_type

__all__ = ["INT96", "MILLISECONDS", "NANOSECONDS_IN_UTC", "may_differ", "reads_itself"]

INT96 = "int96"
MILLISECONDS = "milliseconds"  # a timestamp without a zone in this unit
NANOSECONDS_IN_UTC = "timestamptz in nanoseconds"

_SMALL = ("int8", "uint8", "int16", "uint16", "int32")
_TEXTS = frozenset({"varchar", "json"})

# Kinds that Spark reads rightly as what it reads files of the table's type with.
_ITSELF: Mapping[str, frozenset[str]] = {
    "int16": frozenset({"int8", "uint8", "int16"}),
    "uint8": frozenset({"uint8", "int16"}),
    "int32": frozenset(_SMALL),
    "uint16": frozenset({"uint8", "uint16", "int32"}),
    "int64": frozenset({*_SMALL, "uint32", "int64"}),
    "uint32": frozenset({"uint8", "uint16", "uint32", "int64"}),
    "uint64": frozenset({"uint64", "decimal"}),
    "int128": frozenset({"float64"}),
    "uint128": frozenset({"float64"}),
    "float64": frozenset({"float32", "float64"}),
    "timestamp": frozenset({"timestamp", INT96}),
    "timestamp_s": frozenset({"timestamp", INT96}),
    "timestamp_ms": frozenset({"timestamp", INT96}),
    "timestamptz": frozenset({"timestamptz", INT96}),
    "varchar": _TEXTS,
    "json": _TEXTS,
    "uuid": frozenset({"uuid", "varchar"}),
    "blob": frozenset({"blob", "varchar", "json", "geometry"}),
    "geometry": frozenset({"geometry", "blob"}),
}


def reads_itself(kind: str, type_text: str) -> bool:
    """Whether a column of ``kind`` needs nothing done to be one of the table's type."""
    table, file = parse(type_text), parse(kind)
    if table.name == "decimal" and file.name == "decimal":
        more = (table.precision or 0) - (table.scale or 0)
        have = (file.precision or 0) - (file.scale or 0)
        return have <= more and (file.scale or 0) <= (table.scale or 0)
    return file.name in _ITSELF.get(table.name, {table.name})


def may_differ(type_text: str) -> bool:
    """Whether files may hold a form of this very type that Spark does not read by itself.

    Milliseconds are what DuckDB stores a ``timestamp_ms`` in: Spark fails on an infinite one.
    """
    return base_type(type_text) == "timestamp_ms"
