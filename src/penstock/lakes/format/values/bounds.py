"""Values as the format's text, and back: column bounds and partition values.

The text is what the real extension writes (measured, see the tests): booleans ``0`` and ``1``,
blobs in upper-case hex, timestamps without trailing zeros in the fraction. A value without a safe
text gives ``None``, which means "unknown" to readers.

A query's constant is compared with bounds as a `Comparable`, only where Spark's coercion to the
column's type leaves a single meaning. Where the comparison is not exact (floats, times across
zones) the constant becomes an interval that certainly contains it.
"""

from __future__ import annotations

import datetime as dt
import math
import re
import struct
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from penstock.sql.text import Constant

_DECIMAL = re.compile(r"decimal\(\s*(\d+)\s*,\s*(-?\d+)\s*\)")
_UTC = dt.UTC
_TIMESTAMP = re.compile(
    r"(\d{4})-(\d\d)-(\d\d) (\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?(?:\+00(?::?00)?)?"
)


@dataclass(frozen=True, slots=True)
class ParsedType:
    """``decimal(10,2)`` is ``("decimal", 10, 2)``; every other type is its name alone."""

    name: str
    precision: int | None = None
    scale: int | None = None


def parse(text: str) -> ParsedType:
    """Parse the format's type text."""
    match = _DECIMAL.fullmatch(text.lower())
    if match is not None:
        return ParsedType("decimal", int(match[1]), int(match[2]))
    return ParsedType(base_type(text))


@lru_cache(1024)  # asked for each value
def base_type(text: str) -> str:
    """``decimal(10,2)`` -> ``decimal``; other types are their own name, in lower case."""
    return text.lower().split("(", 1)[0].strip()


def bound_to_text(type_text: str, value: object) -> str | None:
    """The text of one bound of a column of this type; ``None`` when there is no safe text.

    ``value`` is Python's for the type: bool, int, float, Decimal, date, datetime (aware for
    ``timestamptz``), str, bytes, UUID. A NaN is not a bound.
    """
    writer = _WRITERS.get(base_type(type_text))
    return None if writer is None or value is None else writer(type_text, value)


def partition_to_text(type_text: str, value: object) -> str | None:
    """The text of a partition value: as a bound, but booleans are ``true`` and ``false``."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return bound_to_text(type_text, value)


def bound_from_text(type_text: str, text: str) -> Any:
    """A value that compares as the type does, or ``None`` for text that is not understood."""
    reader = _READERS.get(base_type(type_text))
    try:
        return None if reader is None else reader(text)
    except (ValueError, KeyError, ArithmeticError):
        return None


def compare_bounds(type_text: str, a: str, b: str) -> int | None:
    """-1, 0 or 1 as ``a`` sorts before, with or after ``b``; ``None`` if either is unreadable."""
    left, right = bound_from_text(type_text, a), bound_from_text(type_text, b)
    if left is None or right is None:
        return None
    return int(left > right) - int(left < right)


def format_timestamp(value: dt.datetime) -> str:
    """``2013-01-02 03:04:05.12``; an aware value is moved to UTC and ends in ``+00``."""
    aware = value.tzinfo is not None
    moved = value.astimezone(_UTC) if aware else value
    text = f"{moved.year:04d}-{moved:%m-%d %H:%M:%S}"
    fraction = f".{moved.microsecond:06d}".rstrip("0") if moved.microsecond else ""
    return f"{text}{fraction}{'+00' if aware else ''}"


def format_nanoseconds(nanoseconds: int) -> str | None:
    """The text of a ``timestamp_ns`` from its epoch value; ``None`` outside years 1 to 9999."""
    seconds, rest = divmod(nanoseconds, 1_000_000_000)
    try:
        moment = dt.datetime(1970, 1, 1) + dt.timedelta(seconds=seconds)  # noqa: DTZ001 - no zone
    except OverflowError:
        return None
    return format_timestamp(moment) + (f".{rest:09d}".rstrip("0") if rest else "")


def _float_text(_: str, value: Any) -> str | None:
    """The shortest text that gives the same 32-bit float back."""
    if math.isnan(value):
        return None
    if math.isinf(value):
        return repr(float(value))
    exact = struct.pack("<f", value)
    for digits in range(6, 9):
        short = float(f"{value:.{digits}g}")
        if abs(short) <= _FLOAT_MAX and struct.pack("<f", short) == exact:
            return repr(short)
    return repr(float(f"{value:.9g}"))


_FLOAT_MAX = struct.unpack("<f", b"\xff\xff\x7f\x7f")[0]


def _decimal_text(type_text: str, value: Any) -> str | None:
    scale = int(type_text.rstrip(") ").rsplit(",", 1)[1]) if "," in type_text else 0
    sign, digits, exponent = Decimal(value).as_tuple()
    if not isinstance(exponent, int):
        return None  # NaN or infinity
    unscaled = int("".join(map(str, digits)))
    if exponent + scale < 0:
        return None  # more digits than the type holds: not this column's value
    padded = str(unscaled * 10 ** (exponent + scale)).rjust(scale + 1, "0")
    text = f"{padded[:-scale]}.{padded[-scale:]}" if scale else padded
    return f"-{text}" if sign and unscaled else text


def _varchar_text(_: str, value: Any) -> str | None:
    return None if "\x00" in value else str(value)  # PostgreSQL stores no NUL in text


_INTEGERS = (
    *("int8", "int16", "int32", "int64", "int128"),
    *("uint8", "uint16", "uint32", "uint64", "uint128"),
)

_WRITERS: Mapping[str, Callable[[str, Any], str | None]] = {
    **dict.fromkeys(_INTEGERS, lambda _, value: str(int(value))),
    **dict.fromkeys(
        ("timestamp", "timestamp_s", "timestamp_ms", "timestamp_ns"),
        lambda _, value: format_timestamp(value.replace(tzinfo=None)),
    ),
    "boolean": lambda _, value: "1" if value else "0",
    "float32": _float_text,
    "float64": lambda _, value: None if math.isnan(value) else repr(float(value)),
    "decimal": _decimal_text,
    "date": lambda _, value: f"{value.year:04d}-{value.month:02d}-{value.day:02d}",
    "timestamptz": lambda _, value: None if value.tzinfo is None else format_timestamp(value),
    "varchar": _varchar_text,
    "json": _varchar_text,
    "blob": lambda _, value: bytes(value).hex().upper(),
    "uuid": lambda _, value: str(value if isinstance(value, uuid.UUID) else uuid.UUID(value)),
}


def _read_timestamp(text: str) -> tuple[int, ...]:
    match = _TIMESTAMP.fullmatch(text)
    if match is None:
        raise ValueError(text)
    *parts, fraction = match.groups()
    return (*map(int, parts), int((fraction or "0").ljust(9, "0")))


def _read_float(text: str) -> float:
    value = float(text)
    if math.isnan(value):
        raise ValueError(text)
    return value


_READERS: Mapping[str, Callable[[str], Any]] = {
    **dict.fromkeys(_INTEGERS, int),
    **dict.fromkeys(
        ("timestamp", "timestamp_s", "timestamp_ms", "timestamp_ns", "timestamptz"),
        _read_timestamp,
    ),
    "boolean": lambda text: {"0": False, "1": True, "false": False, "true": True}[text.lower()],
    "float32": _read_float,
    "float64": _read_float,
    "decimal": Decimal,
    "date": dt.date.fromisoformat,
    "varchar": str,  # Python compares code points, which sort as their UTF-8 bytes do
    "json": str,
    "blob": bytes.fromhex,
    "uuid": uuid.UUID,
}


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
