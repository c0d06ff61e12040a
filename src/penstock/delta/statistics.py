"""Statistics of Delta files: written from footers, and read to choose the files of a predicate.

"Per-file Statistics" of Delta's protocol: bounds of the first 32 columns without NULLs, those of
structs by their fields. Text is cut to 32 characters, the highest one above what was cut.

Choose the files of a Delta table that can hold rows of a predicate, by values and statistics.

A file is left out only where it is certain to hold none. Other writers may cut text (the lowest
value stays low enough, the highest is above what was cut) and times to milliseconds. Files name
columns by their physical names.
"""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from penstock.delta.actions import Add, Metadata
from penstock.delta.schema import physical_columns, table_schema
from penstock.lakes.format.files import ColumnStats, DataFile
from penstock.lakes.format.schema import Column, TableSchema
from penstock.lakes.format.values.bounds import Comparable, base_type, comparable
from penstock.sql.identifiers import fold
from penstock.sql.text import (
    Among,
    And,
    Compare,
    Condition,
    IsNull,
    NotNull,
    Or,
    Predicate,
    StartsWith,
)
from penstock.sql.text import Path as ColumnPath

_MOST_COLUMNS = 32
_LONGEST = 32  # characters
_ABOVE_ALL = "\U0010ffff"
# Decimals have more digits than JSON's numbers in Python: marked texts, unquoted at the end.
_MARK = "\x00"
_MARKED = re.compile(r'"\\u0000(-?[0-9.]+(?:[eE][-+]?[0-9]+)?)"')
Path = tuple[str, ...]


def stats_of(file: DataFile, schema: TableSchema) -> str:
    """The statistics of a file that was just written."""
    by_id = {stats.column_id: stats for stats in file.stats}
    low: dict[str, Any] = {}
    high: dict[str, Any] = {}
    nulls: dict[str, Any] = {}
    for path, column in islice(_leaves(schema.columns, ()), _MOST_COLUMNS):
        stats = by_id.get(column.id or 0)
        if stats is None:
            continue
        if stats.null_count is not None:
            _put(nulls, path, stats.null_count)
        for bounds, value in ((low, stats.min_value), (high, stats.max_value)):
            written = _bound(column, stats, value, highest=bounds is high)
            if written is not None:
                _put(bounds, path, written)
    text = json.dumps(
        {
            "numRecords": file.record_count,
            "minValues": low,
            "maxValues": high,
            "nullCount": nulls,
            "tightBounds": True,
        },
        separators=(",", ":"),
    )
    return _MARKED.sub(r"\1", text)


def loosened(stats: str | None, rows: int) -> str:
    """The statistics of a file of which rows are deleted now: bounds and counts of NULLs may be
    those of deleted rows.
    """
    try:
        known = json.loads(stats or "{}", parse_float=lambda text: f"{_MARK}{text}")
    except ValueError:
        known = {}
    text = json.dumps({**known, "numRecords": rows, "tightBounds": False}, separators=(",", ":"))
    return _MARKED.sub(r"\1", text)


def parsed(stats: str | None) -> dict[str, Any]:
    """The statistics as a mapping; empty without any, or where they are not JSON."""
    try:
        found = json.loads(stats) if stats else {}
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _leaves(columns: Sequence[Column], path: Path) -> Iterator[tuple[Path, Column]]:
    for column in columns:
        if column.type == "struct":
            yield from _leaves(column.children, (*path, column.name))
        elif not column.children:
            yield (*path, column.name), column


def _put(values: dict[str, Any], path: Path, value: Any) -> None:
    *folders, name = path
    for folder in folders:
        values = values.setdefault(folder, {})
    values[name] = value


def _bound(column: Column, stats: ColumnStats, text: str | None, *, highest: bool) -> Any:
    write = _WRITERS.get(base_type(column.type))
    if text is None or write is None:
        return None
    if base_type(column.type) in _WITH_NAN and stats.contains_nan is not False:
        return None  # to Delta a NaN is above all numbers, and bounds of a footer leave it out
    return write(text, highest)


def _number(text: str, _: bool) -> Any:
    return int(text)


def _double(text: str, _: bool) -> Any:
    value = float(text)
    return value if value - value == 0 else None  # JSON has no infinity


