"""Random expressions of what is computed by Arrow, as texts of Spark's SQL."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pyarrow as pa
from hypothesis import strategies as st

COLUMNS: dict[str, pa.DataType] = {
    "tiny": pa.int8(),
    "small": pa.int16(),
    "number": pa.int32(),
    "large": pa.int64(),
    "yes": pa.bool_(),
    "no": pa.bool_(),
    "text": pa.string(),
    "word": pa.string(),
    "day": pa.date32(),
    "price": pa.decimal128(10, 2),
    "tax": pa.decimal128(5, 4),
    "huge": pa.decimal128(38, 0),
    "ratio": pa.float64(),
    "moment": pa.timestamp("us", "UTC"),
    "clock": pa.timestamp("us"),
}
_TEXTS = ["", "a", "A", "ab", "b%", "a_b", "Ä", "ä", "zz", "\U0001f600", "￿"]
_DAYS = [dt.date(1, 1, 1), dt.date(1582, 10, 10), dt.date(2012, 12, 31), dt.date(9999, 12, 31)]
_TIMES = [
    dt.datetime.fromisoformat(text).replace(tzinfo=dt.UTC)
    for text in (
        *("0001-01-01", "1582-10-10 03:00", "9999-12-31 23:59"),
        *("2012-12-31", "2012-12-31 10:00:00.5"),
    )
]


def _whole(bits: int) -> st.SearchStrategy[int]:
    least, most = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    return st.sampled_from([least, -101, -7, -1, 0, 1, 2, 3, 7, 100, most]).filter(
        lambda value: least <= value <= most
    )


def _decimal(precision: int, scale: int) -> st.SearchStrategy[Decimal]:
    most = 10**precision - 1
    units = st.sampled_from([-most, -(10**scale), -1, 0, 1, 50, 10**scale, 15, most])
    return units.map(lambda value: Decimal((value < 0, tuple(map(int, str(abs(value)))), -scale)))


_VALUES: dict[str, st.SearchStrategy[object]] = {
    "tiny": _whole(8),
    "small": _whole(16),
    "number": _whole(32),
    "large": _whole(64),
    "yes": st.booleans(),
    "no": st.booleans(),
    "text": st.sampled_from(_TEXTS),
    "word": st.sampled_from(_TEXTS),
    "day": st.sampled_from(_DAYS),
    "price": _decimal(10, 2),
    "tax": _decimal(5, 4),
    "huge": _decimal(38, 0),
    "ratio": st.sampled_from([0.0, -0.0, 1.5, float("nan")]),
    "moment": st.sampled_from(_TIMES),
    "clock": st.sampled_from([time.replace(tzinfo=None) for time in _TIMES]),
}


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    """A few rows with NULLs; half of them of small numbers, so that not all sums overflow."""
    count, small = draw(st.integers(1, 6)), draw(st.booleans())
    columns = {}
    for name, kind in COLUMNS.items():
        values = _VALUES[name]
        if small and pa.types.is_integer(kind):
            values = st.integers(-9, 9)
        drawn = draw(st.lists(st.none() | values, min_size=count, max_size=count))
        columns[name] = pa.array(drawn, kind)
    return pa.table(columns)


def _spaced(*parts: st.SearchStrategy[str] | str) -> st.SearchStrategy[str]:
    made = [st.just(part) if isinstance(part, str) else part for part in parts]
    return st.tuples(*made).map(" ".join)


def _any(*texts: str) -> st.SearchStrategy[str]:
    return st.sampled_from(texts)


_INTEGER_LITERALS = _any(
    "0", "1", "7", "100", "-1", "-3", "2147483647", "-2147483648", "2147483648"
)
_INTEGER_LITERALS |= _any("5L", "3Y", "-2S", "9223372036854775807", "-9223372036854775808")
_DECIMAL_LITERALS = _any("1.5", "0.05", "1.50", "-2.25", "0.0", "100.00", "12345678901234567890")
_COMPARED = _any("=", "==", "<>", "!=", "<", "<=", ">", ">=", "<=>")

_integer_columns = _any("tiny", "small", "number", "large", "`Number`", "TINY")
_integer_leaves = _integer_columns | _INTEGER_LITERALS


def integers(depth: int = 2) -> st.SearchStrategy[str]:
    if depth == 0:
        return _integer_leaves
    inner = integers(depth - 1)
    return st.one_of(
        inner,
        _spaced(inner, _any("+", "-", "*", "%"), inner),
        _spaced("(", inner, _any("+", "-", "*", "%"), inner, ")"),
        _spaced("pmod(", inner, ",", _any("7", "100L", "3Y", "number"), ")"),
        _spaced("-", inner),
        _spaced("- (", inner, ")"),
        _spaced("coalesce(", inner, ",", inner, ")"),
        _spaced("if(", conditions(0), ",", inner, ",", inner, ")"),
        _spaced("CASE WHEN", conditions(0), "THEN", inner, "WHEN yes THEN", inner, "END"),
        _spaced("CAST(", inner, "AS", _any("TINYINT", "INT", "BIGINT"), ")"),
    )


def decimals(depth: int = 1) -> st.SearchStrategy[str]:
    leaves = _any("price", "tax", "huge") | _DECIMAL_LITERALS
    if depth == 0:
        return leaves
    inner = decimals(depth - 1)
    return st.one_of(
        inner,
        _spaced(inner, _any("+", "-", "*"), inner | _integer_leaves),
        _spaced(_integer_leaves, _any("+", "-", "*"), inner),
        _spaced(inner, _any("+", "-"), "- (", _integer_leaves, ")"),
        _spaced("- ", _any("price", "tax")),
        _spaced("coalesce(", inner, ",", inner, ", number )"),
        _spaced("if(", conditions(0), ",", inner, ",", inner, ")"),
        _spaced("CAST(", inner, "AS DECIMAL(", _any("12, 2", "38, 4", "5,1"), "))"),
    )


def texts() -> st.SearchStrategy[str]:
    leaves = _any("text", "word", "''", "'a'", "'Ä'", "'zz'", "'a b'")
    return leaves | _spaced("coalesce(", leaves, ",", leaves, ")")


def conditions(depth: int = 2) -> st.SearchStrategy[str]:
    if depth == 0:
        numbers = integers(0)
        return st.one_of(
            _any("yes", "no", "true", "ratio IS NULL", "day IS NOT NULL"),
            _spaced(numbers, _COMPARED, numbers),
            _spaced(numbers, _COMPARED, "NULL"),
            _spaced(numbers, _COMPARED, _DECIMAL_LITERALS),
            _spaced(_DECIMAL_LITERALS, _COMPARED, numbers),
        )
    inner = conditions(depth - 1)
    numbers = st.one_of(integers(depth - 1), decimals(depth - 1))
    days = _any("day", "DATE '2012-12-31'", "DATE'0001-01-01'", "'1582-10-10'")
    times = _any(
        *("moment", "clock", "TIMESTAMP '2012-12-31 10:00:00.5'", "TIMESTAMP'2012-12-31'"),
        *("TIMESTAMP_NTZ '2012-12-31T10:00:00.500000'", "DATE '2012-12-31'", "'2012-12-31'"),
        *("'1582-10-10 03:00:00'", "'0001-01-01'", "NULL"),
    )
    patterns = _any("'a%'", "'%b'", "'%'", "'%a%'", "''", "'Ä%'", "'ab'")
    return st.one_of(
        inner,
        _spaced(inner, _any("AND", "OR", "and"), inner),
        _spaced("(", inner, _any("AND", "OR"), inner, ")"),
        _spaced("NOT", inner),
        _spaced(numbers, _COMPARED, numbers),
        _spaced(texts(), _COMPARED, texts()),
        _spaced("day", _COMPARED, days),
        _spaced("day", _any("IN", "NOT IN"), "(", days, ")"),
        _spaced(_any("moment", "clock"), _COMPARED, times),
        _spaced(times, _COMPARED, _any("moment", "clock")),
        _spaced(_any("moment", "clock"), "BETWEEN", times, "AND", times),
        _spaced(numbers, _any("IN", "NOT IN"), "(", _DECIMAL_LITERALS, ")"),
        _spaced(_any("yes", "no"), _COMPARED, _any("yes", "no", "true", "(NOT yes)")),
        _spaced(numbers, _any("IS NULL", "IS NOT NULL")),
        _spaced("(", inner, ")", _any("IS TRUE", "IS NOT FALSE", "IS NULL")),
        _spaced(numbers, _any("IN", "NOT IN"), "(1, 7,", _any("NULL", "-3", "100L", "1.50"), ")"),
        _spaced(texts(), _any("IN", "NOT IN"), "('a', 'zz',", _any("NULL", "''"), ")"),
        _spaced(numbers, _any("BETWEEN", "NOT BETWEEN"), numbers, "AND", numbers),
        _spaced("day BETWEEN '1500-01-01' AND", days),
        _spaced(texts(), _any("LIKE", "NOT LIKE"), patterns),
    )


def soup() -> st.SearchStrategy[str]:
    """Boolean columns and operators without brackets: Spark's rules say what belongs together."""
    word = _any("yes", "no", "NOT yes", "true", "NULL", "(yes)", "NOT (no)", "NOT NOT no")
    more = st.one_of(
        _spaced(_COMPARED | _any("AND", "OR"), word),
        _any("IS NULL", "IS NOT NULL", "IS TRUE", "IN (true, no)", "NOT IN (false)"),
        _spaced("BETWEEN", word, "AND", word),
    )
    return st.tuples(word, st.lists(more, min_size=1, max_size=4)).map(
        lambda parts: " ".join((parts[0], *parts[1]))
    )


def sums() -> st.SearchStrategy[str]:
    """Numbers and operators without brackets."""
    word = _any("number", "tiny", "3", "-2", "- 7", "- number", "7L", "- - 5", "(2)")
    more = _spaced(_any("+", "-", "*", "%"), word)
    return st.tuples(word, st.lists(more, min_size=1, max_size=5)).map(
        lambda parts: " ".join((parts[0], *parts[1]))
    )
