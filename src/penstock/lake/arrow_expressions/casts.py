"""Casts that are written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from sqlglot import exp

from penstock.lake.arrow_expressions import kinds, nodes
from penstock.lake.arrow_expressions.kinds import NotSupportedByArrow
from penstock.lake.arrow_expressions.nodes import Compile, Node


def cast(tree: Any, node: Compile) -> Node:
    """Casts that lose nothing; a value that would loses the statement to Spark."""
    to, kind = tree.to, _KINDS.get(tree.to.this)
    if isinstance(tree.this, exp.Literal) and tree.this.is_string and kind == pa.date32():
        return nodes.constant(pa.date32(), kinds.day(tree.this.name))
    if isinstance(tree.this, exp.Literal) and tree.this.is_string and to.this in _TIMES:
        return nodes.time_of(tree.this.name, _TIMES[to.this], node)
    if to.this == exp.DType.DECIMAL:
        kind = _decimal(to)
    if kind is None or (to.expressions and not kinds.is_decimal(kind)):
        raise NotSupportedByArrow(f"a cast to {to}")
    value = node(tree.this)
    widens = value.kind in kinds.INTEGERS and kinds.is_number(kind)
    rescales = kinds.is_decimal(value.kind) and kinds.is_decimal(kind)
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
    return kinds.decimal(precision, scale)


_TIMES: Mapping[Any, pa.DataType] = {
    exp.DType.TIMESTAMPTZ: kinds.MOMENT,  # as TIMESTAMP is read in Spark's SQL
    exp.DType.TIMESTAMPNTZ: kinds.CLOCK,
}
_KINDS: Mapping[Any, pa.DataType] = {
    exp.DType.TINYINT: pa.int8(),
    exp.DType.SMALLINT: pa.int16(),
    exp.DType.INT: pa.int32(),
    exp.DType.BIGINT: pa.int64(),
    exp.DType.DATE: pa.date32(),
    exp.DType.BOOLEAN: pa.bool_(),
}
