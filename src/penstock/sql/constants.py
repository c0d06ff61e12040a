"""Compute constant expressions of DuckDB's SQL, as defaults of columns: ``1 + 1``, ``'x' || 'y'``.

Only what is known to have DuckDB's value: whole numbers that stay 64 bits wide, and texts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from operator import add, mul, sub

from penstock.lazy import exp
from penstock.sql.text import Unreadable, parse_expression

Value = int | str
_LIMIT = 1 << 31  # beyond it DuckDB's type of a result may be another than the operands'


class _NotConstant(Exception):
    pass


def constant(text: str) -> Value | None:
    """Return the value of an expression; ``None`` where DuckDB's is not known."""
    try:
        return _value(parse_expression(text, "duckdb"))
    except (Unreadable, _NotConstant):
        return None


def _value(tree: exp.Expr) -> Value:
    compute = _COMPUTED.get(type(tree).__name__)
    if compute is None:
        raise _NotConstant
    return compute(tree)


def _literal(tree: exp.Expr) -> Value:
    if tree.is_string:
        return str(tree.name)
    if not tree.name.isdigit():
        raise _NotConstant
    return _whole(int(tree.name))


def _whole(value: Value) -> int:
    if not isinstance(value, int) or abs(value) >= _LIMIT:
        raise _NotConstant
    return value


def _written(value: Value) -> str:
    if not isinstance(value, str):
        raise _NotConstant
    return value


def _inside(tree: exp.Expr) -> Value:
    return _value(tree.this)


def _negative(tree: exp.Expr) -> Value:
    return -_whole(_value(tree.this))


def _arithmetic(apply: Callable[[int, int], int]) -> Callable[[exp.Expr], Value]:
    return lambda tree: _whole(
        apply(_whole(_value(tree.this)), _whole(_value(tree.args["expression"])))
    )


def _joined(tree: exp.Expr) -> Value:
    parts = tree.expressions or [tree.this, tree.args["expression"]]
    return reduce(add, (_written(_value(part)) for part in parts), "")


_COMPUTED: Mapping[str, Callable[[exp.Expr], Value]] = {
    "Literal": _literal,
    "Paren": _inside,
    "Neg": _negative,
    "Add": _arithmetic(add),
    "Sub": _arithmetic(sub),
    "Mul": _arithmetic(mul),
    "DPipe": _joined,
    "Concat": _joined,
}
