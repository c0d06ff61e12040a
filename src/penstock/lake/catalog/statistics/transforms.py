"""Partition transforms: which buckets, years, months, days and hours a condition leaves."""

from __future__ import annotations

import datetime as dt
import operator
import re
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, or_

from penstock.lake.catalog.statistics.typed_text import Test, compares
from penstock.lake.format.comparable import comparable
from penstock.lake.format.schema import Column
from penstock.lake.format.values.bounds import base_type
from penstock.lake.format.values.partition_text import bucket
from penstock.sql.conditions import Among, And, Compare, Condition, Constant, Or

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

    The value of a file whose rows have no such part (NULL, infinity) is NULL: it is kept.
    """
    match = _BUCKET.fullmatch(transform)
    if match is not None:
        wanted = _buckets(condition, column, int(match[1]), zone)
        return None if wanted is None else value.not_in([str(one) for one in sorted(wanted)])
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
        known = [found for found in sets if found is not None]
        if isinstance(condition, And):
            return set.intersection(*known) if known else None
        return set.union(*known) if len(known) == len(sets) else None
    kinds = {base_type(kind) for kind in (column.type, *(kind for _, kind in column.versions))}
    if not kinds <= _HASHED or count == 0:  # unsigned numbers have other hashes than signed ones
        return None
    values = _equals(condition)
    found: set[int] = set()
    for value in values:
        one = comparable(column.type, value, zone)
        number = bucket(one.low, count) if one is not None and one.exact else None
        if number is None:
            return None
        found.add(number)
    return found or None


def _equals(condition: Condition) -> tuple[Constant, ...]:
    if isinstance(condition, Among):
        return condition.values
    return (
        (condition.value,) if isinstance(condition, Compare) and condition.operator == "=" else ()
    )


@dataclass(frozen=True, slots=True)
class _Span:
    """From when to when, both included; ``None`` is without end."""

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
