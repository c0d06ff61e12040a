"""Rules for DuckDB's operators and intervals whose meaning or form differs on Spark."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from sqlglot import exp

from penstock.sql.duckdb.guards import (
    compared,
    is_list,
    placed,
    refused,
    spark,
    text_of,
    unless,
    whole_number,
)
from penstock.sql.duckdb.lists import contains, item_at, sliced

_FLOATS = "float|double|decimal%"
_NOT_WHOLE = "float|double|decimal%|string|bigint"
# CAST to VARCHAR of these looks different; concatenation casts.
NOT_AS_TEXT = "float|double|binary|timestamp|struct%|map%|array%|variant|interval%"

_DIGITS = 38  # of Spark's DECIMAL
_SPAN = "__interval"
_SPANS = {
    "to_days": "DAY",
    "to_hours": "HOUR",
    "to_minutes": "MINUTE",
    "to_seconds": "SECOND",
    "to_months": "MONTH",
    "to_years": "YEAR",
    "to_weeks": "WEEK",
}
_UNITS = set(_SPANS.values())
_WRITTEN = re.compile(r"\s*(-?\d+)\s+([a-zA-Z]+?)s?\s*")


def _div(node: exp.Expr) -> exp.Expr:
    """``/`` is DOUBLE's by IEEE: 1 / 0 is infinity."""
    a, b = node.this, node.expression
    quotient = spark(
        "IF(CAST(:b AS DOUBLE) = 0, CAST(:a AS DOUBLE) * CAST('Infinity' AS DOUBLE), "
        "CAST(:a AS DOUBLE) / CAST(:b AS DOUBLE))",
        a=a,
        b=b,
    )
    if (whole_number(b) or 0) != 0:
        quotient = spark("(CAST(:a AS DOUBLE) / CAST(:b AS DOUBLE))", a=a, b=b)
    return unless("/", "float", quotient, a, b)


def _int_div(node: exp.Expr) -> exp.Expr:
    a, b = node.this, node.expression
    return unless("//", _FLOATS, spark("(:a DIV NULLIF(:b, 0))", a=a, b=b), a, b)


def _mod(node: exp.Expr) -> exp.Expr:
    a, b = node.this, node.expression
    return unless("%", "float|double", spark("(:a % NULLIF(:b, 0))", a=a, b=b), a, b)


def _add(node: exp.Expr) -> exp.Expr:
    a, b = node.this, node.expression
    if span(b) is not None:
        return _moved(a, "+", b)
    if span(a) is not None:
        return _moved(b, "+", a)
    return node


def _sub(node: exp.Expr) -> exp.Expr:
    a, b = node.this, node.expression
    if span(b) is not None:
        return _moved(a, "-", b)
    if whole_number(b) is not None or whole_number(a) is not None:
        return node
    # Days of DuckDB are an INTERVAL of Spark.
    return unless("difference", "date|timestamp%", node, b)


def _date_add(node: exp.Expr) -> exp.Expr:
    if span(node.expression) is None:
        raise refused("date_add of this form")
    return _moved(node.this, "+", node.expression)


def _moved(moment: exp.Expr, sign: str, by: exp.Expr) -> exp.Expr:
    """A DATE moved by an interval is a TIMESTAMP."""
    text, amount = span(by) or ("", None)
    parts = {} if amount is None else {"n": amount}
    moved = spark(f"(CAST(:m AS TIMESTAMP_NTZ) {sign} {text})", m=moment, **parts)
    if amount is not None and not _is_bound(by):
        moved = unless("an interval", _NOT_WHOLE, moved, amount)
    return unless("sum with an interval", "timestamp|string", moved, moment)


def _is_bound(node: exp.Expr) -> bool:
    """Whether it is an interval that is bound as its text (`casts`)."""
    cast = isinstance(node, exp.Cast) and isinstance(node.this, exp.Placeholder)
    return cast and node.args["to"].this == exp.DataType.Type.INTERVAL


