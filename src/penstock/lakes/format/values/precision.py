"""Values of more precision than a type has: decimals rounded, nanoseconds as microseconds.

Decimals rounded, and as floats.

DuckDB converts a decimal to a float by a division, which does not always give the nearest float.
If the float can hold the digits exactly, they are divided by the power of ten; otherwise only the
part after the point is divided, and added to the whole part (measured, 1.5.5; decimals of more than
18 digits differ). `reading.conversions.widening` does it for Spark's columns.

Timestamps of Arrow in nanoseconds, as pandas makes them, in the microseconds of Spark.

A value that has a part below a microsecond is an error: a cut one is another value.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Decimal, localcontext

from penstock.lazy import pa

MOST_DIGITS = 18  # of a decimal that is converted this way
EXACT = {"float32": 1 << 24, "float64": 1 << 53}  # up to which a float holds all whole numbers


def rounded(value: Decimal, scale: int) -> Decimal:
    """Rounded to ``scale`` digits after the point, without Python's limit of 28 digits."""
    with localcontext(prec=100):
        return value.quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP)


def float_of(scale: int, kind: str) -> Callable[[Decimal], float]:
    """The conversion of a decimal with ``scale`` digits after the point to a float; a ``float32``
    is returned as the equal 64-bit float.
    """
    fitted = _single if kind == "float32" else float
    divisor = fitted(10.0**scale)

    def convert(value: Decimal) -> float:
        unscaled = int(value.scaleb(scale))
        if abs(unscaled) <= EXACT[kind] or not scale:
            return fitted(nearest(unscaled, kind) / divisor)
        whole, digits = divmod(abs(unscaled), 10**scale)
        part = fitted(nearest(digits, kind) / divisor)
        number = fitted(nearest(whole, kind) + part)
        return -number if unscaled < 0 else number

    return convert


def nearest(number: int, kind: str) -> float:
    """The float next to a whole number."""
    return float(number) if kind == "float64" else single(Decimal(number))


def single(value: Decimal) -> float:
    """The 32-bit float nearest to a number; rounding to 64 bits first could give another."""
    number = float(value)
    if not math.isfinite(number) or Decimal(number) == value:
        return _single(number)
    if abs(number) > value.copy_abs():
        number = math.nextafter(number, 0)
    (bits,) = struct.unpack("<q", struct.pack("<d", number))  # odd: it lies between two of 32 bits
    return _single(struct.unpack("<d", struct.pack("<q", bits | 1))[0])


def _single(value: float) -> float:
    nearest_float: float = struct.unpack("<f", struct.pack("<f", value))[0]
    return nearest_float


HINT = "round the values, in pandas by .dt.floor('us')"


class TooFine(ValueError):
    """Raised for a value with nanoseconds; ``row`` counts from 1."""

    def __init__(self, row: int, value: str) -> None:
        super().__init__(f"{value} holds nanoseconds")
        self.row = row
        self.value = value


def in_micros(kind: pa.DataType) -> pa.DataType:
    """Return an Arrow type with its timestamps in microseconds, also those of nested types."""
    from pyarrow import types

    if types.is_timestamp(kind) and kind.unit == "ns":
        return pa.timestamp("us", kind.tz)
    if types.is_struct(kind):
        return pa.struct([field.with_type(in_micros(field.type)) for field in kind])
    if types.is_map(kind):
        return pa.map_(in_micros(kind.key_type), in_micros(kind.item_type))
    if types.is_list(kind):
        return pa.list_(kind.value_field.with_type(in_micros(kind.value_type)))
    return kind


def column_in_micros(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column with its timestamps in microseconds. Raises TooFine."""
    kind = in_micros(values.type)
    if kind.equals(values.type):
        return values
    try:
        return values.cast(kind)
    except pa.ArrowInvalid:
        row = _row_that_fails(values, kind)
    value = values.slice(row, 1).cast(pa.string()) if pa.types.is_timestamp(values.type) else None
    raise TooFine(row + 1, "a nested value" if value is None else value[0].as_py())


def _row_that_fails(values: pa.ChunkedArray, kind: pa.DataType) -> int:
    """Return the index of a row without a cast, by halves."""
    low, high = 0, len(values)
    while high - low > 1:
        middle = (low + high) // 2
        try:
            values.slice(low, middle - low).cast(kind)
        except pa.ArrowInvalid:
            high = middle
        else:
            low = middle
    return low
