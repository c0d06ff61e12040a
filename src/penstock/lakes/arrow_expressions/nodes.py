"""Typed expressions that Arrow can compute, with the types that Spark gives them."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Protocol, TypeAlias

from penstock.lazy import exp, pa, pc

Rows: TypeAlias = "pa.Table | pa.RecordBatch"
Value = Any  # an array, a chunked one or a scalar of Arrow's, which has no types of its own

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
    """The type of a number without a suffix: int, else bigint, else a decimal of its digits."""
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
    """A decimal of at most 38 digits: beyond them Spark drops digits by rules of its own."""
    if precision > _MOST_DIGITS:
        raise NotSupportedByArrow("a decimal of too many digits")
    return pa.decimal128(precision, scale)


def is_decimal(kind: pa.DataType) -> bool:
    return bool(pa.types.is_decimal128(kind))


def is_number(kind: pa.DataType) -> bool:
    return kind in INTEGERS or is_decimal(kind)


def as_decimal(kind: pa.DataType) -> pa.DataType:
    """The decimal type that Spark gives an integer beside a decimal."""
    return decimal(_DIGITS[kind], 0) if kind in _DIGITS else kind


def digits_of(value: int) -> pa.DataType:
    """The decimal type that Spark gives an integer literal beside a decimal."""
    return decimal(len(str(abs(value))), 0)


def common(kinds: Sequence[pa.DataType]) -> pa.DataType:
    """The type to which Spark casts all of these without loss. Raises NotSupportedByArrow for types
    that Arrow does not compare.
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
    """Arrow does not compute this: it falls back to Spark, which may also report an error."""


class Compile(Protocol):
    """Compiles the parts of an expression to nodes."""

    @property
    def in_utc(self) -> bool:
        """Return whether times without a zone are in UTC; else times with a zone fall back to
        Spark.
        """
        ...

    def __call__(self, tree: exp.Expr) -> Node: ...


@dataclass(frozen=True, slots=True)
class Node:
    """``kind`` is the type that Spark gives it; ``run`` computes it from the rows of a table.

    What cannot be computed (an overflow, a division by zero) raises ArrowInvalid or
    NotSupportedByArrow.
    """

    kind: pa.DataType
    run: Callable[[Rows], Value]
    columns: frozenset[str] = frozenset()
    literal: Literal | None = None  # as written; Spark treats it otherwise than its value

    def cast(self, kind: pa.DataType) -> Node:
        """Cast without loss, or raise."""
        if self.kind == kind:
            return self
        return of(kind, lambda value: pc.cast(value, kind, safe=True), self)


def constant(kind: pa.DataType, value: object, literal: Literal | None = None) -> Node:
    scalar = pa.scalar(value, kind)
    return Node(kind, lambda _: scalar, literal=literal)


def time_of(text: str, kind: pa.DataType, node: Compile) -> Node:
    """A literal as a time, in the session's zone where ``kind`` has a zone."""
    if kind == MOMENT and not node.in_utc:
        raise NotSupportedByArrow("a time in the zone of the session")
    time = clock(text)
    return constant(kind, time.replace(tzinfo=dt.UTC) if kind == MOMENT else time)


def null() -> Node:
    return constant(pa.null(), None)


def column(name: str, kind: pa.DataType) -> Node:
    def run(rows: Rows) -> Value:
        values = rows[name]
        if pa.types.is_dictionary(values.type):
            values = values.cast(values.type.value_type)
        if values.type != kind:
            raise NotSupportedByArrow(f"column {name} is {values.type}, not {kind}")
        return values

    return Node(kind, run, frozenset({name}))


def of(kind: pa.DataType, compute: Callable[..., Value], *parts: Node) -> Node:
    """``compute`` over the values of other nodes; its result must have type ``kind``."""

    def run(rows: Rows) -> Value:
        result = compute(*(part.run(rows) for part in parts))
        if result.type != kind:
            raise NotSupportedByArrow(f"{result.type} is not {kind}")
        return result

    columns = frozenset[str]().union(*(part.columns for part in parts))
    if columns:
        return Node(kind, run, columns)
    folded = run(pa.table({}))  # an error of constants alone is one wherever they stand
    return Node(kind, lambda _: folded)


def fitted(part: Node, kind: pa.DataType) -> Node:
    """``part`` cast to ``kind``; integers first become decimals of all their digits."""
    if part.kind in INTEGERS and is_decimal(kind):
        return part.cast(as_decimal(part.kind)).cast(kind)
    return part.cast(kind)