def intervals(tree: exp.Expr) -> None:
    """Mark intervals: those that somebody wrote (``INTERVAL 1 DAY``), and as DuckDB prints them
    (``to_days(CAST(trunc(CAST(1 AS DOUBLE)) ...))``).

    Raises UnsupportedFeature for units that are not known.
    """
    for cast in list(tree.find_all(exp.Cast)):
        amount = _WRITTEN.fullmatch(text_of(cast.this) or "")
        if cast.args["to"].this.name == "INTERVAL" and amount and amount[2].upper() in _UNITS:
            _mark(cast, exp.Literal.number(amount[1]), amount[2].upper())
    for written in list(tree.find_all(exp.Interval)):
        unit = written.text("unit").upper().removesuffix("S")
        if unit not in _UNITS or written.this is None:
            raise placed(refused(f"the interval {written.sql('duckdb')}"), written)
        _mark(written, written.this, unit)
    for call in list(tree.find_all(exp.Func)):
        if _function(call) in _SPANS:
            _mark(call, _amount(call), _SPANS[_function(call)])


def _amount(node: exp.Expr) -> exp.Expr:
    """The number within a function of intervals and the casts that DuckDB prints around it."""
    inner: exp.Expr = node
    while isinstance(inner, exp.Func | exp.Paren):
        inner = (inner.expressions or [inner.this])[0]
    constant = whole_number(inner) is not None or text_of(inner) is not None
    return inner if constant else (node.expressions or [node.this])[0]


def _mark(node: exp.Expr, amount: exp.Expr, unit: str) -> None:
    """A constant is put into the text, whatever else is computed goes along as an argument."""
    value = whole_number(amount)
    text = text_of(amount) or ""
    if value is None and text.strip().removeprefix("-").isdigit():
        value = int(text)
    if value is not None:
        marked = exp.Literal.string(f"INTERVAL '{value}' {unit}")
        node.replace(exp.Anonymous(this=_SPAN, expressions=[marked]))
        return
    if text_of(amount) is not None:
        raise placed(refused(f"the interval {node.sql('duckdb')}"), node)
    made = exp.Literal.string(_COMPUTED[unit])
    node.replace(exp.Anonymous(this=_SPAN, expressions=[made, amount.copy()]))


# Of a computed number, which DuckDB takes as an INTEGER, seconds as DOUBLE.
_COMPUTED = {
    "DAY": "MAKE_DT_INTERVAL(:n)",
    "HOUR": "MAKE_DT_INTERVAL(0, :n)",
    "MINUTE": "MAKE_DT_INTERVAL(0, 0, :n)",
    "SECOND": "MAKE_DT_INTERVAL(0, 0, 0, :n)",
    "WEEK": "MAKE_DT_INTERVAL(7 * :n)",
    "MONTH": "MAKE_YM_INTERVAL(0, :n)",
    "YEAR": "MAKE_YM_INTERVAL(:n)",
}


def _function(node: exp.Func) -> str:
    name = node.name if isinstance(node, exp.Anonymous) else node.sql_name()
    return str(name).lower()


def span(node: exp.Expr) -> tuple[str, exp.Expr | None] | None:
    """Spark's text of an interval that `intervals` has marked or that is bound, and what ``:n`` in
    it stands for.
    """
    while isinstance(node, exp.Paren):
        node = node.this
    if _is_bound(node):
        return "CAST(:n AS INTERVAL)", node.this
    if not isinstance(node, exp.Anonymous) or node.name != _SPAN:
        return None
    text, *amount = node.expressions
    return str(text.name), amount[0] if amount else None


def _concatenation(node: exp.Expr) -> exp.Expr:
    if is_list(node.this) or is_list(node.expression):
        raise refused("|| of lists", "list_concat(a, b)")
    return unless("concatenation", NOT_AS_TEXT, node, node.this, node.expression)


