"""Rules for DuckDB's operators and intervals whose meaning or form differs on Spark."""

from __future__ import annotations

import re
from collections.abc import Mapping

from penstock.lazy import exp
from penstock.sql.duckdb.guards import (
    DATE,
    DOUBLE,
    NOT_AS_TEXT,
    TEXT,
    compared,
    is_list,
    kind_of,
    refused,
    same_fields,
    spark,
    text_of,
    unless,
    whole_number,
)
from penstock.sql.duckdb.lists import contains, item_at, sliced
from penstock.sql.duckdb.rules import Row, Rule
from penstock.sql.duckdb.times import moved, span

_DIGITS = 38  # of Spark's DECIMAL


def _quotient(node: exp.Expr) -> str:
    """``/`` is DOUBLE's by IEEE: 1 / 0 is infinity."""
    quotient = "CAST(:a AS DOUBLE) / CAST(:b AS DOUBLE)"
    if (whole_number(node.expression) or 0) != 0:
        return f"({quotient})"
    infinity = "CAST(:a AS DOUBLE) * CAST('Infinity' AS DOUBLE)"
    return f"IF(CAST(:b AS DOUBLE) = 0, {infinity}, {quotient})"


def _sum(node: exp.Expr) -> exp.Expr:
    a, b = node.this, node.expression
    if span(b) is not None:
        return moved(a, "+", b)
    return node if span(a) is None else moved(b, "+", a)


def _difference(node: exp.Expr) -> exp.Expr:
    a, b = node.this, node.expression
    if span(b) is not None:
        return moved(a, "-", b)
    if whole_number(b) is not None or whole_number(a) is not None:
        return node
    days = spark("CAST(DATE_DIFF(:a, :b) AS BIGINT)", a=a, b=b)  # to Spark an INTERVAL
    if kind_of(a) == DATE and kind_of(b) == DATE:
        return days
    if kind_of(b) == DATE:
        advice = "date_diff('day', b, a), or date_diff('second', b, a)"
        return unless("difference", "timestamp%|string", days, a, advice=advice)
    advice = "date_diff('day', b, a), or a::DATE - b::DATE"
    return unless("difference", "date|timestamp%", node, b, advice=advice)


def _later(node: exp.Expr) -> exp.Expr:
    if span(node.expression) is None:
        raise refused("date_add of this form")
    return moved(node.this, "+", node.expression)


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
    return _equality(node)


def _equality(node: exp.Expr) -> exp.Expr:
    """The condition of an ASOF JOIN has to stay a comparison."""
    if _in_asof(node):
        return node
    return same_fields(_EQUAL[type(node)], node, node.this, node.expression)


_EQUAL: Mapping[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.NullSafeEQ: "IS NOT DISTINCT FROM",
    exp.NullSafeNEQ: "IS DISTINCT FROM",
}


def _in_asof(node: exp.Expr) -> bool:
    join = node.find_ancestor(exp.Join, exp.Query)
    return isinstance(join, exp.Join) and join.args.get("method") == "ASOF"


def _comparison(node: exp.Expr) -> exp.Expr:
    """The condition of an ASOF JOIN has to stay a comparison."""
    if _in_asof(node):
        return node
    return compared(_SIGNS[type(node)], node, node.this, node.expression)


def _between(node: exp.Expr) -> exp.Expr:
    return compared("BETWEEN", node, node.this, node.args["low"], node.args["high"])


_SIGNS: Mapping[type[exp.Expr], str] = {exp.GT: ">", exp.GTE: ">=", exp.LT: "<", exp.LTE: "<="}


def _only_in_comparison(node: exp.Expr) -> exp.Expr:
    if not isinstance(node.parent, exp.EQ):
        raise refused("ANY")
    return node


def _in(node: exp.Expr) -> exp.Expr:
    """``x IN l``, a column, looks into a list."""
    items = node.args.get("field")
    if items is not None:
        return contains(items, node.this)
    if isinstance(node.parent, exp.Pivot):
        return node
    query = node.args.get("query")
    others = node.expressions if query is None else [query]
    return same_fields("IN", node, node.this, *others)


def _lambda(node: exp.Expr) -> exp.Expr:
    """An index is counted from 1, by Spark from 0."""
    if len(node.expressions) > 1:
        raise refused("a lambda with an index")
    return node


def _literal(node: exp.Expr) -> exp.Expr:
    if not node.is_string and len(re.sub(r"\D", "", node.name)) > _DIGITS:
        raise refused(f"a number of more than {_DIGITS} digits")
    return node


def _escape(node: exp.Expr) -> exp.Expr:
    if text_of(node.this.expression) is None or text_of(node.expression) is None:
        raise refused("LIKE with a computed pattern")
    return node


OPERATORS: Mapping[type[exp.Expr], Rule] = {
    **dict.fromkeys(_SIGNS, _comparison),
    **dict.fromkeys(_EQUAL, _equality),
    exp.Add: _sum,
    exp.Any: _only_in_comparison,
    exp.Between: _between,
    exp.Bracket: _bracket,
    exp.DPipe: Row("||", spark=_concatenation, kind=TEXT),
    exp.DateAdd: _later,
    exp.Div: Row("/(a, b)", spark=_quotient, refused="float", of="ab", kind=DOUBLE),
    exp.EQ: _any,
    exp.Escape: _escape,
    exp.ILike: _like,
    exp.In: _in,
    exp.IntDiv: Row(
        "//(a, b)", spark="(:a DIV NULLIF(:b, 0))", refused="float|double|decimal%", of="ab"
    ),
    exp.Lambda: _lambda,
    exp.Like: _like,
    exp.Literal: _literal,
    exp.Mod: Row("%(a, b)", spark="(:a % NULLIF(:b, 0))", refused="float|double", of="ab"),
    exp.Slice: lambda node: node,  # for `_bracket`
    exp.Sub: _difference,
}
