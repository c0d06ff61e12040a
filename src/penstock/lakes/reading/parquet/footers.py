"""Parquet footers: the columns of a file, and exact counts and bounds of staged files.

A column's kind is the name of the DuckLake type that it has (see `conversions.spark_types`).
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

from penstock.errors import DataFileMissing
from penstock.lakes.format.files import DataFile
from penstock.lakes.format.naming import fold
from penstock.lakes.format.schema import TableSchema
from penstock.lakes.format.statistics import from_footer, leaves
from penstock.lakes.format.values.bounds import base_type
from penstock.lakes.reading.conversions.spark_types import INT96, MILLISECONDS, NANOSECONDS_IN_UTC
from penstock.lakes.storage import list_files, open_system, remove_directory, remove_file
from penstock.lazy import pa, pq

__all__ = ["describe", "layouts", "list_files", "remove_directory", "remove_file"]
_T = TypeVar("_T")
_THREADS = 16
_FLOATS = {"float32", "float64"}


def describe(paths: Sequence[str], schema: TableSchema) -> list[DataFile]:
    """The files as values, with counts, sizes and statistics from their footers.

    The files are Spark's own: parquet-mr orders a NaN above every number, so a chunk whose bounds
    are present and no NaN holds none. That makes ``contains_nan`` exact without a look at the data.
    """
    return _each(lambda path: _describe(path, schema), paths)


def read_columns(paths: Sequence[str], columns: Sequence[str]) -> pa.Table:
    """All rows of these top-level columns of staged files, which must be small."""
    return pa.concat_tables(_each(lambda path: _read_columns(path, columns), paths))


def _read_columns(path: str, columns: Sequence[str]) -> pa.Table:
    system, name = open_system(path)
    with system.open_input_file(name) as source, pq.ParquetFile(source) as file:
        return file.read(columns=list(columns))


def layouts(paths: Sequence[str], *, table: str) -> dict[str, Layout]:
    """The columns of each of these files. Raises DataFileMissing."""
    return dict(zip(paths, _each(lambda path: _layout(path, table), paths), strict=True))


def _each(read: Callable[[str], _T], paths: Sequence[str]) -> list[_T]:
    if len(paths) < 2:
        return [read(path) for path in paths]
    with ThreadPoolExecutor(min(_THREADS, len(paths)), "penstock-footers") as pool:
        return list(pool.map(read, paths))


def _describe(path: str, schema: TableSchema) -> DataFile:
    system, name = open_system(path)
    with system.open_input_file(name) as source:  # which asks a store for its size, once
        size = source.size()
        metadata = pq.read_metadata(source)
    return DataFile(
        path=path,
        record_count=metadata.num_rows,
        size_bytes=size,
        footer_size=metadata.serialized_size,
        stats=from_footer(metadata, schema, _nan_columns(metadata, schema)),
    )


def _nan_columns(metadata: pq.FileMetaData, schema: TableSchema) -> frozenset[int] | None:
    """Ids of the float columns that hold a NaN; ``None`` when a chunk's bounds do not say."""
    ids: set[int] = set()
    for index, column in leaves(metadata.schema.to_arrow_schema(), schema):
        if base_type(column.type) not in _FLOATS or column.id is None:
            continue
        for group in range(metadata.num_row_groups):
            chunk = metadata.row_group(group).column(index)
            statistics = chunk.statistics
            if statistics is not None and statistics.null_count == chunk.num_values:
                continue
            if statistics is None or not statistics.has_min_max:
                return None
            if math.isnan(statistics.max) or math.isnan(statistics.min):
                ids.add(column.id)
    return frozenset(ids)


def _layout(path: str, table: str) -> Layout:
    system, name = open_system(path)
    try:
        metadata = pq.read_metadata(name, filesystem=system)
    except FileNotFoundError:
        raise DataFileMissing(
            f"the data file {path} of {table} is missing",
            hint="restore the file, or read a snapshot that does not need it",
            data={"path": path, "table": table},
        ) from None
    return layout_of(metadata)


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
        for path, field_id, kind in _walk(field, (fold(field.name),), kinds):
            by_path.setdefault(path, kind)
            if field_id is not None:
                by_id.setdefault(field_id, kind)
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