def _decimal(text: str, _: bool) -> Any:
    return f"{_MARK}{text}"


def _day(text: str, _: bool) -> Any:
    return text if re.fullmatch(r"\d{4}-\d\d-\d\d", text) else None


def _time(text: str, _: bool) -> Any:
    return text.replace(" ", "T") if _TIME.fullmatch(text) else None


def _zoned_time(text: str, highest: bool) -> Any:
    found = _time(text.removesuffix("+00"), highest)
    return None if found is None else f"{found}Z"


def _text(text: str, highest: bool) -> Any:
    if len(text) <= _LONGEST:
        return text
    return text[:_LONGEST] + (_ABOVE_ALL if highest else "")


_TIME = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d{1,6})?")
_WITH_NAN = ("float32", "float64")
_WRITERS: Mapping[str, Callable[[str, bool], Any]] = {
    **dict.fromkeys(("int8", "int16", "int32", "int64"), _number),
    **dict.fromkeys(("float32", "float64"), _double),
    "decimal": _decimal,
    "date": _day,
    "timestamp": _time,
    "timestamptz": _zoned_time,
    "varchar": _text,
}


_MILLISECOND = dt.timedelta(milliseconds=1)
_FLOATS = frozenset({"float32", "float64"})


@dataclass(frozen=True, slots=True)
class Extent:
    """Facts about a column in a file; ``None`` where they are not known.

    ``exact``: all rows have the value ``low``, or all are NULL (a partition value).
    """

    column: Column
    low: Any = None
    high: Any = None
    nulls: int | None = None
    rows: int | None = None
    exact: bool = False


def matching(
    files: Iterable[Add], metadata: Metadata, predicate: Predicate | None
) -> tuple[Add, ...]:
    """The files that may hold rows of the predicate."""
    if predicate is None or predicate.condition is None:
        return tuple(files)
    names, condition, zone = _Names.of(metadata), predicate.condition, predicate.zone
    return tuple(f for f in files if not _Exclusion(f, names, zone).excludes(condition))


@dataclass(frozen=True, slots=True)
class _Names:
    """The columns of a table and, in the same order, the columns as its files name them.

    ``partitions`` are the physical names of the columns that the table is partitioned by.
    """

    schema: TableSchema
    in_files: TableSchema
    partitions: frozenset[str]

    @classmethod
    def of(cls, metadata: Metadata) -> _Names:
        schema = table_schema(metadata.schema_text)
        in_files = physical_columns(schema, metadata)
        keys = {fold(name) for name in metadata.partition_by}
        pairs = zip(schema.columns, in_files.columns, strict=True)
        return cls(schema, in_files, frozenset(p.name for c, p in pairs if fold(c.name) in keys))

    def resolve(self, path: ColumnPath) -> tuple[Column, ColumnPath] | None:
        """The column of a path and its path in files; ``None`` for a column with fields."""
        columns, in_files = self.schema.columns, self.in_files.columns
        column, physical = None, []
        for name in path:
            pairs = zip(columns, in_files, strict=True)
            pair = next((pair for pair in pairs if fold(pair[0].name) == fold(name)), None)
            if pair is None:
                return None
            column = pair[0]
            physical.append(pair[1].name)
            columns, in_files = column.children, pair[1].children
        return None if column is None or column.children else (column, tuple(physical))


class _Exclusion:
    """Tells whether a file surely holds no row of a condition."""

    def __init__(self, file: Add, names: _Names, zone: str) -> None:
        self._file, self._names, self._zone = file, names, zone
        self._stats: Mapping[str, Any] | None = None

    def excludes(self, condition: Condition) -> bool:
        if isinstance(condition, And):
            return any(self.excludes(part) for part in condition.parts)
        if isinstance(condition, Or):
            return all(self.excludes(part) for part in condition.parts)
        extent = self._extent(condition.path)
        if extent is None:
            return False
        if isinstance(condition, IsNull):
            return extent.nulls == 0
        if extent.nulls is not None and extent.nulls == extent.rows:
            return True  # what compares is not NULL
        return _LEAVES[type(condition)](condition, extent, self._zone)

    def _extent(self, path: ColumnPath) -> Extent | None:
        resolved = self._names.resolve(path)
        if resolved is None:
            return None
        column, physical = resolved
        if physical[0] in self._names.partitions:
            return _partition_extent(column, dict(self._file.values), physical[0])
        if self._stats is None:
            self._stats = parsed(self._file.stats)
        low, high = (_inside(self._stats.get(key), physical) for key in ("minValues", "maxValues"))
        return Extent(
            column,
            read_value(column.type, low),
            _later(read_value(column.type, high)),
            # Of a file with a deletion vector both counts may be those of all its rows, which
            # leaves "no NULLs" and "only NULLs" true of the rows that remain.
            nulls=_inside(self._stats.get("nullCount"), physical),
            rows=self._stats.get("numRecords"),
        )


