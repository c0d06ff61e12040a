"""Partition transforms, values and directories, and partition values as the catalog's text.

A bucket is ``(murmur3_32(v) & INT_MAX) % N``, the hash over the bytes that Iceberg names: whole
numbers and dates (days) as 8 bytes, little endian, strings as UTF-8. Measured against the real
extension; other types have no buckets.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import math
import re
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from penstock.errors import ColumnNotFound, UnsupportedFeature
from penstock.lakes.format.files import PartitionField
from penstock.lakes.format.naming import fold, names_of
from penstock.lakes.format.schema import Column, TableSchema
from penstock.lakes.format.values.bounds import base_type, bound_to_text, partition_to_text

NULL_DIRECTORY = "__HIVE_DEFAULT_PARTITION__"
# The longest file name that file systems allow, in bytes; the real extension fails beyond it.
_LONGEST_NAME = 255
_BUCKET = re.compile(r"bucket\(\s*(\d+)\s*\)")
_TRANSFORM = re.compile(r"\s*(\w+)\s*\(\s*(.*?)\s*\)\s*", re.DOTALL)
_TIMES = frozenset({"timestamp", "timestamp_s", "timestamp_ms", "timestamptz"})
_WHOLE = frozenset({"int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"})
_PLAIN = frozenset({"boolean", "float32", "float64", "decimal", "date", "varchar", "json", "uuid"})
_ANY = _TIMES | _WHOLE | _PLAIN
# Which types a transform takes, as DuckDB 1.5.5 has them (measured), of those that Spark writes.
_TAKES: Mapping[str, frozenset[str]] = {
    "identity": _ANY,
    "bucket": _ANY | {"blob"},
    **dict.fromkeys(("year", "month", "day"), _TIMES | {"date"}),
    "hour": _TIMES | {"date"},
}


@dataclass(frozen=True, slots=True)
class PartitionKey:
    """One key of a partitioning: a transform of a column. ``buckets``: of ``bucket(N)``, else 0."""

    column: Column
    transform: str = "identity"  # without its argument
    buckets: int = 0


def partition_keys(
    schema: TableSchema, fields: Sequence[PartitionField]
) -> tuple[PartitionKey, ...]:
    """The keys of a partitioning, in their order.

    Raises UnsupportedFeature naming a transform or a type that is not written, ColumnNotFound
    naming the column.
    """
    return tuple(_key(schema, field) for field in fields)


def partition_columns(schema: TableSchema, fields: Sequence[PartitionField]) -> tuple[Column, ...]:
    """The columns that a partitioning refers to, in key order; raises as `partition_keys`."""
    return tuple(key.column for key in partition_keys(schema, fields))


def partition_fields(schema: TableSchema, texts: str | Sequence[str]) -> tuple[PartitionField, ...]:
    """Keys as texts have them: a column's name as it stands, ``year(at)``, ``bucket(8, id)``."""
    return tuple(
        PartitionField(text) if schema.find(text) else parse_partition_field(text)
        for text in names_of(texts, "partition_by")
    )


def parse_partition_field(text: str) -> PartitionField:
    """``country``, ``year(at)`` or ``bucket(8, id)``; anything else is a column's name."""
    match = _TRANSFORM.fullmatch(text)
    name = match[1].lower() if match else ""
    if match is None or name not in _TAKES or name == "identity":
        return PartitionField(text)
    if name != "bucket":
        return PartitionField(match[2], name)
    count, _, column = match[2].partition(",")
    return PartitionField(column.strip(), f"bucket({count.strip()})")


def _key(schema: TableSchema, field: PartitionField) -> PartitionKey:
    bucket = _BUCKET.fullmatch(field.transform)
    name = "bucket" if bucket else field.transform
    column = schema.find(field.column)
    if column is None or column.children:
        raise ColumnNotFound(
            f"no column {field.column!r} to partition by",
            hint=f"the columns are {', '.join(schema.names)}",
            data={"column": field.column},
        )
    buckets = int(bucket[1]) if bucket else 0
    if name not in _TAKES or (bucket and not buckets):
        raise _not_written(field, "transforms are year, month, day, hour and bucket(N)")
    if base_type(column.type) not in _TAKES[name]:
        takes = ", ".join(sorted(_TAKES[name]))
        raise _not_written(field, f"{column.name} is {column.type}, it takes {takes}")
    return PartitionKey(column, name, buckets)


def _not_written(field: PartitionField, hint: str) -> UnsupportedFeature:
    return UnsupportedFeature(
        f"partitioning by {field.transform}({field.column}) is not written",
        hint=hint,
        data={"column": field.column, "transform": field.transform},
    )


