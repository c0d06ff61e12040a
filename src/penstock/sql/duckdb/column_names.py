"""The names that DuckDB gives to columns without an alias: its own print of the expression."""

from __future__ import annotations

import re
from collections.abc import Mapping

import sqlglot
from sqlglot import exp

_NAMED = (exp.Alias, exp.Column, exp.Star, exp.Columns, exp.Dot, exp.Subquery)
_OPERATORS: Mapping[type[exp.Expr], str] = {
    exp.Add: "+", exp.And: "AND", exp.DPipe: "||", exp.Div: "/", exp.EQ: "=", exp.GT: ">",
    exp.GTE: ">=", exp.IntDiv: "//", exp.LT: "<", exp.LTE: "<=", exp.Mod: "%", exp.Mul: "*",
    exp.NEQ: "!=", exp.Or: "OR", exp.Sub: "-",
}  # fmt: skip


_TYPED = re.compile(r"\b(DATE|TIMESTAMP|TIMESTAMPTZ)\s+'[^']*'(?=\s*::)", re.IGNORECASE)
_WRITTEN = (exp.Like, exp.ILike, exp.Is, exp.In, exp.Between, exp.Not, exp.NullSafeEQ, exp.Pow)
_TYPES = {
    "INT": "INTEGER",
    "INT128": '"HUGEINT"',
    "TEXT": "VARCHAR",
    "DOUBLE": '"DOUBLE"',
    "DATE": '"DATE"',
}


def unnamed(text: str) -> str | None:
    """DuckDB's name for an item of a SELECT; ``None`` where the item has a name by itself.

    Functions are named as they were written, which is DuckDB's name when nothing but columns and
    constants is in them. Raises sqlglot's errors.
    """
    text = _TYPED.sub(r"(\g<0>)", text)  # the name of the type binds closer than a cast
    items = sqlglot.parse_one(f"SELECT {text}", read="duckdb").expressions
    if len(items) != 1 or isinstance(items[0], _NAMED) or items[0].is_star:
        return None
    return _printed(items[0], text)


def _printed(node: exp.Expr, text: str | None = None) -> str:
    """``text`` is what was written, where that is known."""
    if isinstance(node, exp.Count) and (node.this is None or isinstance(node.this, exp.Star)):
        return "count_star()" if not isinstance(node.parent, exp.Filter) else "count(*)"
    if isinstance(node, exp.Paren):
        return _printed(node.this)
    if isinstance(node, exp.Cast) and not isinstance(node, exp.TryCast):
        kind = node.args["to"].sql("duckdb")
        return f"CAST({_printed(node.this)} AS {_TYPES.get(kind, kind)})"
    if isinstance(node, exp.Neg) and not isinstance(node.this, exp.Literal):
        return f"-({_printed(node.this)})"
    operator = _OPERATORS.get(type(node))
    if operator is not None:
        return f"({_printed(node.this)} {operator} {_printed(node.expression)})"
    written = text or node.sql("duckdb", normalize_functions="lower")
    return f"({written})" if isinstance(node, _WRITTEN) else written
