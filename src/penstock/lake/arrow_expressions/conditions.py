"""Conditions in three-valued logic: comparisons, of values that Spark casts to one type exactly;
AND, OR, NOT and IS.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from penstock.lake.arrow_expressions import nodes
from penstock.lake.arrow_expressions.nodes import Compile, Node, NotSupportedByArrow, Value
from penstock.lazy import exp, pa, pc

_BOOLEAN = pa.bool_()
_TIMES = (nodes.MOMENT, nodes.CLOCK)
_LEAST, _MOST = -(2**63), 2**63 - 1


def _alike(parts: Sequence[Node], node: Compile) -> list[Node]:
    """The parts in the one type that Spark compares them in."""
    parts = _with_times(parts, node)
    kind = nodes.common([part.kind for part in parts])
    if any(part.kind in nodes.INTEGERS for part in parts):
        for part in parts:
            _refuse_beyond_bigint(part)
    return [nodes.fitted(part, kind) for part in parts]


def _refuse_beyond_bigint(part: Node) -> None:
    """Refuse comparing an integer with a literal beyond bigint: Spark folds that to true or false,
    even for NULL.
    """
    if nodes.is_decimal(part.kind) and not part.columns:
        value = part.run(pa.table({})).as_py()
        if value is not None and not _LEAST <= value <= _MOST:
            raise NotSupportedByArrow("an integer and a number beyond bigint")


def _with_times(parts: Sequence[Node], node: Compile) -> Sequence[Node]:
    """Parse texts that are compared with a date or a time."""
    if len(parts) != 2:
        return parts
    left, right = parts
    return [_as_time(left, right.kind, node), _as_time(right, left.kind, node)]


def _as_time(part: Node, beside: pa.DataType, node: Compile) -> Node:
    """A literal in the type it is compared with; a date becomes its midnight in Spark's zone."""
    text = None if part.literal is None else part.literal.value
    if isinstance(text, str) and beside == pa.date32():
        return nodes.constant(beside, nodes.day(text))
    if isinstance(text, str) and beside in _TIMES:
        return nodes.time_of(text, beside, node)
    if part.columns or beside not in _TIMES or part.kind == beside:
        return part
    if part.kind == pa.date32() or (part.kind == nodes.MOMENT and node.in_utc):
        value = part.run(pa.table({})).as_py()
        return part if value is None else nodes.time_of(_text(value), beside, node)
    return part


def _text(value: dt.date) -> str:
    """The time as `nodes.clock` reads it."""
    return value.replace(tzinfo=None).isoformat() if isinstance(value, dt.datetime) else str(value)


def compared(kernel: Callable[[Value, Value], Value]) -> Callable[[Any, Compile], Node]:
    def compare(tree: Any, node: Compile) -> Node:
        sides = [node(tree.left), node(tree.right)]
        typed = [side for side in sides if not pa.types.is_null(side.kind)]
        if len(typed) < len(sides):
            return _never(typed)
        return nodes.of(_BOOLEAN, kernel, *_alike(sides, node))

    return compare


def _never(others: Sequence[Node]) -> Node:
    """A comparison with NULL: always NULL, if the other side can be computed."""
    nodes.common([part.kind for part in others])  # raises for what Arrow does not compare
    return nodes.of(_BOOLEAN, lambda *_: pa.scalar(None, _BOOLEAN), *others)


def same(tree: Any, node: Compile) -> Node:
    """``<=>``: NULL is equal to NULL, and to nothing else."""
    sides = [node(tree.left), node(tree.right)]
    typed = [side for side in sides if not pa.types.is_null(side.kind)]
    if len(typed) == 1:
        return nodes.of(_BOOLEAN, pc.is_null, typed[0])
    return nodes.of(_BOOLEAN, _equal_or_null, *_alike(sides, node))


def _equal_or_null(left: Value, right: Value) -> Value:
    equal = pc.fill_null(pc.equal(left, right), False)
    return pc.or_(equal, pc.and_(pc.is_null(left), pc.is_null(right)))


