"""Bounds are text: how they are compared as what they mean, in each database.

A comparison is of the text of a bound with one constant, and true only when it surely holds: text
that is not plainly a value of the kind (``inf``, dates BC, years above 9999) compares with nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Double,
    Float,
    Integer,
    Numeric,
    String,
    UnicodeText,
    and_,
    case,
    cast,
    false,
    func,
    literal,
    not_,
    or_,
)

from penstock.lake.format.comparable import as_text

Text = ColumnElement[str]
Test = ColumnElement[bool]
Order = Callable[[Any, Any], Any]

_INT64 = (1 << 63) - 1
# Characters. Of files that are finer columns have the values to that.
TO_MICROSECONDS = len("2013-01-02 03:04:05.000006")


def compares(kind: str, text: Text, order: Order, value: Any, dialect: str) -> Test:
    """``order(text, value)`` (``operator.lt`` and so on), false where it is not certain."""
    if kind in {"integer", "number"}:
        return _NUMBERS.get(dialect, _on_duckdb)(kind, text, order, value)
    guard = _GUARDS.get(kind)
    left = text.collate("C") if dialect == "postgresql" else text
    test = order(left, literal(as_text(value), String()))
    return test if guard is None else and_(guard(text), test)


def _on_sqlite(kind: str, text: Text, order: Order, value: Any) -> Test:
    """CAST takes what it can of any text there, so what is no number has to be kept away.

    The comparison comes first: it is the cheaper test, and most files are told by one side. That a
    number turned into text again is the same text costs a fifth of looking at its characters.
    """
    glob = text.bool_op("GLOB")
    if kind == "integer":
        if abs(value) > _INT64:
            return false()
        number = cast(text, Integer())
        spelled = and_(glob("[-0-9]*"), glob("*[0-9]"), not_(glob("?*[^0-9]*")))
        plain = or_(cast(number, UnicodeText()) == text, spelled)
        return and_(order(number, literal(value, BigInteger())), plain)
    plain = and_(or_(glob("[0-9]*"), glob("-[0-9]*")), glob("*[0-9]"), not_(glob("*[^-+0-9.eE]*")))
    return and_(order(cast(text, _Real()), literal(value, Float())), plain)


def _on_postgresql(kind: str, text: Text, order: Order, value: Any) -> Test:
    """CAST fails there on what is no number; only CASE is sure to test before it casts."""
    pattern = "^-?[0-9]+$" if kind == "integer" else r"^-?[0-9]+(\.[0-9]*)?([eE][-+]?[0-9]{1,3})?$"
    exact = Decimal(value) if kind == "integer" else Decimal(repr(value))
    test = order(cast(text, Numeric()), literal(exact, Numeric()))
    return case((text.regexp_match(pattern), test), else_=false())


def _on_duckdb(kind: str, text: Text, order: Order, value: Any) -> Test:
    """As on PostgreSQL: CAST fails, and CASE keeps what is no number from it."""
    if kind == "integer":
        if abs(value) > _INT64:
            return false()
        pattern = "^-?[0-9]{1,37}$"
        test = order(cast(text, Numeric(38, 0)), literal(value, BigInteger()))
    else:
        pattern = r"^-?[0-9]+(\.[0-9]*)?([eE][-+]?[0-9]{1,3})?$"
        test = order(cast(text, Double()), literal(value, Double()))
    return case((func.regexp_matches(text, pattern), test), else_=false())


class _Real(Float[float]):
    """``REAL``: SQLite's affinity of ``FLOAT`` is the same, its name in a CAST is this."""

    __visit_name__ = "REAL"


_NUMBERS: Mapping[str, Callable[[str, Text, Order, Any], Test]] = {
    "sqlite": _on_sqlite,
    "postgresql": _on_postgresql,
}


def _is_date(text: Text) -> Test:
    return and_(func.length(text) == 10, func.substr(text, 5, 1) == "-")


def _is_time(text: Text) -> Test:
    """To the microsecond: values of columns are cut to that where files are finer."""
    return and_(
        func.length(text) <= TO_MICROSECONDS,
        func.substr(text, 5, 1) == "-",
        func.substr(text, 11, 1) == " ",
        not_(or_(text.like("%+%"), text.like("%BC%"))),
    )


def _is_instant(text: Text) -> Test:
    """Digits sort after ``.`` and that after ``+``: in UTC the text sorts as the time does."""
    plain = and_(
        func.length(text) <= TO_MICROSECONDS + len("+00"),
        func.substr(text, 5, 1) == "-",
        func.substr(text, 11, 1) == " ",
    )
    return and_(plain, text.like("%:__+00") | text.like("%.%+00"), not_(text.like("%BC%")))


_GUARDS: Mapping[str, Callable[[Text], Test]] = {
    "date": _is_date,
    "timestamp": _is_time,
    "timestamptz": _is_instant,
    "uuid": lambda text: func.length(text) == 36,
}
