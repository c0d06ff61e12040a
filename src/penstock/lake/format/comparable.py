"""A query's constant as a value that can be compared with a column's bounds, which are text.

A constant is usable only where Spark's coercion to the column's type leaves a single meaning. Where
the comparison is not exact (floats, times across zones) the constant becomes an interval that
certainly contains it.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from penstock.lake.format.types import parse
from penstock.lake.format.values.bounds import base_type, format_timestamp
from penstock.sql.conditions import Constant

INTEGERS = frozenset(
    {"int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"},
)
ZONELESS = frozenset({"timestamp", "timestamp_s", "timestamp_ms", "timestamp_ns"})

_TIME = re.compile(r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d:\d\d(\.\d{1,6})?)?")
# More than a zone's clock ever jumps: one wall clock may mean two instants, or none.
_JUMP = dt.timedelta(hours=3)
_DAY = dt.timedelta(days=1)
# By how much bounds may be finer than the values that readers see.
_FINER = {
    "timestamp_ns": dt.timedelta(microseconds=1),
    "timestamp_ms": dt.timedelta(milliseconds=1),
    "timestamp_s": dt.timedelta(seconds=1),
}
# A 32-bit float is off by 6e-8 of its value, and the text of its bound is rounded once more.
_FLOAT_SLACK = 1e-6


@dataclass(frozen=True, slots=True)
class Comparable:
    """A constant among the values of a column.

    ``kind`` is how bounds are to be read: ``integer``, ``number``, ``text``, ``uuid``, ``date``,
    ``timestamp``, ``timestamptz`` or ``boolean``. The constant is from ``low`` to ``high``; when
    ``exact`` the two are the same and compare as Spark does. ``low`` above ``high`` lies between
    two values. Times are datetimes, zoned ones in UTC.
    """

    kind: str
    low: Any
    high: Any
    exact: bool


def comparable(type_text: str, constant: Constant, zone: str) -> Comparable | None:
    """The constant for bounds of this type; ``None`` when Spark's comparison is not certain."""
    reader = _BY_TYPE.get(base_type(type_text))
    try:
        return None if reader is None else reader(type_text, constant, zone)
    except (ValueError, OverflowError, ArithmeticError, ZoneInfoNotFoundError):
        return None  # beyond what Python's dates and numbers hold


def as_text(value: Any) -> Any:
    """The end of an interval as the catalog's text has it; numbers stay numbers."""
    if isinstance(value, dt.datetime):
        return format_timestamp(value)
    return value.isoformat() if isinstance(value, dt.date) else value


def _exact(kind: str, value: Any) -> Comparable:
    return Comparable(kind, value, value, True)


def _number_of(constant: Constant) -> int | Decimal | float | None:
    """A number, or a string that is clearly a number, which Spark casts to the column's type."""
    if constant.kind == "string":
        if re.fullmatch(r"-?\d{1,18}", constant.value):
            return int(constant.value)
        return float(constant.value) if re.fullmatch(r"-?\d+\.\d+", constant.value) else None
    if constant.kind in {"integer", "decimal", "float"}:
        value: int | Decimal | float = constant.value
        return value
    return None


def _integer(_: str, constant: Constant, __: str) -> Comparable | None:
    value = _number_of(constant)
    if value is None or (constant.kind == "string" and not isinstance(value, int)):
        return None
    if isinstance(value, float):  # Spark casts the column: large integers lose digits
        slack = abs(value) * _FLOAT_SLACK + 1
        return Comparable("integer", math.floor(value - slack), math.ceil(value + slack), False)
    low, high = math.ceil(value), math.floor(value)
    return Comparable("integer", low, high, low == high)


def _inexact(_: str, constant: Constant, __: str) -> Comparable | None:
    value = _number_of(constant)
    if value is None:
        return None
    middle = float(value)
    if not math.isfinite(middle):
        return None
    slack = abs(middle) * _FLOAT_SLACK + 1e-30
    return Comparable("number", middle - slack, middle + slack, False)


def _decimal(type_text: str, constant: Constant, zone: str) -> Comparable | None:
    """An interval around the constant: bounds of older files may be finer than the column, whose
    type has changed since and to whose scale values are rounded.
    """
    exact = _inexact(type_text, constant, zone)
    if exact is None:
        return None
    half = 0.500001 * 10.0 ** -(parse(type_text).scale or 0)
    return Comparable("number", exact.low - half, exact.high + half, False)


def _text(_: str, constant: Constant, __: str) -> Comparable | None:
    if constant.kind != "string" or "\x00" in constant.value:
        return None
    constant.value.encode()  # half a surrogate pair has no bytes
    return _exact("text", constant.value)


def _uuid(_: str, constant: Constant, __: str) -> Comparable | None:
    pattern = "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
    if constant.kind != "string" or not re.fullmatch(pattern, constant.value):
        return None
    return _exact("uuid", constant.value)


def _boolean(_: str, constant: Constant, __: str) -> Comparable | None:
    return _exact("boolean", constant.value) if constant.kind == "boolean" else None


def _date(_: str, constant: Constant, __: str) -> Comparable | None:
    value = constant.value
    if constant.kind == "string":
        return _exact("date", _day(value))
    if constant.kind == "date":
        return _exact("date", value)
    if constant.kind in {"zoned", "zoneless"}:  # the date becomes a time: loosely a day around
        return Comparable("date", value.date() - 2 * _DAY, value.date() + 2 * _DAY, False)
    return None


def _day(text: str) -> dt.date:
    if not re.fullmatch(r"\d{4}-\d\d-\d\d", text):
        raise ValueError(text)
    return dt.date.fromisoformat(text)


def _wall_clock(constant: Constant) -> dt.datetime | None:
    """The time that a string, a date or a zoneless constant means; no zone."""
    if constant.kind == "string":
        return (
            dt.datetime.fromisoformat(constant.value) if _TIME.fullmatch(constant.value) else None
        )
    if constant.kind == "date":
        return dt.datetime.combine(constant.value, dt.time())
    return constant.value if constant.kind == "zoneless" else None


def _timestamp(type_text: str, constant: Constant, zone: str) -> Comparable | None:
    value = _wall_clock(constant)
    slack = dt.timedelta()
    if constant.kind == "zoned":  # the column becomes an instant of the session's zone
        value, slack = constant.value, _JUMP
        if value.tzinfo is not None:
            value = value.astimezone(ZoneInfo(zone)).replace(tzinfo=None)
    if value is None:
        return None
    slack += _FINER.get(base_type(type_text), dt.timedelta())
    return Comparable("timestamp", value - slack, value + slack, not slack)


def _timestamptz(_: str, constant: Constant, zone: str) -> Comparable | None:
    value = constant.value if constant.kind == "zoned" else _wall_clock(constant)
    if value is None:
        return None
    slack = dt.timedelta()
    if value.tzinfo is None:
        value = value.replace(tzinfo=ZoneInfo(zone))
        if value.utcoffset() != value.replace(fold=1).utcoffset():
            slack = _JUMP
    if constant.kind == "zoneless":
        slack = _JUMP
    moved = value.astimezone(dt.UTC)
    return Comparable("timestamptz", moved - slack, moved + slack, not slack)


_BY_TYPE: Mapping[str, Callable[[str, Constant, str], Comparable | None]] = {
    **dict.fromkeys(INTEGERS, _integer),
    **dict.fromkeys(("float32", "float64"), _inexact),
    "decimal": _decimal,
    **dict.fromkeys(ZONELESS, _timestamp),
    "varchar": _text,
    "uuid": _uuid,
    "boolean": _boolean,
    "date": _date,
    "timestamptz": _timestamptz,
}
