"""Values: literals, numbers computed from others, casts, and the choice among several values.

Unchecked kernels are used where no error is possible.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from penstock.lake.arrow_expressions import nodes
from penstock.lake.arrow_expressions.conditions import condition
from penstock.lake.arrow_expressions.nodes import Compile, Node, NotSupportedByArrow, Value
from penstock.lazy import exp, pa, pc


def paren(tree: Any, node: Compile) -> Node:
    return node(tree.this)


def literal(tree: Any, _: Compile) -> Node:
    if tree.is_string:
        return nodes.constant(pa.string(), tree.name, nodes.Literal(tree.name, pa.string()))
    return number(tree.name)


def number(text: str, *, negative: bool = False) -> Node:
    parsed = nodes.integer_or_decimal(text, negative=negative)
    return nodes.constant(parsed.kind, parsed.value, parsed)


def null(_tree: Any, _: Compile) -> Node:
    return nodes.null()


def boolean(tree: Any, _: Compile) -> Node:
    return nodes.constant(pa.bool_(), bool(tree.this))


def summed(kernel: Callable[[Value, Value], Value]) -> Callable[[Any, Compile], Node]:
    return arithmetic(kernel, nodes.sum_of)


def arithmetic(
    kernel: Callable[[Value, Value], Value],
    of_decimals: Callable[[pa.DataType, pa.DataType], pa.DataType],
) -> Callable[[Any, Compile], Node]:
    def compute(tree: Any, node: Compile) -> Node:
        left, right = node(tree.left), node(tree.right)
        if left.kind in nodes.INTEGERS and right.kind in nodes.INTEGERS:
            kind = nodes.common([left.kind, right.kind])
            return nodes.of(kind, kernel, left.cast(kind), right.cast(kind))
        if not (nodes.is_number(left.kind) and nodes.is_number(right.kind)):
            raise NotSupportedByArrow(f"{left.kind} and {right.kind} in one number")
        left, right = _as_decimal(left), _as_decimal(right)
        return nodes.of(of_decimals(left.kind, right.kind), kernel, left, right)

    return compute


def _as_decimal(part: Node) -> Node:
    """An integer beside a decimal; a literal becomes a decimal of its own digits, as in Spark."""
    if nodes.is_decimal(part.kind):
        return part
    if part.literal is not None and isinstance(part.literal.value, int):
        return nodes.constant(nodes.digits_of(part.literal.value), part.literal.value)
    if not part.columns:  # 1L and CAST(1 AS BIGINT), of which Spark makes two types, look alike
        raise NotSupportedByArrow("a constant beside a decimal")
    return part.cast(nodes.as_decimal(part.kind))


def remainder(tree: Any, node: Compile) -> Node:
    """``%``, which has the sign of the dividend."""
    return _whole_remainder([node(tree.left), node(tree.right)], _rest)


def named(tree: Any, node: Compile) -> Node:
    """Functions that sqlglot has no class for."""
    if str(tree.this).lower() != "pmod" or len(tree.expressions) != 2:
        raise NotSupportedByArrow(f"{tree.this}")
    return _whole_remainder([node(part) for part in tree.expressions], _positive_rest)


def _whole_remainder(parts: Sequence[Node], kernel: Callable[[Value, Value], Value]) -> Node:
    if not all(part.kind in nodes.INTEGERS for part in parts):
        raise NotSupportedByArrow("a remainder of other numbers")
    kind = nodes.common([part.kind for part in parts])
    return nodes.of(kind, kernel, *(part.cast(kind) for part in parts))


def _rest(value: Value, by: Value) -> Value:
    return pc.subtract(value, pc.multiply(pc.divide_checked(value, by), by))


def _positive_rest(value: Value, by: Value) -> Value:
    least = by if isinstance(by, pa.Scalar) else pc.min(by)
    if least.is_valid and least.as_py() <= 0:
        raise NotSupportedByArrow("pmod by a number that is not positive")
    rest = _rest(value, by)
    lowest = rest if isinstance(rest, pa.Scalar) else pc.min(rest)
    if not lowest.is_valid or lowest.as_py() >= 0:  # as it is in most tables
        return rest
    return pc.if_else(pc.less(rest, pa.scalar(0, rest.type)), pc.add(rest, by), rest)


def negative(tree: Any, node: Compile) -> Node:
    """The sign of a number belongs to it: -2147483648 is an int."""
    if isinstance(tree.this, exp.Literal) and not tree.this.is_string:
        return number(tree.this.name, negative=True)
    value = node(tree.this)
    if not nodes.is_number(value.kind):
        raise NotSupportedByArrow(f"- before {value.kind}")
    return nodes.of(value.kind, pc.negate_checked, value)


def cast(tree: Any, node: Compile) -> Node:
    """Casts without loss; if a value would lose something, the statement falls back to Spark."""
    to, kind = tree.to, _KINDS.get(tree.to.this)
    if isinstance(tree.this, exp.Literal) and tree.this.is_string and kind == pa.date32():
        return nodes.constant(pa.date32(), nodes.day(tree.this.name))
    if isinstance(tree.this, exp.Literal) and tree.this.is_string and to.this in _TIMES:
        return nodes.time_of(tree.this.name, _TIMES[to.this], node)
    if to.this == exp.DType.DECIMAL:
        kind = _decimal(to)
    if kind is None or (to.expressions and not nodes.is_decimal(kind)):
        raise NotSupportedByArrow(f"a cast to {to}")
    value = node(tree.this)
    widens = value.kind in nodes.INTEGERS and nodes.is_number(kind)
    rescales = nodes.is_decimal(value.kind) and nodes.is_decimal(kind)
    if not (widens or rescales or value.kind == kind):
        raise NotSupportedByArrow(f"a cast of {value.kind} to {kind}")
    return Node(kind, nodes.fitted(value, kind).run, value.columns)


def _decimal(to: Any) -> pa.DataType:
    digits = [part.this.name for part in to.expressions]
    if len(digits) != 2:
        raise NotSupportedByArrow("a decimal without its digits")
    precision, scale = map(int, digits)
    if not 0 <= scale <= precision:
        raise NotSupportedByArrow("a decimal of odd digits")
    return nodes.decimal(precision, scale)


_TIMES: Mapping[Any, pa.DataType] = {
    exp.DType.TIMESTAMPTZ: nodes.MOMENT,  # as TIMESTAMP is read in Spark's SQL
    exp.DType.TIMESTAMPNTZ: nodes.CLOCK,
}
_KINDS: Mapping[Any, pa.DataType] = {
    exp.DType.TINYINT: pa.int8(),
    exp.DType.SMALLINT: pa.int16(),
    exp.DType.INT: pa.int32(),
    exp.DType.BIGINT: pa.int64(),
    exp.DType.DATE: pa.date32(),
    exp.DType.BOOLEAN: pa.bool_(),
}


def coalesce(tree: Any, node: Compile) -> Node:
    parts = [node(part) for part in (tree.this, *tree.expressions)]
    kind = nodes.common([part.kind for part in parts])
    return nodes.of(kind, pc.coalesce, *(nodes.fitted(part, kind) for part in parts))


def if_(tree: Any, node: Compile) -> Node:
    return _chosen([(tree.this, tree.args["true"])], tree.args.get("false"), node)


def case(tree: Any, node: Compile) -> Node:
    if tree.this is not None:
        raise NotSupportedByArrow("CASE of a value")
    return _chosen(
        [(arg.this, arg.args["true"]) for arg in tree.args["ifs"]], tree.args.get("default"), node
    )


def _chosen(
    pairs: Sequence[tuple[exp.Expr, exp.Expr]], default: exp.Expr | None, node: Compile
) -> Node:
    """The value of the first condition that is true."""
    conditions = [condition(when, node) for when, _ in pairs]
    branches = [node(value) for _, value in pairs]
    branches.append(nodes.null() if default is None else node(default))
    kind = nodes.common([value.kind for value in branches])
    values = [nodes.fitted(value, kind) for value in branches]

    def choose(*parts: Value) -> Value:
        whens, thens = parts[: len(conditions)], parts[len(conditions) :]
        chosen = thens[-1]
        for when, then in zip(reversed(whens), reversed(thens[:-1]), strict=True):
            chosen = pc.if_else(pc.fill_null(when, False), then, chosen)
        return chosen

    return nodes.of(kind, choose, *conditions, *values)
