"""Values as the format's text, and back: column bounds and partition values.

The text is what the real extension writes (measured, see the tests): booleans ``0`` and ``1``,
blobs in upper-case hex, timestamps without trailing zeros in the fraction. A value without a safe
text gives ``None``, which means "unknown" to readers.
"""

from __future__ import annotations

import datetime as dt
import math
import re
import struct
import uuid
from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import lru_cache
from typing import Any

_UTC = dt.UTC
_TIMESTAMP = re.compile(
    r"(\d{4})-(\d\d)-(\d\d) (\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?(?:\+00(?::?00)?)?"
)


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


def _integer_text(_: str, value: Any) -> str:
    return str(int(value))


def _boolean_text(_: str, value: Any) -> str:
    return "1" if value else "0"


def _double_text(_: str, value: Any) -> str | None:
    return None if math.isnan(value) else repr(float(value))


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


def _date_text(_: str, value: Any) -> str:
    return f"{value.year:04d}-{value.month:02d}-{value.day:02d}"


def _timestamp_text(_: str, value: Any) -> str | None:
    return format_timestamp(value.replace(tzinfo=None))


def _timestamptz_text(_: str, value: Any) -> str | None:
    return format_timestamp(value) if value.tzinfo is not None else None


def _varchar_text(_: str, value: Any) -> str | None:
    return None if "\x00" in value else str(value)  # PostgreSQL stores no NUL in text


def _blob_text(_: str, value: Any) -> str:
    return bytes(value).hex().upper()


def _uuid_text(_: str, value: Any) -> str:
    return str(value if isinstance(value, uuid.UUID) else uuid.UUID(value))


_INTEGERS = (
    *("int8", "int16", "int32", "int64", "int128"),
    *("uint8", "uint16", "uint32", "uint64", "uint128"),
)

_WRITERS: Mapping[str, Callable[[str, Any], str | None]] = {
    **dict.fromkeys(_INTEGERS, _integer_text),
    **dict.fromkeys(("timestamp", "timestamp_s", "timestamp_ms", "timestamp_ns"), _timestamp_text),
    "boolean": _boolean_text,
    "float32": _float_text,
    "float64": _double_text,
    "decimal": _decimal_text,
    "date": _date_text,
    "timestamptz": _timestamptz_text,
    "varchar": _varchar_text,
    "json": _varchar_text,
    "blob": _blob_text,
    "uuid": _uuid_text,
}


def _read_boolean(text: str) -> bool:
    return {"0": False, "1": True, "false": False, "true": True}[text.lower()]


def _read_date(text: str) -> dt.date:
    return dt.date.fromisoformat(text)


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
    "boolean": _read_boolean,
    "float32": _read_float,
    "float64": _read_float,
    "decimal": Decimal,
    "date": _read_date,
    "varchar": str,  # Python compares code points, which sort as their UTF-8 bytes do
    "json": str,
    "blob": bytes.fromhex,
    "uuid": uuid.UUID,
}
