"""Compiling an expression's text for Arrow columns: the kernels of operators and functions, by
sqlglot's classes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from penstock.lake.arrow_expressions import conditions, nodes, values
from penstock.lake.arrow_expressions.fence import parsed
from penstock.lake.arrow_expressions.nodes import Compile, Node, NotSupportedByArrow, Rows
from penstock.lake.format.naming import fold
from penstock.lazy import exp, pa, pc
from penstock.sql.text import SqlExpression, as_expression

__all__ = ["Expression", "condition", "expression", "plain"]


@dataclass(frozen=True, slots=True)
class Expression:
    """``columns`` are the names, as written, of the columns that it uses."""

    node: Node

    @property
    def kind(self) -> pa.DataType:
        return self.node.kind

    @property
    def columns(self) -> frozenset[str]:
        return self.node.columns

    def cast(self, kind: pa.DataType) -> Expression:
        """The expression cast to the type of a column. Raises NotSupportedByArrow where the cast
        may lose something.
        """
        mine = self.kind
        exact = (
            mine == kind
            or pa.types.is_null(mine)
            or (mine in nodes.INTEGERS and nodes.is_number(kind))
            or (nodes.is_decimal(mine) and nodes.is_decimal(kind))
        )
        if not exact:
            raise NotSupportedByArrow(f"{mine} for a column of {kind}")
        wide = nodes.as_decimal(mine) if nodes.is_decimal(kind) and mine in nodes.INTEGERS else mine
        try:
            return Expression(self.node.cast(wide).cast(kind))
        except pa.ArrowException as error:  # of a constant
            raise NotSupportedByArrow(str(error)) from error

    def array(self, rows: Rows) -> pa.ChunkedArray:
        """The expression's value for each row. Raises NotSupportedByArrow."""
        try:
            value = self.node.run(rows)
        except (pa.ArrowException, OverflowError) as error:
            raise NotSupportedByArrow(str(error)) from error
        if isinstance(value, pa.Scalar):
            value = pa.repeat(value, rows.num_rows)
        return value if isinstance(value, pa.ChunkedArray) else pa.chunked_array([value])

    def matches(self, rows: Rows, places: pa.Array) -> pa.Array:
        """Return those of ``places``, one for each row, whose rows satisfy this condition."""
        matching = self.array(rows).combine_chunks()
        return places.filter(matching)  # which leaves out NULL, too


@dataclass(frozen=True, slots=True)
class _Compiler:
    """``names`` are those of ``columns``, folded."""

    columns: Mapping[str, pa.DataType]
    names: Mapping[str, str]
    in_utc: bool

    def __call__(self, tree: exp.Expr) -> Node:
        if not isinstance(tree, exp.Column):
            compute = FUNCTIONS.get(type(tree))
            if compute is None:
                raise NotSupportedByArrow(type(tree).__name__)
            return compute(tree, self)
        name = self.names.get(fold(tree.name))
        if name is None or not name.isascii():
            raise NotSupportedByArrow(f"column {tree.name}")
        return nodes.column(name, self.columns[name])


def expression(
    written: str | SqlExpression, columns: Mapping[str, pa.DataType], *, in_utc: bool = False
) -> Expression:
    """Compile Spark's SQL over columns of these names and types. Raises NotSupportedByArrow.

    ``in_utc`` says that times without a zone are in UTC.
    """
    names: dict[str, str] = {}
    for name in columns:
        if names.setdefault(fold(name), name) != name:
            raise NotSupportedByArrow("names that differ in case alone")
    try:
        node = _Compiler(columns, names, in_utc)(parsed(as_expression(written), names))
    except (pa.ArrowException, OverflowError, RecursionError) as error:
        raise NotSupportedByArrow(str(error)) from error
    return Expression(node)


def condition(
    written: str | SqlExpression, columns: Mapping[str, pa.DataType], *, in_utc: bool = False
) -> Expression:
    """As `expression`, for an expression that is true, false or NULL."""
    compiled = expression(written, columns, in_utc=in_utc)
    if compiled.kind != pa.bool_():
        raise NotSupportedByArrow(f"{compiled.kind} as a condition")
    return compiled


def plain(value: object) -> Expression:
    """A Python value as an expression, with the type that Spark gives it."""
    if value is None:
        return Expression(nodes.null())
    if isinstance(value, bool):
        return Expression(nodes.constant(pa.bool_(), value))
    if type(value) is int:
        text = str(abs(value))
        literal = nodes.integer_or_decimal(text, negative=value < 0)
        return Expression(nodes.constant(literal.kind, literal.value))
    raise NotSupportedByArrow(f"a {type(value).__name__}")


FUNCTIONS: Mapping[type, Callable[[Any, Compile], Node]] = {
    exp.Paren: values.paren,
    exp.Literal: values.literal,
    exp.Null: values.null,
    exp.Boolean: values.boolean,
    exp.And: conditions.and_,
    exp.Or: conditions.or_,
    exp.Not: conditions.not_,
    exp.Is: conditions.is_,
    exp.EQ: conditions.compared(pc.equal),
    exp.NEQ: conditions.compared(pc.not_equal),
    exp.LT: conditions.compared(pc.less),
    exp.LTE: conditions.compared(pc.less_equal),
    exp.GT: conditions.compared(pc.greater),
    exp.GTE: conditions.compared(pc.greater_equal),
    exp.NullSafeEQ: conditions.same,
    exp.In: conditions.in_,
    exp.Between: conditions.between,
    exp.Like: conditions.like,
    exp.Add: values.summed(pc.add_checked),
    exp.Sub: values.summed(pc.subtract_checked),
    exp.Mul: values.arithmetic(pc.multiply_checked, nodes.product_of),
    exp.Mod: values.remainder,
    exp.Anonymous: values.named,
    exp.Neg: values.negative,
    exp.Coalesce: values.coalesce,
    exp.If: values.if_,
    exp.Case: values.case,
    exp.Cast: values.cast,
    exp.TryCast: values.cast,
}
