"""Replacing the names in a query by DataFrames: each rewriter sees the analysis and adds edits.

A new kind of name is a function in `REWRITERS`; they run in order, and later ones see what earlier
ones noted in `CommitContext`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, Union

from penstock.errors import ArgumentError, NotFound, QueryFailed, UnsupportedFeature
from penstock.lake.format.naming import fold
from penstock.lake.queries import hidden, travel
from penstock.lake.queries.hidden import Mention
from penstock.lake.snapshot import At
from penstock.lazy import exp
from penstock.spark.failures import explained
from penstock.spark.functions import run_sql
from penstock.sql.lake_functions import Arguments, Call, calls_of
from penstock.sql.predicate import of_query
from penstock.sql.query.edits import Edit, stand_in
from penstock.sql.tables import Analysis, Reference
from penstock.sql.text import Predicate
from penstock.sql.tokens import SqlText

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True, slots=True)
class Wanted:
    """The rows that a query reads for one of its references; ``at`` is the snapshot that it names.

    ``predicate`` has the query's conditions that can prune files of the table.
    """

    reference: Reference
    analysis: Analysis
    at: At | None
    predicate: Predicate | None = None
    hidden: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Rows:
    """The DataFrame that replaces a reference, and the ``hidden`` columns that it has of those
    wanted; ``refused`` are others that the table has, and cannot give.
    """

    df: DataFrame
    hidden: frozenset[str] = frozenset()
    refused: Mapping[str, UnsupportedFeature] = field(default_factory=dict)


# A DataFrame, or what reads one with the hidden columns that are wanted.
View = Union["DataFrame", Callable[[frozenset[str]], Rows]]


class Names(Protocol):
    """Resolves names; the caller that runs the query provides it."""

    def read(self, wanted: Wanted) -> Rows:
        """The rows of a table or view. Raises TableNotFound, SchemaNotFound."""
        ...

    def functions(self) -> Collection[str]:
        """The names, folded, of the table functions that `call` knows."""
        ...

    def call(self, name: str, before: tuple[str, ...], arguments: Arguments) -> DataFrame:
        """The rows of a table function; ``before`` is the qualifier of its name."""
        ...

    def answer(self, analysis: Analysis, context: CommitContext) -> DataFrame | None:
        """The whole answer where it needs no rows; else ``None``."""
        ...

    def expanded(self, text: str) -> SqlText:
        """The text with its macros expanded; it has the same lines."""
        ...


@dataclass(slots=True)
class CommitContext:
    """One query on its way to Spark: its arguments, and the DataFrames that replace names."""

    spark: SparkSession
    names: Names
    args: Mapping[str, Any]
    zone: str
    views: Mapping[str, View]  # by folded name
    frames: dict[str, DataFrame] = field(default_factory=dict)

    def stand_in(self, df: DataFrame) -> str:
        """``{t0}``, which Spark replaces by a view of its own and drops after the analysis."""
        name = f"t{len(self.frames)}"
        self.frames[name] = df
        return f"{{{name}}}"


Rewriter = Callable[[Analysis, CommitContext], Iterable[Edit]]


def tables(analysis: Analysis, context: CommitContext) -> Iterable[Edit]:
    """The tables and views that the query reads, with the hidden columns that it names."""
    mentioned = hidden.mentions(analysis)
    wanted = hidden.by_table(mentioned)
    rows = {
        table.start: _rows(table, analysis, context, wanted.get(table.start, frozenset()))
        for table in analysis.tables
    }
    mentioned = [mention for mention in mentioned if not _is_real(mention, rows)]
    fewer = hidden.by_table(mentioned)
    for table in analysis.tables:
        names = fewer.get(table.start, frozenset())
        if names != wanted.get(table.start, frozenset()):
            rows[table.start] = _rows(table, analysis, context, names)
    for mention in mentioned:
        _check(mention, rows, analysis)
    for table in analysis.tables:
        view = context.stand_in(rows[table.start].df)
        name = None if table.aliased else table.name
        yield stand_in(analysis.text, table.start, table.end, view=view, name=name)
    yield from hidden.excluded(analysis, {start: read.hidden for start, read in rows.items()})


def _is_real(mention: Mention, rows: Mapping[int, Rows]) -> bool:
    """Return whether a table around it has a real column of that name."""
    read = (rows[table.start] for table in mention.rivals)
    return any(
        mention.name not in each.hidden and mention.name in map(fold, each.df.columns)
        for each in read
    )


def _check(mention: Mention, rows: Mapping[int, Rows], analysis: Analysis) -> None:
    """Raise why no table has the column, where one would have it."""
    for table in mention.tables:
        refused = rows[table.start].refused.get(mention.name)
        if refused is not None and not any(
            mention.name in rows[other.start].hidden for other in mention.tables
        ):
            with referred(table, analysis):
                raise refused


def functions(analysis: Analysis, context: CommitContext) -> Iterable[Edit]:
    """The lake's own table functions."""
    for call in calls_of(analysis, context.names.functions()):
        arguments = evaluated(call, context.spark, context.args)
        df = context.names.call(call.name, call.before, arguments)
        name = None if call.aliased else call.name
        yield stand_in(analysis.text, call.start, call.end, view=context.stand_in(df), name=name)


def qualifiers(analysis: Analysis, _: CommitContext) -> Iterable[Edit]:
    """Remove ``main.`` from ``main.orders.id``: the replaced name has no schema."""
    named = {(fold(t.schema), fold(t.name)) for t in analysis.tables if t.schema}
    for qualifier in analysis.qualifiers:
        if (fold(qualifier.schema), fold(qualifier.name)) in named:
            yield Edit(qualifier.start, qualifier.end, "")


REWRITERS: tuple[Rewriter, ...] = (tables, functions, qualifiers)


def _rows(
    reference: Reference, analysis: Analysis, context: CommitContext, names: frozenset[str]
) -> Rows:
    view = None if reference.schema is not None else context.views.get(fold(reference.name))
    if view is not None:
        return view(names) if callable(view) else Rows(view)
    with referred(reference, analysis):
        at = point(reference, context)
        predicate = of_query(analysis.text, reference.node, zone=context.zone, args=context.args)
        return context.names.read(Wanted(reference, analysis, at, predicate, names))


def point(reference: Reference, context: CommitContext) -> At | None:
    """The snapshot that a reference names, if it names one."""
    if reference.travel is None:
        return None
    return travel.point(reference.travel, context.args, context.zone, context.spark)


@contextmanager
def referred(reference: Reference, analysis: Analysis) -> Iterator[None]:
    """Add to errors inside, as ``data["reference"]``, the part of the text that they are about."""
    try:
        yield
    except (ArgumentError, NotFound, QueryFailed, UnsupportedFeature) as problem:
        problem.data["reference"] = analysis.text[reference.start : reference.end]
        problem.data["reference_at"] = reference.start
        raise


def evaluated(call: Call, spark: SparkSession, args: Mapping[str, Any]) -> Arguments:
    """Spark computes what is not a literal. Raises ArgumentError for a marker without a value."""
    return Arguments(
        tuple(_value(argument, spark, args) for argument in call.positional),
        {name: _value(argument, spark, args) for name, argument in call.named.items()},
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
        return run_sql(spark, f"SELECT {node.sql('spark')}", args=dict(args)).collect()[0][0]


def _number(text: str) -> int | float:
    return int(text) if text.isdigit() else float(text)
