"""One value of several."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow.compute as pc
from sqlglot import exp

from penstock.lake.arrow_expressions import kinds, nodes
from penstock.lake.arrow_expressions.kinds import NotSupportedByArrow
from penstock.lake.arrow_expressions.logic import condition
from penstock.lake.arrow_expressions.nodes import Compile, Node, Value


def coalesce(tree: Any, node: Compile) -> Node:
    parts = [node(part) for part in (tree.this, *tree.expressions)]
    kind = kinds.common([part.kind for part in parts])
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
    given = [node(value) for _, value in pairs]
    given.append(nodes.null() if default is None else node(default))
    kind = kinds.common([value.kind for value in given])
    values = [nodes.fitted(value, kind) for value in given]

    def choose(*parts: Value) -> Value:
        whens, thens = parts[: len(conditions)], parts[len(conditions) :]
        found = thens[-1]
        for when, then in zip(reversed(whens), reversed(thens[:-1]), strict=True):
            found = pc.if_else(pc.fill_null(when, False), then, found)
        return found

    return nodes.of(kind, choose, *conditions, *values)
