"""Which columns of a Parquet file may be added to which columns of a table.

The table of the documents ("Adding Files", Type Mapping) and what DuckDB 1.5.5 takes beyond it
(measured), without what it takes by mistake: times in milliseconds as whole numbers, bit strings as
text, half floats as bytes.
"""

from __future__ import annotations

from collections.abc import Mapping

from penstock.lake.format.values.bounds import base_type
from penstock.lake.reading.conversions.file_kinds import (
    INT96,
    MILLISECONDS,
    NANOSECONDS_IN_UTC,
    reads_itself,
)

_MOMENTS = ("timestamp", MILLISECONDS, INT96)

# By the table's type: the kinds of `penstock.lake.reading.conversions.file_kinds`, its own first.
_ACCEPTED: Mapping[str, tuple[str, ...]] = {
    "boolean": ("boolean",),
    "int8": ("int8",),
    "int16": ("int16", "int8", "uint8"),
    "int32": ("int32", "int16", "int8", "uint16", "uint8"),
    "int64": ("int64", "int32", "int16", "int8", "uint32", "uint16", "uint8"),
    "uint8": ("uint8",),
    "uint16": ("uint16", "uint8"),
    "uint32": ("uint32", "uint16", "uint8"),
    "uint64": ("uint64", "uint32", "uint16", "uint8"),
    "float32": ("float32",),
    "float64": ("float64", "float32"),
    "varchar": ("varchar",),
    "json": ("json",),
    "blob": ("blob",),
    "uuid": ("uuid",),
    "date": ("date",),
    "time": ("time",),
    "timestamp": (*_MOMENTS, "timestamp_ns"),
    "timestamp_s": _MOMENTS,
    "timestamp_ms": _MOMENTS,
    "timestamp_ns": ("timestamp_ns", *_MOMENTS),
    "timestamptz": ("timestamptz", NANOSECONDS_IN_UTC),
    "interval": ("interval",),
}
_NANOSECONDS = frozenset({"timestamp_ns", NANOSECONDS_IN_UTC})
_COARSE = frozenset({"timestamp_s", "timestamp_ms"})


def accepts(kind: str, type_text: str) -> bool:
    """Whether a file's column of ``kind`` holds only values of the table's type.

    A decimal must have room before and after the point: ``P' <= P and S' <= S``, as the documents
    have it, would let 999999.99 into a decimal(8,6).
    """
    if base_type(type_text) == "decimal":
        return base_type(kind) == "decimal" and reads_itself(kind, type_text)
    return kind in _ACCEPTED.get(base_type(type_text), ())


def accepted(type_text: str) -> str:
    """What `accepts` takes, in words."""
    if base_type(type_text) == "decimal":
        return f"{type_text} or a decimal that fits into it"
    return ", ".join(_ACCEPTED.get(base_type(type_text), ())) or "no column of any type"


def keeps_bounds(kind: str, type_text: str) -> bool:
    """Whether the file's bounds are the column's: finer times are cut when they are read."""
    table = base_type(type_text)
    if kind in _NANOSECONDS:
        return table == "timestamp_ns"
    return not (table in _COARSE and kind == "timestamp")
