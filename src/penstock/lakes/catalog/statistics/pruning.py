"""Pruning files in the catalog's database: which files of a table may match a predicate.

A file is pruned only when its statistics or partition values show that none of its rows can satisfy
the predicate; partition values include buckets, years, months, days and hours. A file without
statistics for a column (older than the column, or written without) is never pruned by it.
"""

from __future__ import annotations

import datetime as dt
import operator
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    and_,
    exists,
    false,
    func,
    literal,
    not_,
    or_,
    select,
)

from penstock.lakes.catalog.database import metadata
from penstock.lakes.catalog.statistics.exclusion import Extent, Test, compares, excluded, identity
from penstock.lakes.format.files import Table
from penstock.lakes.format.naming import fold
from penstock.lakes.format.partitioning import bucket
from penstock.lakes.format.schema import Column, TableSchema
from penstock.lakes.format.values.bounds import base_type, comparable
from penstock.sql.text import Among, And, Compare, Condition, Constant, IsNull, Or, Path, Predicate


@dataclass(frozen=True, slots=True)
class _Key:
    """One column of one partitioning that the table has or had."""

    partition_id: int
    index: int
    column_id: int
    transform: str


def may_match(connection: Connection, table: Table, predicate: Predicate) -> Test | None:
    """A test on ``ducklake_data_file``; ``None`` when nothing can be left out."""
    if predicate.condition is None:
        return None
    # Room for the ids of a million files: PostgreSQL compares them one by one without.
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql("SET LOCAL work_mem = '128MB'")
    t = metadata.of(connection)
    choice = _Choice(
        t, table, _keys(connection, t, table.id), predicate.zone, connection.dialect.name
    )
    return choice.may_match(predicate.condition)


def _keys(connection: Connection, t: metadata.Tables, table_id: int) -> list[_Key]:
    c = t.partition_column.c
    query = select(c.partition_id, c.partition_key_index, c.column_id, c.transform)
    rows = connection.execute(query.where(c.table_id == table_id))
    return [_Key(*row) for row in rows]


def find(schema: TableSchema, path: Path) -> Column | None:
    """The column at a path through structs, letter case aside."""
    columns: Sequence[Column] = schema.columns
    column: Column | None = None
    for name in path:
        if column is not None and column.type != "struct":
            return None
        column = next((c for c in columns if fold(c.name) == fold(name)), None)
        if column is None:
            return None
        columns = column.children
    return None if column is None or column.children else column


def paths(condition: Condition) -> frozenset[tuple[str, ...]]:
    """The columns that a condition speaks of, folded."""
    if isinstance(condition, And | Or):
        return frozenset().union(*(paths(part) for part in condition.parts))
    return frozenset({tuple(fold(name) for name in condition.path)})


