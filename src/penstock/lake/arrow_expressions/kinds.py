"""Types of expressions, which are Arrow's, and how an expression of another type is refused."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

import pyarrow as pa

INTEGERS: tuple[pa.DataType, ...] = (pa.int8(), pa.int16(), pa.int32(), pa.int64())
MOMENT, CLOCK = pa.timestamp("us", "UTC"), pa.timestamp("us")  # with a zone, and without one
_COMPARED = (pa.bool_(), pa.string(), pa.date32(), MOMENT, CLOCK)
_DIGITS = dict(zip(INTEGERS, (3, 5, 10, 20), strict=True))
_MOST_DIGITS = 38
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?")
_WHOLE, _BROKEN = re.compile(r"0|[1-9][0-9]*"), re.compile(r"(0|[1-9][0-9]*)\.[0-9]+")


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant as it is written, with the type that Spark gives it."""

    value: int | Decimal | str
    kind: pa.DataType


def integer_or_decimal(text: str, *, negative: bool = False) -> Literal:
    """What a number without a suffix is: int, else bigint, else a decimal of its digits."""
    sign = "-" if negative else ""
    if _WHOLE.fullmatch(text):
        value = int(sign + text)
        for kind in (pa.int32(), pa.int64()):
            if value.bit_length() < kind.bit_width or value == -(2 ** (kind.bit_width - 1)):
                return Literal(value, kind)
        return Literal(Decimal(value), decimal(len(text), 0))
    if _BROKEN.fullmatch(text):
        number = Decimal(sign + text)
        scale = len(text) - text.index(".") - 1
        return Literal(number, decimal(max(len(number.as_tuple().digits), scale), scale))
    raise NotSupportedByArrow(f"the number {text}")


def day(text: str) -> dt.date:
    if not _DATE.fullmatch(text):
        raise NotSupportedByArrow("a date in another form")
    try:
        return dt.date.fromisoformat(text)
    except ValueError as error:
        raise NotSupportedByArrow(str(error)) from error


def clock(text: str) -> dt.datetime:
    """A time without a zone; of a date alone its midnight."""
    if _DATE.fullmatch(text):
        return dt.datetime.combine(day(text), dt.time())
    if not _TIME.fullmatch(text):
        raise NotSupportedByArrow("a time in another form")
    try:
        return dt.datetime.fromisoformat(text)
    except ValueError as error:
        raise NotSupportedByArrow(str(error)) from error


def decimal(precision: int, scale: int) -> pa.DataType:
    """Of at most 38 digits: from there on Spark loses some of them, by rules of its own."""
    if precision > _MOST_DIGITS:
        raise NotSupportedByArrow("a decimal of too many digits")
    return pa.decimal128(precision, scale)


def is_decimal(kind: pa.DataType) -> bool:
    return bool(pa.types.is_decimal128(kind))


def is_number(kind: pa.DataType) -> bool:
    return kind in INTEGERS or is_decimal(kind)


def as_decimal(kind: pa.DataType) -> pa.DataType:
    """What Spark takes an integer for beside a decimal."""
    return decimal(_DIGITS[kind], 0) if kind in _DIGITS else kind


def digits_of(value: int) -> pa.DataType:
    """What Spark takes an integer literal for beside a decimal."""
    return decimal(len(str(abs(value))), 0)


def common(kinds: Sequence[pa.DataType]) -> pa.DataType:
    """What Spark casts all of these to, exactly. Raises NotSupportedByArrow for kinds that are not
    compared.
    """
    known = [kind for kind in kinds if not pa.types.is_null(kind)]
    if not known:
        raise NotSupportedByArrow("nothing but NULL")
    if all(kind in INTEGERS for kind in known):
        return max(known, key=lambda kind: kind.bit_width)
    if all(map(is_number, known)):
        wide = [as_decimal(kind) for kind in known]
        scale = max(kind.scale for kind in wide)
        return decimal(max(kind.precision - kind.scale for kind in wide) + scale, scale)
    if len(set(known)) == 1 and known[0] in _COMPARED:
        return known[0]
    raise NotSupportedByArrow(f"{', '.join(map(str, known))} together")


def sum_of(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    """The type of the sum, or difference, of two decimals."""
    scale = max(left.scale, right.scale)
    whole = max(left.precision - left.scale, right.precision - right.scale)
    return decimal(whole + scale + 1, scale)


def product_of(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    return decimal(left.precision + right.precision + 1, left.scale + right.scale)


class NotSupportedByArrow(Exception):
    """This is left to Spark, which computes it or says what is wrong."""
