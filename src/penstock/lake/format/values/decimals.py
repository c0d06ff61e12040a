"""Decimals rounded, and as floats.

A float is what DuckDB makes of a decimal: by a division, which does not always give the nearest.
What the float holds exactly is divided by the power of ten at once; of other values the part after
the point alone is, and added (measured, 1.5.5; decimals of more than 18 digits differ). For columns
of Spark `reading.conversions.widening` does it.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Decimal, localcontext

MOST_DIGITS = 18  # of a decimal that is turned here
EXACT = {"float32": 1 << 24, "float64": 1 << 53}  # up to which a float holds all whole numbers


def rounded(value: Decimal, scale: int) -> Decimal:
    """With so many digits after the point, however many there are: Python's own limit is 28."""
    with localcontext(prec=100):
        return value.quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP)


def float_of(scale: int, kind: str) -> Callable[[Decimal], float]:
    """From a decimal with ``scale`` digits after the point; a ``float32`` as the float of 64 bits
    that it equals.
    """
    fitted = _single if kind == "float32" else float
    divisor = fitted(10.0**scale)

    def convert(value: Decimal) -> float:
        unscaled = int(value.scaleb(scale))
        if abs(unscaled) <= EXACT[kind] or not scale:
            return fitted(nearest(unscaled, kind) / divisor)
        whole, digits = divmod(abs(unscaled), 10**scale)
        part = fitted(nearest(digits, kind) / divisor)
        found = fitted(nearest(whole, kind) + part)
        return -found if unscaled < 0 else found

    return convert


def nearest(number: int, kind: str) -> float:
    """The float next to a whole number."""
    return float(number) if kind == "float64" else single(Decimal(number))


def single(value: Decimal) -> float:
    """The float of 32 bits next to a number; by way of the next one of 64 it may be another."""
    found = float(value)
    if not math.isfinite(found) or Decimal(found) == value:
        return _single(found)
    if abs(found) > value.copy_abs():
        found = math.nextafter(found, 0)
    (bits,) = struct.unpack("<q", struct.pack("<d", found))  # odd: it lies between two of 32 bits
    return _single(struct.unpack("<d", struct.pack("<q", bits | 1))[0])


def _single(value: float) -> float:
    found: float = struct.unpack("<f", struct.pack("<f", value))[0]
    return found