@dataclass(frozen=True, slots=True)
class _Choice:
    tables: metadata.Tables
    table: Table
    keys: Sequence[_Key]
    zone: str
    dialect: str

    def may_match(self, condition: Condition) -> Test | None:
        """True for files that may hold a row for which ``condition`` is true."""
        over = paths(condition)
        if len(over) == 1:
            return self._by_column(condition, next(iter(over)))
        if isinstance(condition, Or):
            tests = [self.may_match(part) for part in condition.parts]
            known = [test for test in tests if test is not None]
            return or_(*known) if len(known) == len(tests) else None
        assert isinstance(condition, And)
        return self._every(condition)

    def _every(self, condition: And) -> Test | None:
        """Test conditions on the same column together, with one look at its statistics."""
        together: dict[frozenset[tuple[str, ...]], list[Condition]] = defaultdict(list)
        for part in condition.parts:
            together[paths(part)].append(part)
        tests = [
            self.may_match(parts[0] if len(parts) == 1 else And(tuple(parts)))
            for over, parts in together.items()
            if len(over) == 1 or len(parts) == 1
        ]
        tests += [
            self.may_match(part)
            for over, parts in together.items()
            if len(over) > 1 and len(parts) > 1
            for part in parts
        ]
        known = [test for test in tests if test is not None]
        return and_(*known) if known else None

    def _by_column(self, condition: Condition, path: Path) -> Test | None:
        column = find(self.table.schema, path)
        if column is None or column.id is None:
            return None
        tests = [self._by_statistics(condition, column, nested=len(path) > 1)]
        tests += [
            self._by_partition(condition, column, key)
            for key in self.keys
            if key.column_id == column.id
        ]
        known = [test for test in tests if test is not None]
        return and_(*known) if known else None

    def _by_statistics(self, condition: Condition, column: Column, *, nested: bool) -> Test | None:
        if nested and _asks_for_null(condition):
            return None  # whether NULLs of the struct itself are counted depends on the writer
        t = self.tables
        s = t.file_column_stats.c
        extent = Extent(
            low=s.min_value,
            high=s.max_value,
            no_nan=s.contains_nan == literal(False, s.contains_nan.type),
            only_null=and_(s.value_count == 0, s.null_count > 0),
            no_null=s.null_count == 0,
            whole=False,
        )
        test = excluded(condition, column, extent, self.zone, self.dialect)
        if test is None:
            return None
        mine = and_(s.table_id == self.table.id, s.column_id == column.id, test)
        f = t.data_file.c
        if self.dialect == "postgresql":
            query = select(literal(1)).select_from(t.file_column_stats)
            return not_(exists(query.where(mine, s.data_file_id == f.data_file_id)))
        # One query for all files: SQLite would search for each, through all rows without an index.
        ids = select(s.data_file_id).where(mine, s.data_file_id.is_not(None))
        return f.data_file_id.not_in(ids)

    def _by_partition(self, condition: Condition, column: Column, key: _Key) -> Test | None:
        t = self.tables
        v, f = t.file_partition_value.c, t.data_file.c
        value = v.partition_value
        test = (
            excluded(condition, column, identity(value), self.zone, self.dialect)
            if key.transform == "identity"
            else excluded_by_transform(
                condition,
                column,
                transform=key.transform,
                value=value,
                zone=self.zone,
                dialect=self.dialect,
            )
        )
        if test is None:
            return None
        mine = and_(v.table_id == self.table.id, v.partition_key_index == key.index, test)
        other = self._other_key(key)
        if other is not None:
            known = t.file_partition_value.alias()
            has_other = exists().where(
                known.c.table_id == self.table.id,
                known.c.data_file_id == v.data_file_id,
                known.c.partition_key_index == other,
            )
            mine = and_(mine, has_other)
        ours = f.partition_id == key.partition_id
        if self.dialect == "postgresql":
            query = select(literal(1)).select_from(t.file_partition_value)
            return not_(exists(query.where(mine, ours, v.data_file_id == f.data_file_id)))
        ids = select(v.data_file_id).where(mine, v.data_file_id.is_not(None))
        return not_(and_(func.coalesce(ours, false()), f.data_file_id.in_(ids)))

    def _other_key(self, key: _Key) -> int | None:
        """The index of another key of the same column. DuckDB 1.5.5 adds files with the values of
        all of them under one index: which value is whose is not known then.
        """
        alike = (
            other.index
            for other in self.keys
            if (other.partition_id, other.column_id) == (key.partition_id, key.column_id)
            and other.index != key.index
        )
        return next(alike, None)


def _asks_for_null(condition: Condition) -> bool:
    if isinstance(condition, And | Or):
        return any(_asks_for_null(part) for part in condition.parts)
    return isinstance(condition, IsNull)


_BUCKET = re.compile(r"bucket\(\s*(\d+)\s*\)")
_HASHED = frozenset({"int8", "int16", "int32", "int64", "varchar", "date"})
_PARTS = ("year", "month", "day", "hour")


def excluded_by_transform(
    condition: Condition,
    column: Column,
    *,
    transform: str,
    value: ColumnElement[str],
    zone: str,
    dialect: str,
) -> Test | None:
    """The test that no row of a file with this partition value satisfies ``condition``.

    A file whose rows have no such part (NULL, infinity) has the value NULL and is not pruned.
    """
    match = _BUCKET.fullmatch(transform)
    if match is not None:
        wanted = _buckets(condition, column, int(match[1]), zone)
        return None if wanted is None else value.not_in([str(number) for number in sorted(wanted)])
    if transform not in _PARTS:
        return None
    span = _span(condition, column, zone)
    if base_type(column.type) == "timestamptz":  # the writer's zone is not known
        span = span.wider(dt.timedelta(days=1))
    low, high = _part(span, transform)
    tests: list[Test] = []
    if low is not None:
        tests.append(compares("integer", value, operator.lt, low, dialect))
    if high is not None:
        tests.append(compares("integer", value, operator.gt, high, dialect))
    return or_(*tests) if tests else None


