"""AND, OR, NOT and IS in three-valued logic; literals and brackets."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from penstock.lake.arrow_expressions import kinds, nodes
from penstock.lake.arrow_expressions.kinds import NotSupportedByArrow
from penstock.lake.arrow_expressions.nodes import Compile, Node

_BOOLEAN = pa.bool_()


def condition(tree: exp.Expr, node: Compile) -> Node:
    found = node(tree)
    if pa.types.is_null(found.kind):
        return nodes.constant(_BOOLEAN, None)
    if found.kind != _BOOLEAN:
        raise NotSupportedByArrow(f"{found.kind} as a condition")
    return found


def and_(tree: Any, node: Compile) -> Node:
    sides = condition(tree.left, node), condition(tree.right, node)
    return nodes.of(_BOOLEAN, pc.and_kleene, *sides)


def or_(tree: Any, node: Compile) -> Node:
    sides = condition(tree.left, node), condition(tree.right, node)
    return nodes.of(_BOOLEAN, pc.or_kleene, *sides)


def not_(tree: Any, node: Compile) -> Node:
    return nodes.of(_BOOLEAN, pc.invert, condition(tree.this, node))


def is_(tree: Any, node: Compile) -> Node:
    """``IS NULL``, ``IS TRUE`` and ``IS FALSE``; their NOT stands around them."""
    if isinstance(tree.expression, exp.Null):
        return nodes.of(_BOOLEAN, pc.is_null, node(tree.this))
    if not isinstance(tree.expression, exp.Boolean):
        raise NotSupportedByArrow("IS")
    wanted = pa.scalar(bool(tree.expression.this))
    found = condition(tree.this, node)
    return nodes.of(_BOOLEAN, lambda one: pc.fill_null(pc.equal(one, wanted), False), found)


def paren(tree: Any, node: Compile) -> Node:
    return node(tree.this)


def literal(tree: Any, _: Compile) -> Node:
    if tree.is_string:
        return nodes.constant(pa.string(), tree.name, kinds.Literal(tree.name, pa.string()))
    return number(tree.name)


def number(text: str, *, negative: bool = False) -> Node:
    found = kinds.integer_or_decimal(text, negative=negative)
    return nodes.constant(found.kind, found.value, found)


def null(_tree: Any, _: Compile) -> Node:
    return nodes.null()


def boolean(tree: Any, _: Compile) -> Node:
    return nodes.constant(pa.bool_(), bool(tree.this))
