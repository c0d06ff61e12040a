"""DuckDB's SQL as Spark's: a tree whose every node is known to mean the same, or a refusal.

sqlglot writes something for whatever it reads, be it the same or not (``l[-1]`` becomes
``l[-2]``, ``QUALIFY`` with ``*`` adds a column), so nothing passes that is not in the tables of
`penstock.sql.duckdb.functions` and here. Where the meaning hangs on a type that the text does
not tell, the text asks Spark: ``typeof`` is decided before the query runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sqlglot import exp

from penstock.sql.duckdb.casts import CASTS
from penstock.sql.duckdb.functions import FUNCTIONS, NAMED
from penstock.sql.duckdb.guards import refused
from penstock.sql.duckdb.operators import OPERATORS, intervals

Rule = Callable[[exp.Expr], exp.Expr]

# Databricks' dialect is Spark's for what passes here, and knows QUALIFY, which Spark 4 has.
_SPARK = "databricks"

# What means the same in both and has nothing to check.
_SAME: tuple[type[exp.Expr], ...] = (
    exp.Alias, exp.And, exp.Between, exp.Boolean, exp.CTE, exp.Case, exp.Column, exp.Cube,
    exp.DataType, exp.DataTypeParam, exp.Dot, exp.Except, exp.Exists, exp.From,
    exp.GT, exp.GTE, exp.Group, exp.GroupingSets, exp.Having, exp.HistoricalData, exp.Identifier,
    exp.If, exp.In, exp.Intersect, exp.Is, exp.LT, exp.LTE, exp.Lambda, exp.Limit, exp.Literal,
    exp.Mul, exp.NEQ, exp.Neg, exp.Not, exp.Null, exp.NullSafeEQ, exp.NullSafeNEQ, exp.Offset,
    exp.Or, exp.Order, exp.Paren, exp.Qualify, exp.Rollup, exp.Subquery, exp.TableAlias, exp.Tuple,
    exp.Values, exp.Var, exp.Where, exp.With, exp.IgnoreNulls, exp.RespectNulls, exp.PropertyEQ,
)  # fmt: skip

_RULES: Mapping[type[exp.Expr], Rule] = {
    **{kind: lambda node: node for kind in _SAME},
    **OPERATORS,
    **FUNCTIONS,
    **CASTS,
}


def to_spark(tree: exp.Expr) -> str:
    """The text for Spark. The tree is changed. Raises UnsupportedFeature naming what it is."""
    intervals(tree)
    for node in reversed(list(tree.walk(bfs=False))):
        new = _rule(node)(node)
        if new is not node:
            if node is tree:
                tree = new
            else:
                node.replace(new)
    return tree.sql(_SPARK)


def _rule(node: exp.Expr) -> Rule:
    if isinstance(node, exp.Anonymous):
        rule = NAMED.get(str(node.name).lower())
        if rule is None:
            raise refused(f"the function {node.name}")
        return rule
    rule = _RULES.get(type(node))
    if rule is None:
        raise refused(_called(node))
    return rule


def _called(node: exp.Expr) -> str:
    if isinstance(node, exp.Func):
        return f"the function {node.sql_name().lower()}"
    return f"{node.key.upper()} ({node.sql('duckdb')[:60]})"
