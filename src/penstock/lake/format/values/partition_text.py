"""Partition values as the catalog's text: as Spark casts them, and the bucket of ``bucket(N)``.

A bucket is ``(murmur3_32(v) & INT_MAX) % N``, the hash over the bytes that Iceberg names: whole
numbers and dates (days) as 8 bytes, little endian, strings as UTF-8. Measured against the real
extension; other types have no buckets.
"""

from __future__ import annotations

import datetime as dt
import math
import re
import struct
from collections.abc import Callable, Mapping

from penstock.lake.format.values.bounds import base_type, bound_to_text

_DATE = re.compile(r"([+-]?)(\d{4,})(-\d\d-\d\d)(.*)", re.DOTALL)
_YEARS_BC = " (BC)"


def catalog_text(type_text: str, text: str) -> str:
    """``text`` (Spark's cast of a value to string) as the real extension writes it (measured)."""
    turn = _TURNS.get(base_type(type_text))
    return text if turn is None else turn(type_text, text)


def _float(type_text: str, text: str) -> str:
    value = float(text)
    if math.isnan(value):
        return "nan"
    if base_type(type_text) == "float32" and math.isfinite(value):
        value = struct.unpack("<f", struct.pack("<f", value))[0]
    return str(bound_to_text(type_text, value + 0.0))  # -0.0 and 0.0 are one value


def _time(_: str, text: str) -> str:
    """Spark signs years before 0 and beyond 9999; the extension counts years before Christ."""
    match = _DATE.fullmatch(text)
    if match is None or not match[1]:
        return _before_christ(match) if match and int(match[2]) == 0 else text
    return text[1:] if match[1] == "+" else _before_christ(match)


def _before_christ(match: re.Match[str]) -> str:
    year = int(match[2]) + 1
    return f"{year:04d}{match[3]}{match[4]}{_YEARS_BC}"


_TURNS: Mapping[str, Callable[[str, str], str]] = {
    **dict.fromkeys(("float32", "float64"), _float),
    **dict.fromkeys(("date", "timestamp", "timestamp_s", "timestamp_ms", "timestamptz"), _time),
    "uuid": lambda _, text: text.lower(),
}


_MASK = 0xFFFFFFFF


def bucket(value: object, buckets: int) -> int | None:
    """The bucket of a value of a column (int, str, date); ``None`` where it is not known."""
    data = _bytes(value)
    return None if data is None else (murmur3_32(data) & 0x7FFFFFFF) % buckets


def _bytes(value: object) -> bytes | None:
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        return (value - dt.date(1970, 1, 1)).days.to_bytes(8, "little", signed=True)
    if isinstance(value, int) and not isinstance(value, bool):
        return value.to_bytes(8, "little", signed=True) if abs(value) < 1 << 63 else None
    return None


def murmur3_32(data: bytes) -> int:
    """MurmurHash3, x86, 32 bits, seed 0 (public domain, Austin Appleby)."""
    state = 0
    whole = len(data) // 4 * 4
    for at in range(0, whole, 4):
        state ^= _scrambled(int.from_bytes(data[at : at + 4], "little"))
        state = (_rotated(state, 13) * 5 + 0xE6546B64) & _MASK
    if whole < len(data):
        state ^= _scrambled(int.from_bytes(data[whole:], "little"))
    state ^= len(data)
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        state = ((state ^ state >> shift) * factor) & _MASK
    return state ^ state >> 16


def _scrambled(block: int) -> int:
    return _rotated(block * 0xCC9E2D51 & _MASK, 15) * 0x1B873593 & _MASK


def _rotated(value: int, bits: int) -> int:
    return (value << bits | value >> 32 - bits) & _MASK
