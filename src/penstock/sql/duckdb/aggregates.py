"""DuckDB's aggregates, those that keep an order among them: lists, texts, first and last.

Spark's COLLECT_LIST leaves NULLs out and has no order, so each row's keys and value are collected
as a struct and the array is sorted. Without ORDER BY DuckDB's order is chance, and is refused.
"""

from __future__ import annotations

from collections.abc import Sequence

from penstock.lazy import exp
from penstock.sql.duckdb import guards
from penstock.sql.duckdb.guards import in_order, refused, spark, text_of, unless
from penstock.sql.duckdb.lists import is_orderless
from penstock.sql.duckdb.rules import Row, Rule

_VALUES = "TRANSFORM(:r, e -> e.v)"


def _list(node: exp.Expr) -> exp.Expr:
    if isinstance(node.this, exp.Order) or not is_orderless(node):
        value, keys, is_distinct = _ordered_parts(node, "list")
    else:  # for `list_sort`, `len` and others to which the order is all one
        value, keys, is_distinct = node.this, (), isinstance(node.this, exp.Distinct)
        if is_distinct:
            (value,) = value.expressions
        _refuse_window(node, "list")
    items = spark(_VALUES, r=_sorted(node, value, keys))
    if is_distinct:
        items = spark("ARRAY_DISTINCT(:i)", i=items)
    return spark("IF(SIZE(:i) = 0, NULL, :i)", i=items)


def _refuse_window(node: exp.Expr, name: str) -> None:
    outer = node.parent.parent if isinstance(node.parent, exp.Filter) else node.parent
    if isinstance(outer, exp.Window | exp.IgnoreNulls | exp.RespectNulls):
        raise refused(f"{name} as a window function")


def _texts(node: exp.Expr) -> exp.Expr:
    """NULLs are left out; of nothing else it is NULL."""
    value, keys, is_distinct = _ordered_parts(node, "string_agg")
    separator = node.args.get("separator") or exp.Literal.string(",")
    if text_of(separator) is None:
        raise refused("string_agg with a computed separator")
    items = spark(
        "TRANSFORM(FILTER(:r, e -> e.v IS NOT NULL), e -> CAST(e.v AS STRING))",
        r=_sorted(node, value, keys),
    )
    if is_distinct:
        items = spark("ARRAY_DISTINCT(:i)", i=items)
    text = spark("IF(SIZE(:i) = 0, NULL, ARRAY_JOIN(:i, :s))", i=items, s=separator)
    return unless("string_agg", guards.NOT_AS_TEXT, text, value)


def _end(name: str, position: int) -> Rule:
    def rule(node: exp.Expr) -> exp.Expr:
        value, keys, is_distinct = _ordered_parts(node, name)
        if is_distinct:
            raise refused(f"{name} of DISTINCT")
        return spark(f"TRY_ELEMENT_AT(:r, {position}).v", r=_sorted(node, value, keys))

    return rule


def _ordered_parts(node: exp.Expr, name: str) -> tuple[exp.Expr, Sequence[exp.Expr], bool]:
    """Return what is collected, the items of its ORDER BY, and whether it is DISTINCT."""
    order = node.this
    _refuse_window(node, name)
    if not isinstance(order, exp.Order):
        raise refused(f"{name} without ORDER BY", f"{name}(x ORDER BY ...): its order is chance")
    value, keys = order.this, order.expressions
    is_distinct = isinstance(value, exp.Distinct)
    if is_distinct:
        (value,) = value.expressions if len(value.expressions) == 1 else (value,)
        if len(keys) != 1 or keys[0].this != value:
            raise refused(f"{name} of DISTINCT in the order of something else")
    return value, keys, is_distinct


def _sorted(node: exp.Expr, value: exp.Expr, keys: Sequence[exp.Expr]) -> exp.Expr:
    """The array of structs (k0, k1, ..., v), in the order of the keys."""
    parts = {f"k{place}": in_order("ORDER BY", key.this) for place, key in enumerate(keys)}
    fields = ", ".join(f"'{name}', :{name}" for name in parts)
    text = f"COLLECT_LIST(NAMED_STRUCT({fields}, 'v', :v))"
    comparison = "0"
    for name, key in reversed(list(zip(parts, keys, strict=True))):
        comparison = _comparison(name, key, comparison)
    if isinstance(node.parent, exp.Filter):
        text += " FILTER (WHERE :w)"
        parts["w"] = node.parent.expression.this
    return spark(f"ARRAY_SORT({text}, (l, r) -> {comparison})", v=value, **parts)


def _comparison(name: str, key: exp.Expr, otherwise: str) -> str:
    null = -1 if key.args.get("nulls_first") else 1
    less = 1 if key.args.get("desc") else -1
    left, right = f"l.{name}", f"r.{name}"
    return (
        f"CASE WHEN {left} IS NULL AND {right} IS NULL THEN {otherwise} "
        f"WHEN {left} IS NULL THEN {null} WHEN {right} IS NULL THEN {-null} "
        f"WHEN {left} < {right} THEN {less} WHEN {left} > {right} THEN {-less} "
        f"ELSE {otherwise} END"
    )


def _filter(node: exp.Expr) -> exp.Expr:
    """Return what the rules above have taken the condition in."""
    return node if isinstance(node.this, exp.AggFunc) else node.this


