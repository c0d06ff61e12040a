"""What computes each operator and function, by sqlglot's class of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow.compute as pc
from sqlglot import exp

from penstock.lake.arrow_expressions import arithmetic, casts, choices, comparisons, kinds, logic
from penstock.lake.arrow_expressions.kinds import NotSupportedByArrow
from penstock.lake.arrow_expressions.logic import boolean, literal, null, paren
from penstock.lake.arrow_expressions.nodes import Compile, Node

__all__ = ["FUNCTIONS", "of_class"]


def of_class(tree: exp.Expr, node: Compile) -> Node:
    """The node of ``tree``, whose parts ``node`` compiles. Raises NotSupportedByArrow."""
    found = FUNCTIONS.get(type(tree))
    if found is None:
        raise NotSupportedByArrow(type(tree).__name__)
    return found(tree, node)


FUNCTIONS: Mapping[type, Callable[[Any, Compile], Node]] = {
    exp.Paren: paren,
    exp.Literal: literal,
    exp.Null: null,
    exp.Boolean: boolean,
    exp.And: logic.and_,
    exp.Or: logic.or_,
    exp.Not: logic.not_,
    exp.Is: logic.is_,
    exp.EQ: comparisons.compared(pc.equal),
    exp.NEQ: comparisons.compared(pc.not_equal),
    exp.LT: comparisons.compared(pc.less),
    exp.LTE: comparisons.compared(pc.less_equal),
    exp.GT: comparisons.compared(pc.greater),
    exp.GTE: comparisons.compared(pc.greater_equal),
    exp.NullSafeEQ: comparisons.same,
    exp.In: comparisons.in_,
    exp.Between: comparisons.between,
    exp.Like: comparisons.like,
    exp.Add: arithmetic.summed(pc.add_checked),
    exp.Sub: arithmetic.summed(pc.subtract_checked),
    exp.Mul: arithmetic.arithmetic(pc.multiply_checked, kinds.product_of),
    exp.Mod: arithmetic.remainder,
    exp.Anonymous: arithmetic.named,
    exp.Neg: arithmetic.negative,
    exp.Coalesce: choices.coalesce,
    exp.If: choices.if_,
    exp.Case: choices.case,
    exp.Cast: casts.cast,
    exp.TryCast: casts.cast,
}
