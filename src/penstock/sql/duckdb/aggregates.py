"""Aggregates of DuckDB that keep an order: lists and texts of a group, first and last, medians.

Spark's COLLECT_LIST leaves NULLs out and has no order, so each row's keys and value are collected
as a struct and the array is sorted. Without ORDER BY DuckDB's order is chance, and is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from penstock.lazy import exp
from penstock.sql.duckdb.guards import called, in_order, refused, spark, text_of, unless
from penstock.sql.duckdb.lists import is_orderless
from penstock.sql.duckdb.operators import NOT_AS_TEXT

_NO_MEDIAN = "decimal%|date|timestamp%|string|boolean|float"


def _list(node: exp.Expr) -> exp.Expr:
    if not isinstance(node.this, exp.Order) and is_orderless(node):
        return _in_no_order(node)
    value, keys, distinct = _parts(node, "list")
    items = spark("TRANSFORM(:r, e -> e.v)", r=_sorted(node, value, keys))
    if distinct:
        items = spark("ARRAY_DISTINCT(:i)", i=items)
    return spark("IF(SIZE(:i) = 0, NULL, :i)", i=items)


def _in_no_order(node: exp.Expr) -> exp.Expr:
    """For `list_sort`, `len` and others to which the order is all one."""
    value = node.this
    if isinstance(value, exp.Distinct):
        (value,) = value.expressions
        raise_window(node, "list")
        text = "ARRAY_DISTINCT(TRANSFORM(:r, e -> e.v))"
    else:
        raise_window(node, "list")
        text = "TRANSFORM(:r, e -> e.v)"
    items = spark(text, r=_sorted(node, value, ()))
    return spark("IF(SIZE(:i) = 0, NULL, :i)", i=items)


def raise_window(node: exp.Expr, name: str) -> None:
    outer = node.parent.parent if isinstance(node.parent, exp.Filter) else node.parent
    if isinstance(outer, exp.Window | exp.IgnoreNulls | exp.RespectNulls):
        raise refused(f"{name} as a window function")


def _texts(node: exp.Expr) -> exp.Expr:
    """NULLs are left out; of nothing else it is NULL."""
    value, keys, distinct = _parts(node, "string_agg")
    separator = node.args.get("separator") or exp.Literal.string(",")
    if text_of(separator) is None:
        raise refused("string_agg with a computed separator")
    items = spark(
        "TRANSFORM(FILTER(:r, e -> e.v IS NOT NULL), e -> CAST(e.v AS STRING))",
        r=_sorted(node, value, keys),
    )
    if distinct:
        items = spark("ARRAY_DISTINCT(:i)", i=items)
    text = spark("IF(SIZE(:i) = 0, NULL, ARRAY_JOIN(:i, :s))", i=items, s=separator)
    return unless("string_agg", NOT_AS_TEXT, text, value)


def _end(name: str, at: int) -> Callable[[exp.Expr], exp.Expr]:
    def rule(node: exp.Expr) -> exp.Expr:
        value, keys, distinct = _parts(node, name)
        if distinct:
            raise refused(f"{name} of DISTINCT")
        return spark(f"TRY_ELEMENT_AT(:r, {at}).v", r=_sorted(node, value, keys))

    return rule


def _parts(node: exp.Expr, name: str) -> tuple[exp.Expr, Sequence[exp.Expr], bool]:
    """Return what is collected, the items of its ORDER BY, and whether it is DISTINCT."""
    order = node.this
    raise_window(node, name)
    if not isinstance(order, exp.Order):
        raise refused(f"{name} without ORDER BY", f"{name}(x ORDER BY ...): its order is chance")
    value, keys = order.this, order.expressions
    distinct = isinstance(value, exp.Distinct)
    if distinct:
        (value,) = value.expressions if len(value.expressions) == 1 else (value,)
        if len(keys) != 1 or keys[0].this != value:
            raise refused(f"{name} of DISTINCT in the order of something else")
    return value, keys, distinct


def _sorted(node: exp.Expr, value: exp.Expr, keys: Sequence[exp.Expr]) -> exp.Expr:
    """The array of structs (k0, k1, ..., v), in the order of the keys."""
    names = [f"k{at}" for at in range(len(keys))]
    fields = ", ".join(f"'{name}', :{name}" for name in names)
    parts = {name: in_order("ORDER BY", key.this) for name, key in zip(names, keys, strict=True)}
    text = f"COLLECT_LIST(NAMED_STRUCT({fields}, 'v', :v))"
    if isinstance(node.parent, exp.Filter):
        text += " FILTER (WHERE :w)"
        parts["w"] = node.parent.expression.this
    compared = "0"
    for name, key in reversed(list(zip(names, keys, strict=True))):
        compared = _compared(name, key, compared)
    return spark(f"ARRAY_SORT({text}, (l, r) -> {compared})", v=value, **parts)


def _compared(name: str, key: exp.Expr, otherwise: str) -> str:
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
    """Return what the rules above made has taken the condition in."""
    return node if isinstance(node.this, exp.AggFunc) else node.this


def _extreme(name: str) -> Callable[[exp.Expr], exp.Expr]:
    """Rows whose value is NULL do not count."""

    def rule(node: exp.Expr) -> exp.Expr:
        if node.args.get("count") or isinstance(node.parent, exp.Window):
            raise refused(f"{name.lower()} of this form")
        text = f"{name}(:v, IF(:v IS NULL, NULL, :k))"
        return spark(text, v=node.this, k=in_order(f"arg_{name[:3].lower()}", node.expression))

    return rule


def _median(node: exp.Expr) -> exp.Expr:
    if isinstance(node.parent, exp.Window | exp.Filter) or isinstance(node.this, exp.Distinct):
        raise refused("median of this form")
    value = node.this
    return unless("median", _NO_MEDIAN, spark("PERCENTILE(:x, 0.5D)", x=value), value)


def _alone(node: exp.Expr) -> exp.Expr:
    """The value of an aggregate that is neither filtered nor a window's."""
    value: exp.Expr = node.this
    if isinstance(node.parent, exp.Window | exp.Filter) or isinstance(
        value, exp.Distinct | exp.Order
    ):
        raise refused(f"{called(node)} of this form", "it over a WHERE and GROUP BY of its own")
    return value


