"""Statistics: bounds from Parquet footers, and what a table's columns hold as a whole.

Readers skip files by these, so a bound that could be wrong is never given: unknown is ``None``.
"""

from __future__ import annotations

import datetime as dt
import json
import math
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from penstock.lakes.format.files import ColumnStats
from penstock.lakes.format.naming import fold
from penstock.lakes.format.schema import Column, TableSchema
from penstock.lakes.format.values.bounds import (
    base_type,
    bound_to_text,
    compare_bounds,
    format_nanoseconds,
)
from penstock.lazy import pa, pq

_FIELD_ID = b"PARQUET:field_id"
_FLOATS = frozenset({"float32", "float64"})
_EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - the epoch of zoneless timestamps
_EPOCH_DATE = dt.date(1970, 1, 1)
_PER_SECOND = {"milliseconds": 1_000, "microseconds": 1_000_000, "nanoseconds": 1_000_000_000}


@dataclass(frozen=True, slots=True)
class TableColumnStats:
    """One row of ``ducklake_table_column_stats``: bounds over all files ever added."""

    column_id: int
    contains_null: bool | None
    contains_nan: bool | None
    min_value: str | None
    max_value: str | None


def from_footer(
    metadata: pq.FileMetaData,
    schema: TableSchema,
    nan_columns: frozenset[int] | None = None,
) -> tuple[ColumnStats, ...]:
    """Statistics of the leaf columns of one file that ``schema`` knows, nested ones too.

    ``nan_columns`` are the ids of the float columns that hold a NaN; ``None`` means that nobody
    looked, and then float columns get no bounds. Footers cannot answer it: Parquet writers disagree
    on what a NaN does to the bounds.
    """
    statistics: list[ColumnStats] = []
    for index, column in leaves(metadata.schema.to_arrow_schema(), schema):
        chunks = [metadata.row_group(g).column(index) for g in range(metadata.num_row_groups)]
        statistics.append(leaf_stats(chunks, column, nan_columns))
    return tuple(statistics)


def leaves(file: pa.Schema, schema: TableSchema) -> Iterator[tuple[int, Column]]:
    """Pairs of a leaf's index in the file and its column, by field id or, lacking one, by name."""
    index = 0
    for field in file:
        column = _match(field, schema.columns)
        for leaf in _walk(field, column):
            if leaf is not None:
                yield index, leaf
            index += 1


def _walk(field: pa.Field, column: Column | None) -> Iterator[Column | None]:
    """One item per leaf of ``field`` in file order: its column, or ``None`` for an unknown one."""
    kind = field.type
    if pa.types.is_struct(kind):
        children = column.children if column is not None and column.type == "struct" else ()
        for at in range(kind.num_fields):
            inner = kind.field(at)
            yield from _walk(inner, _match(inner, children))
    elif pa.types.is_map(kind):
        pair = column.children if column is not None and column.type == "map" else (None, None)
        yield from _walk(kind.key_field, pair[0])
        yield from _walk(kind.item_field, pair[1])
    elif _is_list(kind):
        element = column.children[0] if column is not None and column.type == "list" else None
        yield from _walk(kind.value_field, element)
    else:
        yield column if column is not None and not column.children else None


def _is_list(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    )


def _match(field: pa.Field, columns: Sequence[Column]) -> Column | None:
    text = (field.metadata or {}).get(_FIELD_ID)
    if text is not None:
        return next((column for column in columns if column.id == int(text)), None)
    return next((column for column in columns if fold(column.name) == fold(field.name)), None)


def leaf_stats(
    chunks: Sequence[pq.ColumnChunkMetaData], column: Column, nan_columns: frozenset[int] | None
) -> ColumnStats:
    """Statistics of one leaf column from its chunk in every row group; see `from_footer`."""
    assert column.id is not None, f"column {column.name} has no id"
    nulls = [_null_count(chunk) for chunk in chunks]
    total = sum(chunk.num_values for chunk in chunks)
    known = [n for n in nulls if n is not None]
    null_count = sum(known) if len(known) == len(nulls) else None
    is_float = base_type(column.type) in _FLOATS
    low: str | None = None
    high: str | None = None
    if not is_float or nan_columns is not None:
        low, high = _bounds(chunks, nulls, column)
    return ColumnStats(
        column_id=column.id,
        size_bytes=sum(chunk.total_compressed_size for chunk in chunks),
        value_count=total - (null_count or 0),
        null_count=null_count,
        min_value=low,
        max_value=high,
        contains_nan=column.id in nan_columns if is_float and nan_columns is not None else None,
    )