def _partition_extent(column: Column, values: Mapping[str, str | None], name: str) -> Extent | None:
    if name not in values:
        return None
    text = values[name]
    if text is None:
        return Extent(column, nulls=1, rows=1, exact=True)
    value = read_value(column.type, text)
    return Extent(column, value, value, nulls=0, rows=1, exact=True)


def _inside(values: Any, path: ColumnPath) -> Any:
    for name in path:
        if not isinstance(values, Mapping):
            return None
        values = values.get(name)
    return values


def _later(value: Any) -> Any:
    if not isinstance(value, dt.datetime):
        return value
    try:
        return value + _MILLISECOND
    except OverflowError:  # the last millisecond of the year 9999
        return dt.datetime.max.replace(tzinfo=value.tzinfo)


def read_value(kind: str, value: Any) -> Any:
    """A value of the log for comparisons; ``None`` where it cannot be compared."""
    reader = _READERS.get(base_type(kind))
    if value is None or reader is None:
        return None
    try:
        return reader(value)
    except (ValueError, TypeError, OverflowError):
        return None


def _naive(value: str) -> dt.datetime:
    return dt.datetime.fromisoformat(value.removesuffix("Z")).replace(tzinfo=None)


def _aware(value: str) -> dt.datetime:
    found = dt.datetime.fromisoformat(value)
    return found.astimezone(dt.UTC) if found.tzinfo else found.replace(tzinfo=dt.UTC)


_READERS: Mapping[str, Callable[[Any], Any]] = {
    **dict.fromkeys(("int8", "int16", "int32", "int64"), int),
    **dict.fromkeys(("float32", "float64", "decimal"), float),
    "date": dt.date.fromisoformat,
    "timestamp": _naive,
    "timestamptz": _aware,
    "varchar": str,
}


def _compares(leaf: Compare, extent: Extent, zone: str) -> bool:
    value = comparable(extent.column.type, leaf.value, zone)
    if value is None or extent.low is None or extent.high is None:
        return False
    if base_type(extent.column.type) in _FLOATS and leaf.operator in {">", ">=", "<>"}:
        return False  # Spark's NaN is above everything, and in no bound
    return _OPERATORS[leaf.operator](value, extent)


def _starts_with(leaf: StartsWith, extent: Extent, _: str) -> bool:
    low, high = extent.low, extent.high
    if not isinstance(low, str) or not isinstance(high, str):
        return False
    return bool(low[: len(leaf.prefix)] > leaf.prefix or high < leaf.prefix)


def _differs(value: Comparable, extent: Extent) -> bool:
    return extent.exact and value.exact and bool(extent.low == value.low)


_OPERATORS: Mapping[str, Callable[[Comparable, Extent], bool]] = {
    "=": lambda value, extent: bool(extent.low > value.high or extent.high < value.low),
    "<>": _differs,
    "<": lambda value, extent: bool(
        extent.low >= value.high if value.exact else extent.low > value.high
    ),
    "<=": lambda value, extent: bool(extent.low > value.high),
    ">": lambda value, extent: bool(
        extent.high <= value.low if value.exact else extent.high < value.low
    ),
    ">=": lambda value, extent: bool(extent.high < value.low),
}
_LEAVES: Mapping[type, Callable[[Any, Extent, str], bool]] = {
    Compare: _compares,
    Among: lambda leaf, extent, zone: all(
        _compares(Compare(leaf.path, "=", value), extent, zone) for value in leaf.values
    ),
    StartsWith: _starts_with,
    NotNull: lambda *_: False,
}
