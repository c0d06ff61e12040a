"""DuckDB's functions of lists and maps."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from penstock.lazy import exp
from penstock.sql.duckdb.guards import is_text, refused, spark, text_of, unless, whole_number

Rule = Callable[[exp.Expr], exp.Expr]

_NOT_AS_ITEMS = (
    "array<float>|array<double>|array<binary>|array<timestamp>|array<struct%|array<array%|"
    "array<map%|array<boolean>"
)
_NOT_WHOLE = "array<float>|array<double>|array<decimal%|array<string>|array<struct%|array<boolean>"
_ITEMS = "FILTER(:l, e -> e IS NOT NULL)"


def _contains(node: exp.Expr) -> exp.Expr:
    return contains(node.this, node.expression)


def contains(items: exp.Expr, value: exp.Expr) -> exp.Expr:
    """NULLs among the items do not make the answer NULL; to look for NULL does."""
    if isinstance(value, exp.Null):
        raise refused("list_contains of NULL")
    text = "IF(:l IS NULL OR :v IS NULL, NULL, COALESCE(ARRAY_CONTAINS(:l, :v), FALSE))"
    return spark(text, l=items, v=value)


def _size(node: exp.Expr) -> exp.Expr:
    if node.expression is not None:
        raise refused("array_length of a dimension")
    return spark("IF(:l IS NULL, NULL, SIZE(:l))", l=node.this)


def _length(node: exp.Expr) -> exp.Expr:
    """Of a text or of a list: only by way of JSON is there one expression for both."""
    if text_of(node.this) is not None:
        return spark("LENGTH(:x)", x=node.this)
    text = (
        "IF(TYPEOF(:x) LIKE 'array%', "
        "JSON_ARRAY_LENGTH(GET_JSON_OBJECT(TO_JSON(NAMED_STRUCT('v', :x)), '$.v')), "
        "LENGTH(CAST(:x AS STRING)))"
    )
    kinds = "binary|int|bigint|double|struct%|map%|timestamp%|date|array<binary>|array<variant>"
    return unless("length", kinds, spark(text, x=node.this), node.this)


def array(node: exp.Expr) -> exp.Expr:
    return exp.Anonymous(
        this="ARRAY", expressions=[expression.copy() for expression in node.expressions]
    )


def _sum(node: exp.Expr) -> exp.Expr:
    (items,) = node.expressions
    text = (
        f"IF(SIZE({_ITEMS}) > 0, "
        f"AGGREGATE({_ITEMS}, CAST(0 AS DECIMAL(38, 0)), (s, e) -> "
        "CAST(s + CAST(e AS DECIMAL(38, 0)) AS DECIMAL(38, 0))), NULL)"
    )
    return unless("list_sum", _NOT_WHOLE, spark(text, l=items), items)


def _concat(node: exp.Expr) -> exp.Expr:
    """A NULL is no items."""
    parts = [spark("COALESCE(:l, ARRAY())", l=items) for items in (node.this, *node.expressions)]
    return exp.func("CONCAT", *parts, dialect="databricks")


def _position(node: exp.Expr) -> exp.Expr:
    items, value = node.expressions
    return spark("CAST(NULLIF(ARRAY_POSITION(:l, :v), 0) AS INT)", l=items, v=value)


def _joined(node: exp.Expr) -> exp.Expr:
    """NULLs are left out."""
    separator = node.expression
    if text_of(separator) is None or node.args.get("null"):
        raise refused("array_to_string of this form")
    text = "ARRAY_JOIN(TRANSFORM(:l, e -> CAST(e AS STRING)), :s)"
    text = f"CASE WHEN SIZE({_ITEMS}) > 0 THEN {text} WHEN SIZE(:l) = 0 THEN '' END"
    return unless(
        "array_to_string", _NOT_AS_ITEMS, spark(text, l=node.this, s=separator), node.this
    )


def _list_sort(node: exp.Expr) -> exp.Expr:
    """NULLs come last, whatever the order is, unless something else is said."""
    first, up = node.args.get("nulls_first"), node.args.get("asc")
    if (first is not None and first.this) or not (up is None or isinstance(up, exp.Boolean)):
        raise refused("list_sort of this form")
    text = "ARRAY_SORT(:l)" if up is None or up.this else "SORT_ARRAY(:l, FALSE)"
    return unless("list_sort", _NESTED, spark(text, l=node.this), node.this)


def _overlaps(node: exp.Expr) -> exp.Expr:
    """NULLs are like nothing."""
    text = (
        "IF(:a IS NULL OR :b IS NULL, NULL, ARRAYS_OVERLAP(FILTER(:a, e -> e IS NOT NULL), "
        "FILTER(:b, e -> e IS NOT NULL)))"
    )
    a, b = node.this, node.expression
    if isinstance(a, exp.Null) or isinstance(b, exp.Null):
        return spark("CAST(NULL AS BOOLEAN)")
    return unless("list_has_any", _FLOATS, spark(text, a=a, b=b), a, b)


def _has_all(node: exp.Expr) -> exp.Expr:
    a, b = node.expressions if isinstance(node, exp.Anonymous) else (node.this, node.expression)
    text = (
        "IF(:a IS NULL OR :b IS NULL, NULL, "
        "SIZE(ARRAY_EXCEPT(FILTER(:b, e -> e IS NOT NULL), :a)) = 0)"
    )
    return unless("list_has_all", _FLOATS, spark(text, a=a, b=b), a, b)


_FLOATS = "array<float>|array<double>|array<struct%|array<array%"


def _append(node: exp.Expr) -> exp.Expr:
    """To NULL as to an empty list."""
    text = "CONCAT(COALESCE(:l, ARRAY()), ARRAY(:v))"
    return spark(text, l=node.this, v=node.expression)


def _prepend(node: exp.Expr) -> exp.Expr:
    """sqlglot has the arguments in DuckDB's order or turned round."""
    items, value = node.this, node.expression
    return spark("CONCAT(ARRAY(:v), COALESCE(:l, ARRAY()))", l=items, v=value)