def _null_count(chunk: pq.ColumnChunkMetaData) -> int | None:
    statistics = chunk.statistics
    if statistics is not None and statistics.has_null_count:
        return int(statistics.null_count)
    return None if chunk.num_values else 0


def _bounds(
    chunks: Sequence[pq.ColumnChunkMetaData], nulls: Sequence[int | None], column: Column
) -> tuple[str | None, str | None]:
    """Lowest and highest over the row groups; none where a group with values has no bounds."""
    low: str | None = None
    high: str | None = None
    for chunk, null_count in zip(chunks, nulls, strict=True):
        if null_count == chunk.num_values:
            continue
        pair = _chunk_bounds(chunk, column)
        if pair is None:
            return None, None
        low = pair[0] if low is None else _pick(column.type, low, pair[0], -1)
        high = pair[1] if high is None else _pick(column.type, high, pair[1], 1)
        if low is None or high is None:
            return None, None
    return low, high


def _chunk_bounds(chunk: pq.ColumnChunkMetaData, column: Column) -> tuple[str, str] | None:
    statistics = chunk.statistics
    if statistics is None or not statistics.has_min_max:
        return None
    try:
        low = _physical_text(statistics, statistics.min_raw, column.type)
        high = _physical_text(statistics, statistics.max_raw, column.type)
    except (ValueError, OverflowError, ArithmeticError):
        return None
    if low is None or high is None or compare_bounds(column.type, low, high) not in {-1, 0}:
        return None
    return low, high


def _physical_text(statistics: pq.Statistics, raw: Any, type_text: str) -> str | None:
    """The bound's text from its physical value and the *file's* logical type.

    The file's type may be narrower than the column's, which may have been promoted since.
    """
    reader = _PHYSICAL.get(base_type(type_text))
    value = None if reader is None else reader(statistics, raw)
    return value if isinstance(value, str) else bound_to_text(type_text, value)


def _logical(statistics: pq.Statistics) -> dict[str, Any]:
    parsed: dict[str, Any] = json.loads(statistics.logical_type.to_json())
    return parsed


def _boolean(_: pq.Statistics, raw: Any) -> object:
    return bool(raw)


def _integer(statistics: pq.Statistics, raw: Any) -> object:
    if isinstance(raw, bytes):
        return _decimal_integer(statistics, raw)
    if not isinstance(raw, int):
        return None
    logical = _logical(statistics)
    if logical.get("Type") == "Decimal":
        return raw if logical.get("scale") == 0 else None
    if logical.get("isSigned", True) is False and raw < 0:
        return raw + (1 << (32 if statistics.physical_type == "INT32" else 64))
    return raw


def _decimal_integer(statistics: pq.Statistics, raw: bytes) -> int | None:
    logical = _logical(statistics)
    if logical.get("Type") != "Decimal" or logical.get("scale") != 0:
        return None
    return int.from_bytes(raw, "big", signed=True)


def _decimal(statistics: pq.Statistics, raw: Any) -> object:
    logical = _logical(statistics)
    if logical.get("Type") != "Decimal":
        return None
    unscaled = int.from_bytes(raw, "big", signed=True) if isinstance(raw, bytes) else int(raw)
    sign, digits = int(unscaled < 0), tuple(map(int, str(abs(unscaled))))
    return Decimal((sign, digits, -int(logical["scale"])))


def _float(_: pq.Statistics, raw: Any) -> object:
    return raw if isinstance(raw, float) and not math.isnan(raw) else None


def _date(_: pq.Statistics, raw: Any) -> object:
    return _EPOCH_DATE + dt.timedelta(days=raw) if isinstance(raw, int) else None


def _timestamp(statistics: pq.Statistics, raw: Any) -> object:
    return _instant(statistics, raw, adjusted=False)


def _timestamptz(statistics: pq.Statistics, raw: Any) -> object:
    text = _instant(statistics, raw, adjusted=True)
    return None if text is None else f"{text}+00"