def _buckets(condition: Condition, column: Column, count: int, zone: str) -> set[int] | None:
    """The buckets that rows which satisfy the condition can be in; ``None``: any."""
    if isinstance(condition, And | Or):
        sets = [_buckets(part, column, count, zone) for part in condition.parts]
        known = [buckets for buckets in sets if buckets is not None]
        if isinstance(condition, And):
            return set.intersection(*known) if known else None
        return set.union(*known) if len(known) == len(sets) else None
    kinds = {base_type(kind) for kind in (column.type, *(kind for _, kind in column.versions))}
    if not kinds <= _HASHED or count == 0:  # unsigned numbers have other hashes than signed ones
        return None
    values = _equals(condition)
    buckets: set[int] = set()
    for value in values:
        bounds = comparable(column.type, value, zone)
        number = bucket(bounds.low, count) if bounds is not None and bounds.exact else None
        if number is None:
            return None
        buckets.add(number)
    return buckets or None


def _equals(condition: Condition) -> tuple[Constant, ...]:
    if isinstance(condition, Among):
        return condition.values
    return (
        (condition.value,) if isinstance(condition, Compare) and condition.operator == "=" else ()
    )


@dataclass(frozen=True, slots=True)
class _Span:
    """The first and the last moment, both included; ``None`` is unbounded."""

    low: dt.datetime | None = None
    high: dt.datetime | None = None

    def wider(self, by: dt.timedelta) -> _Span:
        try:
            return _Span(
                None if self.low is None else self.low - by,
                None if self.high is None else self.high + by,
            )
        except OverflowError:
            return _Span()


def _span(condition: Condition, column: Column, zone: str) -> _Span:
    if isinstance(condition, And):
        return _intersection([_span(part, column, zone) for part in condition.parts])
    if isinstance(condition, Or):
        return _hull([_span(part, column, zone) for part in condition.parts])
    if isinstance(condition, Among):
        parts = [Compare(condition.path, "=", value) for value in condition.values]
        return _hull([_span(part, column, zone) for part in parts])
    if not isinstance(condition, Compare) or condition.operator == "<>":
        return _Span()
    value = comparable(column.type, condition.value, zone)
    if value is None:
        return _Span()
    low = None if condition.operator in {"<", "<="} else _moment(value.low)
    high = None if condition.operator in {">", ">="} else _moment(value.high)
    return _Span(low, high)


def _intersection(spans: list[_Span]) -> _Span:
    lows = [span.low for span in spans if span.low is not None]
    highs = [span.high for span in spans if span.high is not None]
    return _Span(max(lows, default=None), min(highs, default=None))


def _hull(spans: list[_Span]) -> _Span:
    lows = [span.low for span in spans if span.low is not None]
    highs = [span.high for span in spans if span.high is not None]
    return _Span(
        min(lows) if len(lows) == len(spans) else None,
        max(highs) if len(highs) == len(spans) else None,
    )


def _moment(value: Any) -> dt.datetime:
    if not isinstance(value, dt.datetime):
        return dt.datetime.combine(value, dt.time())
    return value.replace(tzinfo=None)


def _part(span: _Span, part: str) -> tuple[int | None, int | None]:
    """The least and greatest value of a part of the time; months repeat every year, and so on."""
    at = _PARTS.index(part)
    low, high = span.low, span.high
    if at == 0:
        return (None if low is None else low.year), (None if high is None else high.year)
    if low is None or high is None:
        return None, None
    larger = _PARTS[:at]
    if any(getattr(low, name) != getattr(high, name) for name in larger):
        return None, None
    return getattr(low, part), getattr(high, part)
