"""Choose the files of a Delta table that can hold rows of a predicate, by values and statistics.

A file is left out only where it is certain to hold none. Other writers may cut text (the lowest
value stays low enough, the highest is above what was cut) and times to milliseconds. Files name
columns by their physical names.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from penstock.delta.actions import Add, Metadata
from penstock.delta.schema import physical_columns, table_schema
from penstock.delta.statistics import parsed
from penstock.lake.format.schema import Column, TableSchema
from penstock.lake.format.values.bounds import Comparable, base_type, comparable
from penstock.sql.identifiers import fold
from penstock.sql.text import (
    Among,
    And,
    Compare,
    Condition,
    IsNull,
    NotNull,
    Or,
    Path,
    Predicate,
    StartsWith,
)

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

    def resolve(self, path: Path) -> tuple[Column, Path] | None:
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

    def _extent(self, path: Path) -> Extent | None:
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


def _inside(values: Any, path: Path) -> Any:
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


def _among(leaf: Among, extent: Extent, zone: str) -> bool:
    return all(_compares(Compare(leaf.path, "=", value), extent, zone) for value in leaf.values)


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
    Among: _among,
    StartsWith: _starts_with,
    NotNull: lambda *_: False,
}
