"""Choose the files of a Delta table that can hold rows of a predicate, by values and statistics.

A file is left out only where it is certain to hold none. Other writers may cut text (the lowest
value stays low enough, the highest is above what was cut) and times to milliseconds.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from penstock.delta.actions import Add
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
    files: Iterable[Add], schema: TableSchema, predicate: Predicate | None
) -> tuple[Add, ...]:
    """The files that may hold rows of the predicate."""
    if predicate is None or predicate.condition is None:
        return tuple(files)
    condition, zone = predicate.condition, predicate.zone
    return tuple(f for f in files if not _Exclusion(f, schema, zone).excludes(condition))


class _Exclusion:
    """Tells whether a file surely holds no row of a condition."""

    def __init__(self, file: Add, schema: TableSchema, zone: str) -> None:
        self._values = {fold(name): value for name, value in file.values}
        self._file, self._schema, self._zone = file, schema, zone
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
        column = _column(self._schema, path)
        if column is None:
            return None
        if len(path) == 1 and fold(path[0]) in self._values:
            text = self._values[fold(path[0])]
            if text is None:
                return Extent(column, nulls=1, rows=1, exact=True)
            value = read_value(column.type, text)
            return Extent(column, value, value, nulls=0, rows=1, exact=True)
        if self._stats is None:
            self._stats = parsed(self._file.stats)
        low, high = (_inside(self._stats.get(key), path) for key in ("minValues", "maxValues"))
        return Extent(
            column,
            read_value(column.type, low),
            _later(read_value(column.type, high)),
            # Of a file with a deletion vector both counts may be those of all its rows, which
            # leaves "no NULLs" and "only NULLs" true of the rows that remain.
            nulls=_inside(self._stats.get("nullCount"), path),
            rows=self._stats.get("numRecords"),
        )


def _column(schema: TableSchema, path: Path) -> Column | None:
    columns = schema.columns
    found = None
    for name in path:
        found = next((c for c in columns if fold(c.name) == fold(name)), None)
        if found is None:
            return None
        columns = found.children
    return None if found is None or found.children else found


def _inside(values: Any, path: Path) -> Any:
    for name in path:
        if not isinstance(values, Mapping):
            return None
        by_fold = {fold(key): value for key, value in values.items()}
        values = by_fold.get(fold(name))
    return values


def _later(value: Any) -> Any:
    return value + _MILLISECOND if isinstance(value, dt.datetime) else value


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
