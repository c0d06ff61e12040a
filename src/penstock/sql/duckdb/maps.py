"""DuckDB's maps."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from penstock.lazy import exp
from penstock.sql.duckdb.guards import refused, spark

Rule = Callable[[exp.Expr], exp.Expr]


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