def _quantile(node: exp.Expr) -> exp.Expr:
    """Of a share, or of several, that are written out."""
    value, share = node.this, node.expression
    shares = share.expressions if isinstance(share, exp.Array | exp.Anonymous) else [share]
    if isinstance(node.parent, exp.WithinGroup) or not all(
        isinstance(item, exp.Literal) and not item.is_string and 0 <= float(item.name) <= 1
        for item in shares
    ):
        raise refused(f"{guards.called(node)} of this form", "quantile_cont(x, 0.5)")
    quantile = spark("PERCENTILE(:x, :p)", x=value, p=share)
    return unless("a quantile", _NO_MEDIAN, quantile, value)


def _average(node: exp.Expr) -> str:
    """Of decimals as well, DuckDB's average is a DOUBLE."""
    if isinstance(node.this, exp.Distinct):
        raise refused(f"{node.sql('duckdb')[:60]}")
    return "AVG(CAST(:x AS DOUBLE))"


def _sum(node: exp.Expr) -> str:
    """Of conditions it counts those that are true."""
    return "SUM(CAST(:x AS INT))" if guards.is_condition(node.this) else ""


def _extreme(node: exp.Expr) -> exp.Expr:
    node.set("this", in_order(guards.called(node), node.this))
    return node


def _is_unordered(node: exp.Expr) -> bool:
    return not isinstance(node.this, exp.Order) and not node.args.get("count")


def _is_alone(node: exp.Expr) -> bool:
    """Return whether it is neither filtered nor a window's, of all values in no order."""
    is_inside = isinstance(node.parent, exp.Window | exp.Filter)
    return not is_inside and not isinstance(node.this, exp.Distinct | exp.Order)


def _is_plain(node: exp.Expr) -> bool:
    return not node.args.get("count") and not isinstance(node.parent, exp.Window)


_ALONE = "{} of this form; write it over a WHERE and GROUP BY of its own"
_NO_MEDIAN = "decimal%|date|timestamp%|string|boolean|float"
_IS_NULL = ":a IS NULL OR :b IS NULL"
_SPREAD = f"VAR_POP(IF({_IS_NULL}, NULL, CAST({{}} AS DOUBLE)))"
_MODE = "MODE() WITHIN GROUP (ORDER BY :x)"
_IN_DOUBLES = "CAST(:a AS DOUBLE), CAST(:b AS DOUBLE)"

AGGREGATES = (
    *(
        Row(
            f"arg_{end}(v, k)",
            node,
            f"{end.upper()}_BY(:v, IF(:v IS NULL, NULL, :k))",  # without rows whose value is NULL
            ordered="k",
            forms={"": _is_plain},
            otherwise=f"{end}_by of this form",
        )
        for end, node in (("max", exp.ArgMax), ("min", exp.ArgMin))
    ),
    Row("avg(x)", exp.Avg, _average, kind=guards.DOUBLE),
    Row(  # NaN where it is not defined
        "corr(a, b)",
        exp.Corr,
        f"CASE WHEN COUNT(IF({_IS_NULL}, NULL, 1)) = 0 THEN NULL "
        f"WHEN {_SPREAD.format(':a')} = 0 OR {_SPREAD.format(':b')} = 0 "
        f"THEN CAST('NaN' AS DOUBLE) ELSE CORR({_IN_DOUBLES}) END",
        forms={"": _is_alone},
        otherwise=_ALONE,
    ),
    *(
        Row(
            f"{name}(a, b)",
            node,
            f"{name.upper()}({_IN_DOUBLES})",
            forms={"": _is_alone},
            otherwise=_ALONE,
        )
        for name, node in (("covar_pop", exp.CovarPop), ("covar_samp", exp.CovarSamp))
    ),
    # ``count()`` is how DuckDB prints ``count(*)`` with a window.
    Row("count", exp.Count, lambda node: "COUNT(*)" if node.this is None else ""),
    Row("count_star", None, "COUNT(*)"),
    Row("", exp.Filter, _filter),
    Row("first", exp.First, _end("first", 1)),
    Row("last", exp.Last, _end("last", -1)),
    Row("list", exp.ArrayAgg, _list),
    Row("max", exp.Max, _extreme, forms={"": _is_unordered}),
    Row("median(x)", exp.Median, "PERCENTILE(:x, 0.5D)", _NO_MEDIAN, forms={"": _is_alone}),
    Row("min", exp.Min, _extreme, forms={"": _is_unordered}),
    Row(  # of several that are as frequent DuckDB takes the one that it meets first
        "mode(x)",
        exp.Mode,
        f"IF({_MODE} <=> MODE() WITHIN GROUP (ORDER BY :x DESC), {_MODE}, "
        "RAISE_ERROR('mode of values that are as frequent'))",
        forms={"": _is_alone},
        otherwise=_ALONE,
    ),
    Row("quantile_cont", exp.PercentileCont, _quantile, forms={"": _is_alone}, otherwise=_ALONE),
    Row("string_agg", exp.GroupConcat, _texts, kind=guards.TEXT),
    Row("sum(x)", exp.Sum, _sum, forms={"": _is_unordered}),
    *(
        Row("", node, forms={"": _is_unordered})
        for node in (
            *(exp.AnyValue, exp.LogicalAnd, exp.LogicalOr, exp.Stddev),
            *(exp.StddevPop, exp.StddevSamp, exp.Variance, exp.VariancePop),
        )
    ),
)