def in_(tree: Any, node: Compile) -> Node:
    """``IN`` with literals. With a NULL among them the result is true or NULL."""
    items = [node(item) for item in tree.expressions]
    if not items or any(item.columns for item in items):
        raise NotSupportedByArrow("an IN of no literals")
    first, *others = _alike([node(tree.this), *items], node)
    empty = pa.table({})
    values = [other.run(empty) for other in others]
    known = [value.as_py() for value in values if value.is_valid]
    listed = pa.array(known, first.kind)
    with_null = len(known) < len(values)

    def among(value: Value) -> Value:
        is_listed = pc.is_in(value, value_set=listed)
        unknown = pc.is_null(value)
        if with_null:
            unknown = pc.or_(unknown, pc.invert(is_listed))
        return pc.if_else(unknown, pa.scalar(None, _BOOLEAN), is_listed)

    return nodes.of(_BOOLEAN, among, first)


def between(tree: Any, node: Compile) -> Node:
    value = tree.this
    low = exp.GTE(this=value.copy(), expression=tree.args["low"].copy())
    high = exp.LTE(this=value.copy(), expression=tree.args["high"].copy())
    return nodes.of(_BOOLEAN, pc.and_kleene, node(low), node(high))


def like(tree: Any, node: Compile) -> Node:
    """Patterns with % only at their ends, which can be compared byte by byte."""
    value, pattern = node(tree.this), tree.expression
    if value.kind != pa.string() or not isinstance(pattern, exp.Literal) or not pattern.is_string:
        raise NotSupportedByArrow("LIKE of other things")
    text = pattern.name
    before, after = text.startswith("%"), text.endswith("%")
    inner = text.strip("%")
    if "%" in inner or "_" in inner:
        raise NotSupportedByArrow("LIKE with wildcards inside")
    kernel = _LIKES[before, after]
    matches = nodes.of(_BOOLEAN, lambda text: kernel(text, inner), value)
    return nodes.of(_BOOLEAN, pc.invert, matches) if tree.args.get("negate") else matches


_LIKES: Mapping[tuple[bool, bool], Callable[[Value, str], Value]] = {
    (False, False): pc.equal,
    (False, True): lambda value, text: pc.starts_with(value, pattern=text),
    (True, False): lambda value, text: pc.ends_with(value, pattern=text),
    (True, True): lambda value, text: pc.match_substring(value, pattern=text),
}


def condition(tree: exp.Expr, node: Compile) -> Node:
    compiled = node(tree)
    if pa.types.is_null(compiled.kind):
        return nodes.constant(_BOOLEAN, None)
    if compiled.kind != _BOOLEAN:
        raise NotSupportedByArrow(f"{compiled.kind} as a condition")
    return compiled


def and_(tree: Any, node: Compile) -> Node:
    sides = condition(tree.left, node), condition(tree.right, node)
    return nodes.of(_BOOLEAN, pc.and_kleene, *sides)


def or_(tree: Any, node: Compile) -> Node:
    sides = condition(tree.left, node), condition(tree.right, node)
    return nodes.of(_BOOLEAN, pc.or_kleene, *sides)


def not_(tree: Any, node: Compile) -> Node:
    return nodes.of(_BOOLEAN, pc.invert, condition(tree.this, node))


def is_(tree: Any, node: Compile) -> Node:
    """``IS NULL``, ``IS TRUE`` and ``IS FALSE``; sqlglot parses their NOT around them."""
    if isinstance(tree.expression, exp.Null):
        return nodes.of(_BOOLEAN, pc.is_null, node(tree.this))
    if not isinstance(tree.expression, exp.Boolean):
        raise NotSupportedByArrow("IS")
    wanted = pa.scalar(bool(tree.expression.this))
    compiled = condition(tree.this, node)
    return nodes.of(_BOOLEAN, lambda side: pc.fill_null(pc.equal(side, wanted), False), compiled)