def _like(node: exp.Expr) -> exp.Expr:
    r"""DuckDB has no escape character unless one is given, Spark's is ``\``."""
    if isinstance(node.this, exp.Star):
        raise refused("* LIKE")
    if isinstance(node.parent, exp.Escape):
        return node
    if text_of(node.expression) is None or "\\" in node.expression.name:
        raise refused("LIKE with a computed pattern or a backslash")
    return node


def _bracket(node: exp.Expr) -> exp.Expr:
    """``l[1]`` is the first; beyond the end is NULL. sqlglot counts from 0 already."""
    (index,) = node.expressions if len(node.expressions) == 1 else (None,)
    if text_of(index) is not None:
        return node
    if isinstance(index, exp.Slice):
        return sliced(node, index)
    at = whole_number(index)
    if at is None or at == -1:
        raise refused(f"the index {node.sql('duckdb')}")
    return item_at(node.this, at + 1)


def _any(node: exp.Expr) -> exp.Expr:
    """``x = ANY(SELECT ...)`` is how DuckDB prints IN."""
    right = node.expression
    if isinstance(right, exp.Any):
        query = right.this
        while isinstance(query, exp.Subquery | exp.Paren) and not query.args.get("alias"):
            query = query.this
        if isinstance(query, exp.Query):
            return exp.In(this=node.this, query=exp.Subquery(this=query.copy()))
        raise refused("ANY of a list")
    return node


def _comparison(node: exp.Expr) -> exp.Expr:
    """The condition of an ASOF JOIN has to stay a comparison."""
    join = node.find_ancestor(exp.Join, exp.Query)
    if isinstance(join, exp.Join) and join.args.get("method") == "ASOF":
        return node
    return compared(_SIGNS[type(node)], node, node.this, node.expression)


def _between(node: exp.Expr) -> exp.Expr:
    return compared("BETWEEN", node, node.this, node.args["low"], node.args["high"])


_SIGNS: Mapping[type[exp.Expr], str] = {
    exp.GT: ">",
    exp.GTE: ">=",
    exp.LT: "<",
    exp.LTE: "<=",
}


def _only_in_comparison(node: exp.Expr) -> exp.Expr:
    if not isinstance(node.parent, exp.EQ):
        raise refused("ANY")
    return node


def _in(node: exp.Expr) -> exp.Expr:
    """``x IN l``, a column, looks into a list."""
    items = node.args.get("field")
    return node if items is None else contains(items, node.this)


def _lambda(node: exp.Expr) -> exp.Expr:
    """An index is counted from 1, by Spark from 0."""
    if len(node.expressions) > 1:
        raise refused("a lambda with an index")
    return node


def _literal(node: exp.Expr) -> exp.Expr:
    if not node.is_string and len(re.sub(r"\D", "", node.name)) > _DIGITS:
        raise refused(f"a number of more than {_DIGITS} digits")
    return node


def _same(node: exp.Expr) -> exp.Expr:
    return node


def _escape(node: exp.Expr) -> exp.Expr:
    if text_of(node.this.expression) is None or text_of(node.expression) is None:
        raise refused("LIKE with a computed pattern")
    return node


OPERATORS: Mapping[type[exp.Expr], Callable[[exp.Expr], exp.Expr]] = {
    **dict.fromkeys(_SIGNS, _comparison),
    exp.Add: _add,
    exp.Any: _only_in_comparison,
    exp.Between: _between,
    exp.Bracket: _bracket,
    exp.DPipe: _concatenation,
    exp.DateAdd: _date_add,
    exp.Div: _div,
    exp.EQ: _any,
    exp.Escape: _escape,
    exp.ILike: _like,
    exp.In: _in,
    exp.IntDiv: _int_div,
    exp.Lambda: _lambda,
    exp.Like: _like,
    exp.Literal: _literal,
    exp.Mod: _mod,
    exp.Slice: _same,
    exp.Sub: _sub,
}