# Around these the order of a list does not matter, as DuckDB's own differs from run to run.
_ORDERLESS = (
    exp.ArrayContains,
    exp.ArrayMax,
    exp.ArrayMin,
    exp.ArraySize,
    exp.ArraySort,
    exp.Length,
)
_ORDERLESS_NAMES = frozenset(
    {"list_avg", "list_has_all", "list_reverse_sort", "list_sum", "list_unique"}
)


def is_orderless(node: exp.Expr) -> bool:
    """Return whether it stands where the order of its items does not matter."""
    parent = node.parent
    while isinstance(parent, exp.Paren | exp.Filter):
        node, parent = parent, parent.parent
    if isinstance(parent, exp.ArraySort) and any(
        isinstance(parent.args.get(key), exp.Expr) and not isinstance(parent.args[key], exp.Boolean)
        for key in ("asc", "nulls_first")
    ):
        return False
    named = isinstance(parent, exp.Anonymous) and parent.name.lower() in _ORDERLESS_NAMES
    return named or (isinstance(parent, _ORDERLESS) and parent.this is node)


def _distinct(node: exp.Expr) -> exp.Expr:
    """Without NULLs."""
    if not is_orderless(node):
        raise refused("the order of list_distinct", "list_sort(list_distinct(l))")
    return spark(f"ARRAY_DISTINCT({_ITEMS})", l=node.this)


def _unique(node: exp.Expr) -> exp.Expr:
    (items,) = node.expressions
    return spark(f"IF(:l IS NULL, NULL, SIZE(ARRAY_DISTINCT({_ITEMS})))", l=items)


def _avg(node: exp.Expr) -> exp.Expr:
    (items,) = node.expressions
    text = (
        f"IF(SIZE({_ITEMS}) > 0, AGGREGATE({_ITEMS}, CAST(0 AS DOUBLE), "
        f"(s, e) -> s + CAST(e AS DOUBLE), s -> s / SIZE({_ITEMS})), NULL)"
    )
    return unless(
        "list_avg",
        "array<string>|array<boolean>|array<date>|array<timestamp%|array<float>",
        spark(text, l=items),
        items,
    )


def _aggregate(node: exp.Expr) -> exp.Expr:
    items, *rest = node.expressions
    name = text_of(rest[0]) if len(rest) == 1 else None
    if name in {"sum", "avg", "mean"}:
        call = exp.Anonymous(this="list_sum", expressions=[items.copy()])
        return (_sum if name == "sum" else _avg)(call)
    if name in {"max", "min"}:
        return _extreme(name)(exp.Upper(this=items.copy()))
    if name == "count":
        return spark(f"IF(:l IS NULL, NULL, CAST(SIZE({_ITEMS}) AS BIGINT))", l=items)
    raise refused("list_aggregate of this kind", "list_sum, list_avg, list_min or list_max")


def _extreme(name: str) -> Rule:
    text = f"ARRAY_{name.upper()}(:l)"
    return lambda node: unless(f"list_{name}", _NESTED, spark(text, l=node.this), node.this)


_NESTED = "array<struct%|array<array%|array<map%"  # in which NULLs have another place


def sliced(node: exp.Expr, part: exp.Expr) -> exp.Expr:
    """``l[a:b]`` of a list or text: from 1, both included, negative bounds from the end."""
    if part.args.get("step"):
        raise refused("a slice with a step")
    items = node.this
    size, slice_ = ("LENGTH", "SUBSTRING") if is_text(items) else ("SIZE", "SLICE")
    first = _bound(node, part.this, size, "1")
    last = _bound(node, part.expression, size, f"{size}(:l)")
    first = f"GREATEST({first}, 1)" if first == "0" or not first.isdigit() else first
    length = f"GREATEST({last} - {first} + 1, 0)"
    text = spark(f"IF(:l IS NULL, NULL, {slice_}(:l, {first}, {length}))", l=items)
    return text if is_text(items) else unless("a slice", "string", text, items, advice=_AS_TEXT)


