"""Table functions that a query calls in a FROM, and the values of their arguments."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from penstock.errors import ArgumentError
from penstock.lake.failures import explained
from penstock.lake.naming import fold
from penstock.lake.sql.references import Analysis

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class Call:
    """A call at ``text[start:end]``; ``arguments`` as trees, those with a name under it."""

    start: int
    end: int
    name: str  # folded
    before: tuple[str, ...]  # what stands before its name: the lake, a schema
    aliased: bool
    positional: tuple[exp.Expression, ...] = ()
    named: Mapping[str, exp.Expression] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Arguments:
    """Values of a call's arguments: numbers, texts, dates and times, None."""

    positional: tuple[Any, ...] = ()
    named: Mapping[str, Any] = field(default_factory=dict)

    def one(self, at: int, name: str) -> Any:
        """The argument at a place (from 0). Raises ArgumentError when there is none."""
        if at >= len(self.positional):
            raise ArgumentError(f"the argument {name} is missing", hint="give it")
        return self.positional[at]


def found(analysis: Analysis, known: Collection[str]) -> Iterator[Call]:
    """The calls of the functions that are known, in the order of the tree."""
    for table in analysis.tree.find_all(exp.Table):
        if isinstance(table.this, exp.Func) and "start" in table.this.meta:
            start, end = table.this.meta["start"], table.this.meta["end"] + 1
            name = fold(analysis.text[start:end].strip("`"))
            if name in known:
                yield _call(analysis, table, name, int(start))


def _call(analysis: Analysis, table: exp.Table, name: str, start: int) -> Call:
    positional: list[exp.Expression] = []
    named: dict[str, exp.Expression] = {}
    for one in table.this.expressions:
        if isinstance(one, exp.Kwarg | exp.PropertyEQ):
            named[fold(one.this.name)] = one.expression
        else:
            positional.append(one)
    begin, end = _span(analysis.tokens, start)
    before = tuple(part for part in (table.catalog, table.db) if part)
    return Call(begin, end, name, before, bool(table.alias), tuple(positional), named)


def _span(tokens: Sequence[Any], start: int) -> tuple[int, int]:
    """From the schemas before the name at ``start`` to the bracket that closes the arguments."""
    at = next(i for i, token in enumerate(tokens) if token.start == start)
    first = at
    while first >= 2 and tokens[first - 1].text == ".":
        first -= 2
    depth = 0
    for token in tokens[at + 1 :]:
        depth += {"(": 1, ")": -1}.get(token.text, 0)
        if depth == 0:
            return int(tokens[first].start), int(token.end) + 1
    return int(tokens[first].start), int(tokens[-1].end) + 1


def evaluated(call: Call, spark: SparkSession, args: Mapping[str, Any]) -> Arguments:
    """Spark computes what is no literal. Raises ArgumentError for a marker without a value."""
    return Arguments(
        tuple(_value(one, spark, args) for one in call.positional),
        {name: _value(one, spark, args) for name, one in call.named.items()},
    )


def _value(node: exp.Expression, spark: SparkSession, args: Mapping[str, Any]) -> Any:
    if isinstance(node, exp.Placeholder):
        if node.name not in args:
            raise ArgumentError(f"there is no value for :{node.name}", hint="pass it in args")
        return args[node.name]
    if isinstance(node, exp.Literal):
        return node.name if node.is_string else _number(node.name)
    if node.find(exp.Column):
        raise ArgumentError(
            f"{node.sql('spark')} names a column", hint="a table function takes values"
        )
    with explained():
        return spark.sql(f"SELECT {node.sql('spark')}", args=dict(args)).collect()[0][0]


def _number(text: str) -> int | float:
    return int(text) if text.isdigit() else float(text)