def _instant(statistics: pq.Statistics, raw: Any, *, adjusted: bool) -> str | None:
    """Text, through whole numbers, so that nanoseconds stay exact. INT96 has no usable bounds."""
    logical = _logical(statistics)
    unit = _PER_SECOND.get(str(logical.get("timeUnit")))
    if unit is None or not isinstance(raw, int) or logical["isAdjustedToUTC"] is not adjusted:
        return None
    return format_nanoseconds(raw * (1_000_000_000 // unit))


def _text(_: pq.Statistics, raw: Any) -> object:
    return raw.decode("utf-8") if isinstance(raw, bytes) else None


def _blob(_: pq.Statistics, raw: Any) -> object:
    return raw if isinstance(raw, bytes) else None


def _uuid(statistics: pq.Statistics, raw: Any) -> object:
    """Sixteen raw bytes sort as UUIDs do; text may mix letter cases, which do not."""
    is_raw = statistics.physical_type == "FIXED_LEN_BYTE_ARRAY" and len(raw) == 16
    return uuid.UUID(bytes=raw) if is_raw else None


_INTEGERS = (
    *("int8", "int16", "int32", "int64"),
    *("uint8", "uint16", "uint32", "uint64"),
)

_PHYSICAL: Mapping[str, Callable[[pq.Statistics, Any], object]] = {
    **dict.fromkeys(_INTEGERS, _integer),
    **dict.fromkeys(("timestamp", "timestamp_s", "timestamp_ms", "timestamp_ns"), _timestamp),
    "boolean": _boolean,
    "float32": _float,
    "float64": _float,
    "decimal": _decimal,
    "date": _date,
    "timestamptz": _timestamptz,
    "varchar": _text,
    "json": _text,
    "blob": _blob,
    "uuid": _uuid,
}


def _pick(type_text: str, a: str, b: str, sign: int) -> str | None:
    """The lower (``sign`` -1) or higher (1) of two bounds, ``None`` when they do not compare."""
    order = compare_bounds(type_text, a, b)
    if order is None:
        return None
    return a if order in {sign, 0} else b


def merge(
    column: Column, before: TableColumnStats | None, files: Sequence[ColumnStats | None]
) -> TableColumnStats | None:
    """A table's statistics of a column after files were added; ``None``: nothing is known.

    ``before`` is ``None`` for a table that had no rows; a file without statistics is ``None``.
    Unknown statistics must have no row at all: the real extension takes a row without bounds for a
    column of NULLs only, and its next insert would write bounds that ignore our rows (measured).
    """
    parts = [_as_table(column, file) for file in files]
    if before is not None:
        parts.append(_trusted(before))
    merged = _nothing(column)
    for part in parts:
        if part is None:
            return None
        both = _combine(column, merged, part)
        if both is None:
            return None
        merged = both
    return merged if merged.contains_null or merged.min_value is not None else None


def _nothing(column: Column) -> TableColumnStats:
    nan = False if base_type(column.type) in _FLOATS else None
    return TableColumnStats(column.id or 0, False, nan, None, None)


def _as_table(column: Column, stats: ColumnStats | None) -> TableColumnStats | None:
    if stats is None:
        return None
    if stats.value_count > 0 and (stats.min_value is None or stats.max_value is None):
        return None
    nan = stats.contains_nan if stats.value_count else _nothing(column).contains_nan
    nulls = stats.null_count is None or stats.null_count > 0
    return TableColumnStats(stats.column_id, nulls, nan, stats.min_value, stats.max_value)


def _trusted(before: TableColumnStats) -> TableColumnStats | None:
    """A row without bounds means "only NULLs so far", if it says that there are NULLs."""
    if before.min_value is None or before.max_value is None:
        return replace(before, min_value=None, max_value=None) if before.contains_null else None
    return replace(before, contains_null=before.contains_null is not False)


def _combine(column: Column, a: TableColumnStats, b: TableColumnStats) -> TableColumnStats | None:
    if a.min_value is None or a.max_value is None:
        low, high = b.min_value, b.max_value
    elif b.min_value is None or b.max_value is None:
        low, high = a.min_value, a.max_value
    else:
        low = _pick(column.type, a.min_value, b.min_value, -1)
        high = _pick(column.type, a.max_value, b.max_value, 1)
        if low is None or high is None:
            return None
    unsure = a.contains_nan is None or b.contains_nan is None
    nan = True if a.contains_nan or b.contains_nan else None if unsure else False
    return TableColumnStats(a.column_id, bool(a.contains_null or b.contains_null), nan, low, high)