def partition_value(column: Column, value: object) -> str | None:
    """The text that the catalog stores for a partition value; NULL stays NULL."""
    return partition_to_text(column.type, value)


def directory_names(keys: Sequence[PartitionKey]) -> list[str]:
    """The keys' names in directories: the column or the transform, as in the real extension.

    If an earlier key has the name, the column's name is appended: ``bucket=5/bucket_id=0``.
    """
    names: list[str] = []
    for key in keys:
        name = key.column.name if key.transform == "identity" else key.transform
        taken = {fold(earlier) for earlier in names}
        names.append(f"{name}_{key.column.name}" if fold(name) in taken else name)
    return names


def hive_segment(column: str, value: str | None) -> str:
    """One directory, ``country=a%2Fb``, escaped as the real extension does.

    A name that is too long for file systems, where the extension fails, ends in a digest.
    """
    name = f"{_escape(column)}={NULL_DIRECTORY if value is None else _escape(value)}"
    if len(name) <= _LONGEST_NAME:
        return name
    return f"{name[:180]}~{hashlib.sha256(name.encode()).hexdigest()}"


def hive_directory(columns: Sequence[str], values: Sequence[str | None]) -> str:
    """The directories of a partition, each with its ``/``."""
    return "".join(
        f"{hive_segment(column, value)}/" for column, value in zip(columns, values, strict=True)
    )


def _escape(text: str) -> str:
    return quote(text, safe="~")


_DATE = re.compile(r"([+-]?)(\d{4,})(-\d\d-\d\d)(.*)", re.DOTALL)
_YEARS_BC = " (BC)"


def catalog_text(type_text: str, text: str) -> str:
    """``text`` (Spark's cast of a value to string) as the real extension writes it (measured)."""
    turn = _TURNS.get(base_type(type_text))
    return text if turn is None else turn(type_text, text)


def _float(type_text: str, text: str) -> str:
    value = float(text)
    if math.isnan(value):
        return "nan"
    if base_type(type_text) == "float32" and math.isfinite(value):
        value = struct.unpack("<f", struct.pack("<f", value))[0]
    return str(bound_to_text(type_text, value + 0.0))  # -0.0 and 0.0 are one value


def _time(_: str, text: str) -> str:
    """Spark signs years before 0 and beyond 9999; the extension counts years before Christ."""
    match = _DATE.fullmatch(text)
    if match is None or not match[1]:
        return _before_christ(match) if match and int(match[2]) == 0 else text
    return text[1:] if match[1] == "+" else _before_christ(match)


def _before_christ(match: re.Match[str]) -> str:
    year = int(match[2]) + 1
    return f"{year:04d}{match[3]}{match[4]}{_YEARS_BC}"


_TURNS: Mapping[str, Callable[[str, str], str]] = {
    **dict.fromkeys(("float32", "float64"), _float),
    **dict.fromkeys(("date", "timestamp", "timestamp_s", "timestamp_ms", "timestamptz"), _time),
    "uuid": lambda _, text: text.lower(),
}
_MASK = 0xFFFFFFFF


def bucket(value: object, buckets: int) -> int | None:
    """The bucket of a value of a column (int, str, date); ``None`` where it is not known."""
    data = _bytes(value)
    return None if data is None else (murmur3_32(data) & 0x7FFFFFFF) % buckets


def _bytes(value: object) -> bytes | None:
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        return (value - dt.date(1970, 1, 1)).days.to_bytes(8, "little", signed=True)
    if isinstance(value, int) and not isinstance(value, bool):
        return value.to_bytes(8, "little", signed=True) if abs(value) < 1 << 63 else None
    return None


def murmur3_32(data: bytes) -> int:
    """MurmurHash3, x86, 32 bits, seed 0 (public domain, Austin Appleby)."""
    state = 0
    whole = len(data) // 4 * 4
    for at in range(0, whole, 4):
        state ^= _scrambled(int.from_bytes(data[at : at + 4], "little"))
        state = (_rotated(state, 13) * 5 + 0xE6546B64) & _MASK
    if whole < len(data):
        state ^= _scrambled(int.from_bytes(data[whole:], "little"))
    state ^= len(data)
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        state = ((state ^ state >> shift) * factor) & _MASK
    return state ^ state >> 16


def _scrambled(block: int) -> int:
    return _rotated(block * 0xCC9E2D51 & _MASK, 15) * 0x1B873593 & _MASK


def _rotated(value: int, bits: int) -> int:
    return (value << bits | value >> 32 - bits) & _MASK
