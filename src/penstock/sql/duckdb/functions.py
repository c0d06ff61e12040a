"""DuckDB's operators and functions that Spark has, with what has to hold for both to mean the same.

A new function is a new row in the table of its topic, whose columns `penstock.sql.duckdb.rules`
explains. Where a text with arguments in it does not do, the row has a function.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from penstock.lazy import exp
from penstock.sql.duckdb.aggregates import AGGREGATES
from penstock.sql.duckdb.guards import (
    DATE,
    DOUBLE,
    NOT_AS_TEXT,
    TEXT,
    UUID,
    alike,
    by_type,
    called,
    compared,
    in_order,
    is_double,
    is_list,
    kind_of,
    of_same_fields,
    refused,
    same_fields,
    spark,
    text_of,
    unless,
    whole_number,
)
from penstock.sql.duckdb.lists import LISTS, contains, item_at, sliced
from penstock.sql.duckdb.rules import Row, Rule, by_class, by_name, is_absent
from penstock.sql.duckdb.strings import STRINGS
from penstock.sql.duckdb.times import TIMES, moved, span

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
            return _in(exp.In(this=node.this, query=exp.Subquery(this=query.copy())))
        raise refused("ANY of a list")
    return _comparison(node)


def _comparison(node: exp.Expr) -> exp.Expr:
    """The condition of an ASOF JOIN has to stay a comparison."""
    join = node.find_ancestor(exp.Join, exp.Query)
    if isinstance(join, exp.Join) and join.args.get("method") == "ASOF":
        return node
    if type(node) in _EQUAL:
        return same_fields(_EQUAL[type(node)], node, node.this, node.expression)
    return compared(_SIGNS[type(node)], node, node.this, node.expression)


_EQUAL: Mapping[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.NullSafeEQ: "IS NOT DISTINCT FROM",
    exp.NullSafeNEQ: "IS DISTINCT FROM",
}
_SIGNS: Mapping[type[exp.Expr], str] = {exp.GT: ">", exp.GTE: ">=", exp.LT: "<", exp.LTE: "<="}


def _between(node: exp.Expr) -> exp.Expr:
    return compared("BETWEEN", node, node.this, node.args["low"], node.args["high"])


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
    **dict.fromkeys((*_EQUAL, *_SIGNS), _comparison),
    exp.Add: _sum,
    exp.Any: _only_in_comparison,
    exp.Between: _between,
    exp.Bracket: _bracket,
    exp.DPipe: Row("||", spark=_concatenation, kind=TEXT),
    exp.DateAdd: _later,
    exp.Div: Row("/(a, b)", spark=_quotient, refused="float", checked="ab", kind=DOUBLE),
    exp.EQ: _any,
    exp.Escape: _escape,
    exp.ILike: _like,
    exp.In: _in,
    exp.IntDiv: Row(
        "//(a, b)", spark="(:a DIV NULLIF(:b, 0))", refused="float|double|decimal%", checked="ab"
    ),
    exp.Lambda: _lambda,
    exp.Like: _like,
    exp.Literal: _literal,
    exp.Mod: Row("%(a, b)", spark="(:a % NULLIF(:b, 0))", refused="float|double", checked="ab"),
    exp.Slice: lambda node: node,  # for `_bracket`
    exp.Sub: _difference,
}


def _round(node: exp.Expr) -> exp.Expr:
    digits, value = node.args.get("decimals"), node.this
    if digits is None:
        return node
    places = whole_number(digits)
    if places is None:
        raise refused("round to a computed number of digits")
    if is_double(value) and 0 < places < 16:
        return _rounded(value, places)
    advice = f"round(x::DOUBLE, {places})" if places > 0 else ""
    if not 0 < places < 16:
        return unless("round", "float|double", node.copy(), value, advice=advice)
    plain = unless("round", "float", node.copy(), value, advice=advice)
    doubles = _rounded(spark("CAST(:x AS DOUBLE)", x=value), places)
    kind = f"TYPEOF(ROUND(:o0, {places}))"
    return by_type("round", "double", doubles, kind, plain, value, advice=advice)


def _rounded(value: exp.Expr, places: int) -> exp.Expr:
    """A DOUBLE as DuckDB rounds it: Spark rounds the digits that are printed."""
    scale = f"1E{places}D"
    text = f"IF(ABS(:x * {scale}) = CAST('Infinity' AS DOUBLE), :x, ROUND(:x * {scale}) / {scale})"
    return spark(text, x=value)


def _logarithm(node: exp.Expr) -> exp.Expr:
    """Of base 10, or of the base that stands first."""
    value, base = (node.expression, node.this) if node.expression is not None else (node.this, None)
    name = "LOG10" if base is None else {2: "LOG2", 10: "LOG10"}.get(whole_number(base) or 0)
    if name is None:
        raise refused("log of this base")
    return spark(f"IF(:x <= 0, RAISE_ERROR('{_NOT_POSITIVE}'), {name}(:x))", x=value)


def _greatest(node: exp.Expr) -> exp.Expr:
    for value in (node.this, *node.expressions):
        value.replace(in_order(called(node), value))
    return node


def _coalesce(node: exp.Expr) -> exp.Expr:
    return alike("coalesce", node.copy(), node.this, *node.expressions)


def _case(node: exp.Expr) -> exp.Expr:
    values = [branch.args["true"] for branch in node.args["ifs"]]
    values += [node.args["default"]] if node.args.get("default") is not None else []
    case = alike("CASE", node.copy(), *values)
    if node.this is None:
        return case
    conditions = [branch.this for branch in node.args["ifs"]]
    return of_same_fields("CASE", case, node.this, *conditions)


def _field(node: exp.Expr) -> str:
    name = text_of(node.expression)
    if name is None:
        raise refused("struct_extract by position")
    return f"(:s).{exp.to_identifier(name, quoted=True).sql('databricks')}"


_X = "CAST(:x AS DOUBLE)"
_IS_LARGE = "TYPEOF(:x) IN ('float', 'double') AND NOT ABS(:x) < 9e15D"
_INFINITY = "CAST('Infinity' AS DOUBLE)"
_IS_INFINITE, _IS_BEYOND = f"ABS({_X}) = {_INFINITY}", f"ABS({_X}) > 1"
_NOT_POSITIVE = "logarithm of a number that is not positive"  # of which Spark has NULL

_DOUBLES = (
    Row("acos(x)", exp.Acos, f"ACOS({_X})", fails=(_IS_BEYOND, "ACOS of a number beyond 1")),
    Row("asin(x)", exp.Asin, f"ASIN({_X})", fails=(_IS_BEYOND, "ASIN of a number beyond 1")),
    Row("atan(x)", exp.Atan, f"ATAN({_X})"),
    Row("atan2(y, x)", exp.Atan2, f"ATAN2(CAST(:y AS DOUBLE), {_X})"),
    Row("cbrt(x)", exp.Cbrt, f"CBRT({_X})"),
    Row("cos(x)", exp.Cos, f"COS({_X})", fails=(_IS_INFINITE, "COS of infinity")),
    Row("degrees(x)", exp.Degrees, f"DEGREES({_X})"),
    Row("exp", exp.Exp),
    Row("ln(x)", exp.Ln, "LN(:x)", fails=(":x <= 0", _NOT_POSITIVE)),
    Row("log", exp.Log, _logarithm),
    Row("pow(x, y)", exp.Pow, f"POWER({_X}, :y)"),
    Row("radians(x)", exp.Radians, f"RADIANS({_X})"),
    Row("random", exp.Rand),
    Row("sin(x)", exp.Sin, f"SIN({_X})", fails=(_IS_INFINITE, "SIN of infinity")),
    Row("sqrt(x)", exp.Sqrt, "SQRT(:x)", fails=(":x < 0", "square root of a negative number")),
    Row("tan(x)", exp.Tan, f"TAN({_X})", fails=(_IS_INFINITE, "TAN of infinity")),
)
_SAME = (
    exp.Abs, exp.ArrayFilter, exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor, exp.Contains,
    exp.CountIf, exp.CumeDist, exp.DenseRank, exp.EndsWith, exp.FirstValue, exp.Grouping,
    exp.Lag, exp.LastValue, exp.Lead, exp.NthValue, exp.Ntile, exp.PercentRank, exp.Pi,
    exp.Rank, exp.RowNumber, exp.StartsWith, exp.StrPosition, exp.Struct, exp.Transform,
    # Steps of a path in JSON, for the function that it is part of.
    exp.JSONPath, exp.JSONPathFilter, exp.JSONPathKey, exp.JSONPathRecursive, exp.JSONPathRoot,
    exp.JSONPathScript, exp.JSONPathSelector, exp.JSONPathSlice, exp.JSONPathSubscript,
    exp.JSONPathUnion, exp.JSONPathWildcard,
)  # fmt: skip
_ROWS = (
    *(replace(row, kind=DOUBLE) for row in _DOUBLES),
    *(Row("", node) for node in _SAME),
    Row("case", exp.Case, _case),
    # Of a DOUBLE it is a DOUBLE, which Spark's BIGINT cannot hold all of.
    Row("ceil(x)", exp.Ceil, "CEIL(:x)", fails=(_IS_LARGE, "CEIL of a number that large")),
    Row("coalesce", exp.Coalesce, _coalesce),
    Row("floor(x)", exp.Floor, "FLOOR(:x)", fails=(_IS_LARGE, "FLOOR of a number that large")),
    Row("greatest", exp.Greatest, _greatest),
    Row("isinf(x)", exp.IsInf, f"(ABS(:x) = {_INFINITY})"),
    Row("isnan(x)", exp.IsNan, "IF(:x IS NULL, NULL, ISNAN(:x))"),
    Row("least", exp.Least, _greatest),
    Row(
        "nullif",
        exp.Nullif,
        lambda node: of_same_fields("nullif", node.copy(), node.this, node.expression),
    ),
    Row("round", exp.Round, _round),
    Row("sign(x)", exp.Sign, "CAST(SIGN(:x) AS INT)"),
    Row("struct_extract(s)", exp.StructExtract, _field),
    Row(
        "trunc(x)",
        exp.Trunc,
        "IF(:x < 0, CEIL(:x), FLOOR(:x))",
        fails=(_IS_LARGE, "trunc of a number that large"),
        forms={"decimals": is_absent},
        otherwise="trunc to a number of digits",
    ),
    Row("uuid", exp.Uuid, kind=UUID),
    *(*AGGREGATES, *LISTS, *STRINGS, *TIMES),
)
FUNCTIONS = by_class(_ROWS)
NAMED = by_name(_ROWS)
