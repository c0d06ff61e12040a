"""What stands for itself: literals and what is in brackets."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from penstock.lake.arrow_expressions import kinds, nodes
from penstock.lake.arrow_expressions.nodes import Compile, Node


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
