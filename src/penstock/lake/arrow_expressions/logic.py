"""AND, OR, NOT and IS, of three values."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from penstock.lake.arrow_expressions import nodes
from penstock.lake.arrow_expressions.nodes import Compile, Node
from penstock.lake.arrow_expressions.refusal import NotHere

_BOOLEAN = pa.bool_()


def condition(tree: exp.Expr, node: Compile) -> Node:
    found = node(tree)
    if pa.types.is_null(found.kind):
        return nodes.constant(_BOOLEAN, None)
    if found.kind != _BOOLEAN:
        raise NotHere(f"{found.kind} as a condition")
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
        raise NotHere("IS")
    wanted = pa.scalar(bool(tree.expression.this))
    found = condition(tree.this, node)
    return nodes.of(_BOOLEAN, lambda one: pc.fill_null(pc.equal(one, wanted), False), found)
