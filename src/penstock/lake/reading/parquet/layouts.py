"""What a Parquet file's columns are, by its own schema: ids, paths of names, kinds.

Kinds are those of `lake.reading.conversions.file_kinds`: the name of the DuckLake type that a
column holds.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.lake.format.naming import fold
from penstock.lake.reading.conversions.file_kinds import INT96, MILLISECONDS, NANOSECONDS_IN_UTC

Path = tuple[str, ...]

_FIELD_ID = b"PARQUET:field_id"
_NESTED = "nested"


@dataclass(frozen=True, slots=True)
class Layout:
    """The kind of each column by field id, where it has one, and by its folded path.

    Lists, maps and structs are ``nested``. The child of a list is called ``list``, those of a map
    ``key`` and ``value``, as name mappings call them: writers differ.
    """

    by_id: Mapping[int, str]
    by_path: Mapping[Path, str]


def layout_of(metadata: pq.FileMetaData) -> Layout:
    kinds = iter([kind_of(metadata.schema.column(at)) for at in range(metadata.num_columns)])
    by_id: dict[int, str] = {}
    by_path: dict[Path, str] = {}
    for field in metadata.schema.to_arrow_schema():
        for path, found, kind in _walk(field, (fold(field.name),), kinds):
            by_path.setdefault(path, kind)
            if found is not None:
                by_id.setdefault(found, kind)
    return Layout(by_id, by_path)


def _walk(
    field: pa.Field, path: Path, kinds: Iterator[str]
) -> Iterator[tuple[Path, int | None, str]]:
    """A field and those inside it, in the order of the file's leaves."""
    raw = (field.metadata or {}).get(_FIELD_ID)
    children = _children(field.type)
    kind = next(kinds) if not children else _NESTED
    yield path, None if raw is None else int(raw), kind
    for name, child in children:
        yield from _walk(child, (*path, name), kinds)


def _children(kind: pa.DataType) -> list[tuple[str, pa.Field]]:
    if pa.types.is_map(kind):
        return [("key", kind.key_field), ("value", kind.item_field)]
    if pa.types.is_struct(kind):
        return [(fold(field.name), field) for field in kind]
    if any(test(kind) for test in _LISTS):
        return [("list", kind.value_field)]
    return []


_LISTS: tuple[Callable[[pa.DataType], bool], ...] = (
    pa.types.is_list,
    pa.types.is_large_list,
    pa.types.is_fixed_size_list,
)


def kind_of(column: pq.ColumnSchema) -> str:
    """The kind of one leaf."""
    physical: str = column.physical_type
    logical = json.loads(column.logical_type.to_json())
    name = str(logical["Type"])
    if name == "Decimal":
        return f"decimal({column.precision},{column.scale})"
    described = _LOGICAL.get(name)
    return _PHYSICAL.get(physical, physical.lower()) if described is None else described(logical)


def _integer(logical: Mapping[str, Any]) -> str:
    return f"{'' if logical['isSigned'] else 'u'}int{logical['bitWidth']}"


def _time(logical: Mapping[str, Any]) -> str:
    zone = "tz" if logical["isAdjustedToUTC"] else ""
    unit = logical["timeUnit"]
    return f"time{zone}" if unit == "microseconds" else f"time{zone} in {unit}"


def _timestamp(logical: Mapping[str, Any]) -> str:
    units = _ADJUSTED if logical["isAdjustedToUTC"] else _PLAIN
    return units[str(logical["timeUnit"])]


_PLAIN = {"milliseconds": MILLISECONDS, "microseconds": "timestamp", "nanoseconds": "timestamp_ns"}
_ADJUSTED = {
    "milliseconds": "timestamptz",  # Spark turns them itself
    "microseconds": "timestamptz",
    "nanoseconds": NANOSECONDS_IN_UTC,
}


_LOGICAL: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "Int": _integer,
    "Time": _time,
    "Timestamp": _timestamp,
    "Date": lambda _: "date",
    "String": lambda _: "varchar",
    "Enum": lambda _: "varchar",
    "JSON": lambda _: "json",
    "UUID": lambda _: "uuid",
    "Interval": lambda _: "interval",
    "Geometry": lambda _: "geometry",
}

_PHYSICAL: Mapping[str, str] = {
    "BOOLEAN": "boolean",
    "INT32": "int32",
    "INT64": "int64",
    "INT96": INT96,
    "FLOAT": "float32",
    "DOUBLE": "float64",
    "BYTE_ARRAY": "blob",
    "FIXED_LEN_BYTE_ARRAY": "blob",
}
