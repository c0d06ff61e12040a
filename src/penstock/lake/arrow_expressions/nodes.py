"""Expressions that are typed and can be computed: values that functions are made of."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from penstock.lake.arrow_expressions import kinds
from penstock.lake.arrow_expressions.kinds import NotSupportedByArrow

Rows: TypeAlias = "pa.Table | pa.RecordBatch"
Value = Any  # an array, a chunked one or a scalar of Arrow's, which has no types of its own


class Compile(Protocol):
    """Makes nodes of the parts of an expression."""

    @property
    def in_utc(self) -> bool:
        """Whether times without a zone are in UTC; where not, those of a zone are left to Spark."""
        ...

    def __call__(self, tree: exp.Expr) -> Node: ...


@dataclass(frozen=True, slots=True)
class Node:
    """``kind`` is the type that Spark gives it; ``run`` computes it from the rows of a table.

    What cannot be computed (an overflow, a division by zero) raises ArrowInvalid or
    NotSupportedByArrow.
    """

    kind: pa.DataType
    run: Callable[[Rows], Value]
    columns: frozenset[str] = frozenset()
    literal: kinds.Literal | None = None  # as written; Spark treats it otherwise than its value

    def cast(self, kind: pa.DataType) -> Node:
        """Exactly, or not at all."""
        if self.kind == kind:
            return self
        return of(kind, lambda value: pc.cast(value, kind, safe=True), self)


def constant(kind: pa.DataType, value: object, literal: kinds.Literal | None = None) -> Node:
    scalar = pa.scalar(value, kind)
    return Node(kind, lambda _: scalar, literal=literal)


def time_of(text: str, kind: pa.DataType, node: Compile) -> Node:
    """A literal that is a time: of the session's zone where ``kind`` has one."""
    if kind == kinds.MOMENT and not node.in_utc:
        raise NotSupportedByArrow("a time in the zone of the session")
    clock = kinds.clock(text)
    return constant(kind, clock.replace(tzinfo=dt.UTC) if kind == kinds.MOMENT else clock)


def null() -> Node:
    return constant(pa.null(), None)


def column(name: str, kind: pa.DataType) -> Node:
    def run(rows: Rows) -> Value:
        found = rows[name]
        if pa.types.is_dictionary(found.type):
            found = found.cast(found.type.value_type)
        if found.type != kind:
            raise NotSupportedByArrow(f"column {name} is {found.type}, not {kind}")
        return found

    return Node(kind, run, frozenset({name}))


def of(kind: pa.DataType, compute: Callable[..., Value], *parts: Node) -> Node:
    """``compute`` over the values of other nodes, which it must give as ``kind``."""

    def run(rows: Rows) -> Value:
        found = compute(*(part.run(rows) for part in parts))
        if found.type != kind:
            raise NotSupportedByArrow(f"{found.type} is not {kind}")
        return found

    columns = frozenset[str]().union(*(part.columns for part in parts))
    if columns:
        return Node(kind, run, columns)
    folded = run(pa.table({}))  # an error of constants alone is one wherever they stand
    return Node(kind, lambda _: folded)


def fitted(part: Node, kind: pa.DataType) -> Node:
    """``part`` as ``kind``; integers become decimals of all their digits on the way."""
    if part.kind in kinds.INTEGERS and kinds.is_decimal(kind):
        return part.cast(kinds.as_decimal(part.kind)).cast(kind)
    return part.cast(kind)
