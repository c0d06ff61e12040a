"""Replacing the names in a query by DataFrames: each rewriter sees the analysis and adds edits.

A new kind of name is a function in `REWRITERS`; they run in order, and later ones see what earlier
ones noted in `Work`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from penstock.errors import ArgumentError, NotFound, QueryFailed, UnsupportedFeature
from penstock.lake.format.naming import fold
from penstock.lake.queries import travel
from penstock.lake.snapshot import At
from penstock.lake.spark.failures import explained
from penstock.lake.spark.functions import run_sql
from penstock.lazy import exp
from penstock.sql.conditions import Predicate
from penstock.sql.identifiers import quoted
from penstock.sql.lake_functions import Arguments, Call, calls_of
from penstock.sql.predicate import of_query
from penstock.sql.query.edits import Edit, braces, stand_in
from penstock.sql.tables import Analysis, Reference
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
    row_ids: bool = False


@dataclass(frozen=True, slots=True)
class Rows:
    """The DataFrame that replaces a reference, and whether it has DuckDB's ``rowid``."""

    df: DataFrame
    row_ids: bool = False


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

    def answer(self, analysis: Analysis, work: Work) -> DataFrame | None:
        """The whole answer where it needs no rows; else ``None``."""
        ...

    def expanded(self, text: str) -> SqlText:
        """The text with its macros expanded; it has the same lines."""
        ...


@dataclass(slots=True)
class Work:
    """One query on its way to Spark: its arguments, and the DataFrames that replace names."""

    spark: SparkSession
    names: Names
    args: Mapping[str, Any]
    zone: str
    views: Mapping[str, DataFrame]  # by folded name
    frames: dict[str, DataFrame] = field(default_factory=dict)

    def stand_in(self, df: DataFrame) -> str:
        """``{t0}``, which Spark replaces by a view of its own and drops after the analysis."""
        name = f"t{len(self.frames)}"
        self.frames[name] = df
        return f"{{{name}}}"


Rewriter = Callable[[Analysis, Work], Iterable[Edit]]


def tables(analysis: Analysis, work: Work) -> Iterable[Edit]:
    """The tables and views that the query reads, with row ids where it names them."""
    with_ids = wanted(analysis)
    exposed: list[Reference] = []
    for table in analysis.tables:
        rows = _rows(table, analysis, work, table.start in with_ids)
        if rows.row_ids:
            exposed.append(table)
        view = work.stand_in(rows.df)
        name = None if table.aliased else table.name
        yield stand_in(analysis.text, table.start, table.end, view=view, name=name)
    yield from hidden(analysis, exposed)


def functions(analysis: Analysis, work: Work) -> Iterable[Edit]:
    """The lake's own table functions."""
    for call in calls_of(analysis, work.names.functions()):
        arguments = evaluated(call, work.spark, work.args)
        df = work.names.call(call.name, call.before, arguments)
        name = None if call.aliased else call.name
        yield stand_in(analysis.text, call.start, call.end, view=work.stand_in(df), name=name)


def qualifiers(analysis: Analysis, _: Work) -> Iterable[Edit]:
    """Remove ``main.`` from ``main.orders.id``: the replaced name has no schema."""
    named = {(fold(t.schema), fold(t.name)) for t in analysis.tables if t.schema}
    for qualifier in analysis.qualifiers:
        if (fold(qualifier.schema), fold(qualifier.name)) in named:
            yield Edit(qualifier.start, qualifier.end, "")


REWRITERS: tuple[Rewriter, ...] = (tables, functions, qualifiers)


def _rows(reference: Reference, analysis: Analysis, work: Work, with_ids: bool) -> Rows:
    if reference.schema is None and fold(reference.name) in work.views:
        return Rows(work.views[fold(reference.name)])
    with referred(reference, analysis):
        at = point(reference, work)
        predicate = of_query(analysis.text, reference.node, zone=work.zone, args=work.args)
        return work.names.read(Wanted(reference, analysis, at, predicate, with_ids))


def point(reference: Reference, work: Work) -> At | None:
    """The snapshot that a reference names, if it names one."""
    if reference.travel is None:
        return None
    return travel.point(reference.travel, work.args, work.zone, work.spark)


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


ROWID = "rowid"


def wanted(analysis: Analysis) -> set[int]:
    """The places of the tables whose row ids the query may use.

    An unqualified name belongs to the nearest SELECT that reads tables of the lake.
    """
    tables = {id(table.node): table for table in analysis.tables}
    starts: set[int] = set()
    for column in analysis.tree.find_all(exp.Column):
        if fold(column.name) == ROWID and not isinstance(column.this, exp.Star):
            starts |= {table.start for table in _meant(column, tables)}
    return starts


def _meant(column: exp.Column, tables: dict[int, Reference]) -> list[Reference]:
    select = column.find_ancestor(exp.Select)
    while select is not None:
        sources = [
            tables[id(table)]
            for table in select.find_all(exp.Table)
            if id(table) in tables and table.find_ancestor(exp.Select) is select
        ]
        if column.table:
            sources = [source for source in sources if source.called == fold(column.table)]
        if sources:
            return sources
        select = select.find_ancestor(exp.Select)
    return []


def hidden(analysis: Analysis, exposed: Sequence[Reference]) -> Iterator[Edit]:
    """Exclude from ``*`` the row ids that were added to tables."""
    selects: dict[int, tuple[exp.Select, list[Reference]]] = {}
    for reference in exposed:
        select = reference.node.find_ancestor(exp.Select) if reference.node is not None else None
        if select is None:
            raise UnsupportedFeature("rowid in this form of query", hint="write a SELECT")
        selects.setdefault(id(select), (select, []))[1].append(reference)
    for select, tables in selects.values():
        _check_joins(select)
        for star in select.find_all(exp.Star):
            if star.find_ancestor(exp.Select) is select:
                yield from _hide(analysis, select, star, tables)


def _check_joins(select: exp.Select) -> None:
    joins: Iterable[exp.Join] = select.args.get("joins") or ()
    if any(str(join.args.get("method") or "").upper() == "NATURAL" for join in joins):
        raise UnsupportedFeature(
            "rowid over a NATURAL join", hint="name the columns of the join in USING"
        )


def _hide(
    analysis: Analysis, select: exp.Select, star: exp.Star, tables: Sequence[Reference]
) -> Iterator[Edit]:
    holder = star.parent
    if isinstance(holder, exp.Count):
        return
    qualifier = None
    if isinstance(holder, exp.Column):
        qualifier, holder = fold(holder.table), holder.parent
    if holder is not select:
        raise UnsupportedFeature("rowid beside a * inside an expression", hint="name the columns")
    names = [
        f"{quoted(table.node.alias or table.name)}.{ROWID}"
        for table in tables
        if table.node is not None and qualifier in {None, table.called}
    ]
    if not names:
        return
    left_out = braces(", ".join(names))
    end = int(star.meta["end"]) + 1
    listed = next((t for t in analysis.tokens if t.start >= end), None)
    if listed is not None and listed.text.upper() in {"EXCEPT", "EXCLUDE"}:
        opening = next(t for t in analysis.tokens if t.start > listed.start)
        yield Edit(opening.end, opening.end, f"{left_out}, ")
    else:
        yield Edit(end, end, f" EXCEPT ({left_out})")