def _quantile(text: str) -> Callable[[exp.Expr], exp.Expr]:
    """Of a number, or of several, that are written out."""

    def rule(node: exp.Expr) -> exp.Expr:
        value, share = _alone(node), node.args.get("quantile") or node.expression
        several = share.expressions if isinstance(share, exp.Array | exp.Anonymous) else [share]
        if isinstance(node.parent, exp.WithinGroup) or not all(map(_is_share, several)):
            raise refused(f"{called(node)} of this form", "quantile_cont(x, 0.5)")
        made = spark(text, x=value, p=share)
        return unless("a quantile", _NO_MEDIAN, made, value)

    return rule


def _is_share(node: exp.Expr) -> bool:
    return isinstance(node, exp.Literal) and not node.is_string and 0 <= float(node.name) <= 1


def _mode(node: exp.Expr) -> exp.Expr:
    """Of several that are as frequent DuckDB takes the one that it meets first."""
    text = (
        "IF(MODE() WITHIN GROUP (ORDER BY :x) <=> MODE() WITHIN GROUP (ORDER BY :x DESC), "
        "MODE() WITHIN GROUP (ORDER BY :x), RAISE_ERROR('mode of values that are as frequent'))"
    )
    return spark(text, x=_alone(node))


def _corr(node: exp.Expr) -> exp.Expr:
    """NaN where it is not defined."""
    _alone(node)
    pairs = "COUNT(IF(:a IS NULL OR :b IS NULL, NULL, 1))"
    spread = "VAR_POP(IF(:a IS NULL OR :b IS NULL, NULL, CAST({} AS DOUBLE)))"
    text = (
        f"CASE WHEN {pairs} = 0 THEN NULL WHEN {spread.format(':a')} = 0 "
        f"OR {spread.format(':b')} = 0 THEN CAST('NaN' AS DOUBLE) "
        "ELSE CORR(CAST(:a AS DOUBLE), CAST(:b AS DOUBLE)) END"
    )
    return spark(text, a=node.this, b=node.expression)


def _covariance(name: str) -> Callable[[exp.Expr], exp.Expr]:
    def rule(node: exp.Expr) -> exp.Expr:
        _alone(node)
        text = f"{name}(CAST(:a AS DOUBLE), CAST(:b AS DOUBLE))"
        return spark(text, a=node.this, b=node.expression)

    return rule


AGGREGATES: Mapping[type[exp.Expr], Callable[[exp.Expr], exp.Expr]] = {
    exp.ArgMax: _extreme("MAX_BY"),
    exp.ArgMin: _extreme("MIN_BY"),
    exp.ArrayAgg: _list,
    exp.Filter: _filter,
    exp.First: _end("first", 1),
    exp.GroupConcat: _texts,
    exp.Last: _end("last", -1),
    exp.Corr: _corr,
    exp.CovarPop: _covariance("COVAR_POP"),
    exp.CovarSamp: _covariance("COVAR_SAMP"),
    exp.Median: _median,
    exp.Mode: _mode,
    exp.PercentileCont: _quantile("PERCENTILE(:x, :p)"),
}
