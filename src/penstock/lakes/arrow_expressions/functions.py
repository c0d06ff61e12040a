"""Functions of expressions: conditions in three-valued logic (comparisons, of values that Spark
casts to one type exactly; AND, OR, NOT and IS), then values: literals, numbers computed from
others, casts, and the choice among several values.

Unchecked kernels are used where no error is possible.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from penstock.lakes.arrow_expressions import nodes
from penstock.lakes.arrow_expressions.nodes import Compile, Node, NotSupportedByArrow, Value
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


def compared(name: str) -> Callable[[Any, Compile], Node]:
    """Compare by the kernel of this name: kernels load when an expression is compiled."""

    def compare(tree: Any, node: Compile) -> Node:
        sides = [node(tree.left), node(tree.right)]
        typed = [side for side in sides if not pa.types.is_null(side.kind)]
        if len(typed) < len(sides):
            return _never(typed)
        return nodes.of(_BOOLEAN, getattr(pc, name), *_alike(sides, node))

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
    (False, False): lambda value, text: pc.equal(value, text),  # noqa: PLW0108 - loads no kernel here
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


def summed(name: str) -> Callable[[Any, Compile], Node]:
    return arithmetic(name, nodes.sum_of)


def arithmetic(
    name: str,
    of_decimals: Callable[[pa.DataType, pa.DataType], pa.DataType],
) -> Callable[[Any, Compile], Node]:
    def compute(tree: Any, node: Compile) -> Node:
        kernel = getattr(pc, name)
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
    if isinstance(tree.this, exp.Literal) and tree.this.is_string and to.this in _TIME_KINDS:
        return nodes.time_of(tree.this.name, _TIME_KINDS[to.this], node)
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


_TIME_KINDS: Mapping[Any, pa.DataType] = {
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
