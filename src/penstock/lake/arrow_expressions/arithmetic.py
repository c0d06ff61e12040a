"""Numbers computed from others. Kernels that do not check stand where nothing can go wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from penstock.lake.arrow_expressions import kinds, nodes
from penstock.lake.arrow_expressions.kinds import NotSupportedByArrow
from penstock.lake.arrow_expressions.logic import number
from penstock.lake.arrow_expressions.nodes import Compile, Node, Value


def summed(kernel: Callable[[Value, Value], Value]) -> Callable[[Any, Compile], Node]:
    return arithmetic(kernel, kinds.sum_of)


def arithmetic(
    kernel: Callable[[Value, Value], Value],
    of_decimals: Callable[[pa.DataType, pa.DataType], pa.DataType],
) -> Callable[[Any, Compile], Node]:
    def compute(tree: Any, node: Compile) -> Node:
        left, right = node(tree.left), node(tree.right)
        if left.kind in kinds.INTEGERS and right.kind in kinds.INTEGERS:
            kind = kinds.common([left.kind, right.kind])
            return nodes.of(kind, kernel, left.cast(kind), right.cast(kind))
        if not (kinds.is_number(left.kind) and kinds.is_number(right.kind)):
            raise NotSupportedByArrow(f"{left.kind} and {right.kind} in one number")
        left, right = _as_decimal(left), _as_decimal(right)
        return nodes.of(of_decimals(left.kind, right.kind), kernel, left, right)

    return compute


def _as_decimal(part: Node) -> Node:
    """An integer beside a decimal: a literal is one of just its digits, as Spark has it."""
    if kinds.is_decimal(part.kind):
        return part
    if part.literal is not None and isinstance(part.literal.value, int):
        return nodes.constant(kinds.digits_of(part.literal.value), part.literal.value)
    if not part.columns:  # 1L and CAST(1 AS BIGINT), of which Spark makes two types, look alike
        raise NotSupportedByArrow("a constant beside a decimal")
    return part.cast(kinds.as_decimal(part.kind))


def remainder(tree: Any, node: Compile) -> Node:
    """``%``, which has the sign of what is divided."""
    return _whole_remainder([node(tree.left), node(tree.right)], _rest)


def named(tree: Any, node: Compile) -> Node:
    """Functions that sqlglot has no class for."""
    if str(tree.this).lower() != "pmod" or len(tree.expressions) != 2:
        raise NotSupportedByArrow(f"{tree.this}")
    return _whole_remainder([node(part) for part in tree.expressions], _positive_rest)


def _whole_remainder(parts: Sequence[Node], kernel: Callable[[Value, Value], Value]) -> Node:
    if not all(part.kind in kinds.INTEGERS for part in parts):
        raise NotSupportedByArrow("a remainder of other numbers")
    kind = kinds.common([part.kind for part in parts])
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
    """Before a number the sign is a part of it: -2147483648 is an int."""
    if isinstance(tree.this, exp.Literal) and not tree.this.is_string:
        return number(tree.this.name, negative=True)
    value = node(tree.this)
    if not kinds.is_number(value.kind):
        raise NotSupportedByArrow(f"- before {value.kind}")
    return nodes.of(value.kind, pc.negate_checked, value)
