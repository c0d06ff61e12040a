"""``bucket(N)``: ``(murmur3_32(v) & INT_MAX) % N``, the hash over the bytes that Iceberg names.

Whole numbers and dates (days) are hashed as 8 bytes, little endian, strings as UTF-8. Measured
against the real extension; values of other types are not guessed at.
"""

from __future__ import annotations

import datetime as dt

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