_AS_TEXT = "substring(text, start, length), or (text::VARCHAR)[a:b]"


def _bound(node: exp.Expr, bound: exp.Expr | None, size: str, missing: str) -> str:
    if bound is None:
        return missing
    number = whole_number(bound)
    if number is None:
        raise refused(f"the slice {node.sql('duckdb')}")
    return str(number) if number >= 0 else f"({size}(:l) - {-number - 1})"


def item_at(items: exp.Expr, at: int) -> exp.Expr:
    """``l[at]``, counted from 1, negative from the end; NULL beyond the end."""
    if is_text(items):
        raise refused("an item of a text", f"substring(text, {at}, 1)" if at > 0 else "")
    return spark(f"TRY_ELEMENT_AT(:l, {at})", l=items)


def _list_slice(node: exp.Expr) -> exp.Expr:
    items, *bounds = node.expressions
    if len(bounds) != 2:
        raise refused("list_slice of this form")
    part = exp.Slice(this=bounds[0], expression=bounds[1])
    return sliced(exp.Bracket(this=items, expressions=[part]), part)


def _one(text: str) -> Rule:
    return lambda node: spark(text, l=node.this)


def _first(text: str) -> Rule:
    return lambda node: spark(text, l=node.expressions[0])


LISTS: Mapping[type[exp.Expr], Rule] = {
    exp.ArrayAppend: _append,
    exp.ArrayContainsAll: _has_all,
    exp.ArrayDistinct: _distinct,
    exp.ArrayOverlaps: _overlaps,
    exp.ArrayPrepend: _prepend,
    exp.ArrayConcat: _concat,
    exp.ArrayContains: _contains,
    exp.ArrayMax: _extreme("max"),
    exp.ArrayMin: _extreme("min"),
    exp.ArraySize: _size,
    exp.ArraySort: _list_sort,
    exp.ArrayToString: _joined,
    exp.Flatten: _one("FLATTEN(FILTER(:l, e -> e IS NOT NULL))"),
    exp.Length: _length,
}
NAMED_LISTS: Mapping[str, Rule] = {
    "array_aggregate": _aggregate,
    "list_aggr": _aggregate,
    "list_aggregate": _aggregate,
    "list_avg": _avg,
    "list_has_all": _has_all,
    "list_position": _position,
    "list_reverse": _first("REVERSE(:l)"),
    "list_slice": _list_slice,
    "list_sum": _sum,
    "list_unique": _unique,
    "list_value": array,
}


def _to_map(node: exp.Expr) -> exp.Expr:
    """``MAP {'k': 1}``."""
    parts: list[exp.Expr] = []
    pairs = node.this.expressions if isinstance(node.this, exp.Struct) else [None]
    for pair in pairs:
        if not isinstance(pair, exp.PropertyEQ):
            raise refused("MAP of this form", "MAP {'key': value}")
        key = pair.this
        name = exp.Literal.string(key.name) if isinstance(key, exp.Identifier) else key.copy()
        parts += [name, pair.expression.copy()]
    return exp.Anonymous(this="MAP", expressions=parts)


def _of_lists(node: exp.Expr) -> exp.Expr:
    keys, values = node.args.get("keys"), node.args.get("values")
    if keys is None and values is None:
        return exp.Anonymous(this="MAP")
    if keys is None or values is None:
        raise refused("MAP of this form", "MAP {'key': value}, or MAP(keys, values)")
    return spark("MAP_FROM_ARRAYS(:k, :v)", k=keys, v=values)


def _called(text: str) -> Rule:
    def rule(node: exp.Expr) -> exp.Expr:
        value = node.expressions[0] if isinstance(node, exp.Anonymous) else node.this
        return spark(text, m=value)

    return rule


def _with_key(text: str) -> Rule:
    def rule(node: exp.Expr) -> exp.Expr:
        if len(node.expressions) != 2:
            raise refused(f"{node.name} of this form")
        value, key = node.expressions
        return spark(text, m=value, k=key)

    return rule


_AT = "TRY_ELEMENT_AT(:m, :k)"
_LISTED = "IF(MAP_CONTAINS_KEY(:m, :k), ARRAY(TRY_ELEMENT_AT(:m, :k)), SLICE(MAP_VALUES(:m), 1, 0))"

MAPS: Mapping[type[exp.Expr], Rule] = {
    exp.Map: _of_lists,
    exp.MapFromEntries: _called("MAP_FROM_ENTRIES(:m)"),
    exp.MapKeys: _called("MAP_KEYS(:m)"),
    exp.ToMap: _to_map,
}
NAMED_MAPS: Mapping[str, Rule] = {
    "cardinality": _called("IF(:m IS NULL, NULL, SIZE(MAP_KEYS(:m)))"),
    "map_contains": _with_key("MAP_CONTAINS_KEY(:m, :k)"),
    "map_entries": _called("MAP_ENTRIES(:m)"),
    "map_extract": _with_key(_LISTED),
    "map_extract_value": _with_key(_AT),
    "map_values": _called("MAP_VALUES(:m)"),
}
