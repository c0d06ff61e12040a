"""Tell when a file holds no row that satisfies a condition on one column: tests in SQL.

Everything is decided by the lowest and the highest value, as text, of a file's column; a partition
value is both at once. A test that cannot be made is ``None``; a file is pruned only where its test
is true, not where it is NULL or false. A bound and a constant are compared as values of the
column's type, and the comparison is true only when it is certain: unusual text (``inf``, dates BC,
years above 9999) makes it false.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
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

from penstock.lakes.format.schema import Column
from penstock.lakes.format.values.bounds import Comparable, as_text, base_type, comparable
from penstock.sql.text import Among, And, Compare, Condition, IsNull, Leaf, NotNull, Or, StartsWith

# Writers cut long text: the real extension after 256 bytes, others sooner. A lowest value that is
# cut is still low enough; above a highest one that is cut lies all that begins with it.
_CUT = 16
_HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"
_FLOATS = frozenset({"float32", "float64"})


@dataclass(frozen=True, slots=True)
class Extent:
    """Statistics of one column in a file, as SQL.

    ``no_nan`` is whether it surely holds no NaN, ``only_null`` and ``no_null`` whether it holds
    only NULLs, or none.
    """

    low: Text
    high: Text
    no_nan: Test
    only_null: Test
    no_null: Test
    whole: bool  # never cut


def excluded(
    condition: Condition, column: Column, extent: Extent, zone: str, dialect: str
) -> Test | None:
    """The test that no row with this extent satisfies ``condition``, all of it on ``column``."""
    if isinstance(condition, And | Or):
        tests = [excluded(p, column, extent, zone, dialect) for p in condition.parts]
        known = [test for test in tests if test is not None]
        if isinstance(condition, And):
            return or_(*known) if known else None
        return and_(*known) if len(known) == len(tests) else None
    return _Exclusion(column, extent, zone, dialect).leaf(condition)


@dataclass(frozen=True, slots=True)
class _Exclusion:
    column: Column
    extent: Extent
    zone: str
    dialect: str

    def leaf(self, leaf: Leaf) -> Test | None:
        if isinstance(leaf, IsNull):
            return self.extent.no_null
        test = _TESTS[type(leaf)](self, leaf)
        # What compares is not NULL, whatever it is compared with.
        return self.extent.only_null if test is None else or_(test, self.extent.only_null)

    def not_null(self, _: NotNull) -> Test | None:
        return None

    def compare(self, leaf: Compare) -> Test | None:
        value = comparable(self.column.type, leaf.value, self.zone)
        if value is None:
            return None
        if value.kind == "boolean":
            return self._boolean(leaf, bool(value.low))
        if value.kind == "uuid" and leaf.operator != "=":
            return None  # files may hold UUIDs as text of either letter case
        test = _BY_OPERATOR[leaf.operator](self, value)
        is_float = base_type(self.column.type) in _FLOATS
        if test is not None and is_float and leaf.operator in {">", ">=", "<>"}:
            return and_(self.extent.no_nan, test)  # Spark's NaN is above everything
        return test

    def among(self, leaf: Among) -> Test | None:
        tests = [self.compare(Compare(leaf.path, "=", value)) for value in leaf.values]
        known = [test for test in tests if test is not None]
        return and_(*known) if len(known) == len(tests) else None

    def starts_with(self, leaf: StartsWith) -> Test | None:
        if base_type(self.column.type) != "varchar" or "\x00" in leaf.prefix:
            return None
        beginning = func.substr(self.extent.low, 1, len(leaf.prefix))
        above = compares("text", beginning, operator.gt, leaf.prefix, self.dialect)
        value = Comparable("text", leaf.prefix, leaf.prefix, True)
        return or_(above, self._below(value, operator.lt))

    def equal(self, value: Comparable) -> Test:
        return or_(self.at_most(value), self.at_least(value))

    def different(self, value: Comparable) -> Test | None:
        if not value.exact or value.kind == "number":
            return None
        if value.kind == "text" and not self.extent.whole and len(value.low) >= _CUT:
            return None
        return and_(self._low(value, operator.eq), self._high(value, operator.eq))

    def less(self, value: Comparable) -> Test:
        return self._low(value, operator.ge if value.exact else operator.gt)

    def at_most(self, value: Comparable) -> Test:
        return self._low(value, operator.gt)

    def greater(self, value: Comparable) -> Test:
        return self._below(value, operator.le if value.exact else operator.lt)

    def at_least(self, value: Comparable) -> Test:
        return self._below(value, operator.lt)

    def _below(self, value: Comparable, order: Order) -> Test:
        test = self._high(value, order)
        if value.kind != "text" or self.extent.whole:
            return test
        high = self.extent.high
        beginning = func.substr(literal(value.low, String()), 1, func.length(high))
        return and_(test, or_(func.length(high) < _CUT, beginning != high))

    def _low(self, value: Comparable, order: Order) -> Test:
        return compares(value.kind, self.extent.low, order, value.high, self.dialect)

    def _high(self, value: Comparable, order: Order) -> Test:
        return compares(value.kind, self.extent.high, order, value.low, self.dialect)

    def _boolean(self, leaf: Compare, value: bool) -> Test | None:
        if leaf.operator not in {"=", "<>"}:
            return None
        if value is (leaf.operator == "="):
            return func.lower(self.extent.high).in_(("0", "false"))
        return func.lower(self.extent.low).in_(("1", "true"))


_BY_OPERATOR: Mapping[str, Callable[[_Exclusion, Comparable], Test | None]] = {
    "=": _Exclusion.equal,
    "<>": _Exclusion.different,
    "<": _Exclusion.less,
    "<=": _Exclusion.at_most,
    ">": _Exclusion.greater,
    ">=": _Exclusion.at_least,
}
_TESTS: Mapping[type, Callable[..., Test | None]] = {
    Compare: _Exclusion.compare,
    Among: _Exclusion.among,
    StartsWith: _Exclusion.starts_with,
    NotNull: _Exclusion.not_null,
}


def identity(value: ColumnElement[str]) -> Extent:
    """The extent of a column that a file is partitioned by: one value, or NULL throughout."""
    return Extent(
        low=value,
        high=value,
        no_nan=func.lower(value) != "nan",
        only_null=value.is_(None),
        no_null=and_(value.is_not(None), value != _HIVE_NULL),
        whole=True,
    )


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
    """SQLite's CAST accepts any text, so text that is not a number has to be excluded.

    The comparison comes first: it is the cheaper test, and most files are decided by one side.
    Comparing the text with that of the cast number costs a fifth of testing its characters.
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
    """PostgreSQL's CAST fails on other text; only CASE is certain to test before it casts."""
    pattern = "^-?[0-9]+$" if kind == "integer" else r"^-?[0-9]+(\.[0-9]*)?([eE][-+]?[0-9]{1,3})?$"
    exact = Decimal(value) if kind == "integer" else Decimal(repr(value))
    test = order(cast(text, Numeric()), literal(exact, Numeric()))
    return case((text.regexp_match(pattern), test), else_=false())


def _on_duckdb(kind: str, text: Text, order: Order, value: Any) -> Test:
    """As on PostgreSQL: CAST fails on text that is not a number, so CASE tests first."""
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
