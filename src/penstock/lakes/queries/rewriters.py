"""Replacing the names in a query by DataFrames: each rewriter sees the analysis and adds edits.

A new kind of name is a function in `REWRITERS`; they run in order, and later ones see what earlier
ones noted in `CommitContext`.

Find the hidden columns that a query reads, by its tables, and leave them out of its ``*``.

A name means a hidden column only where it can mean nothing else: a real column of that name, of any
table that is visible there, comes first, and so does an alias in the clauses that can name one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, Union

from penstock.errors import ArgumentError, NotFound, QueryFailed, UnsupportedFeature
from penstock.lakes.format.naming import fold
from penstock.lakes.queries import travel
from penstock.lakes.reading.hidden import COLUMNS, NAMES, ROWID
from penstock.lakes.snapshot import At
from penstock.lazy import exp
from penstock.spark.failures import explained
from penstock.spark.functions import run_sql
from penstock.sql.identifiers import quoted
from penstock.sql.lake_functions import Arguments, Call, calls_of
from penstock.sql.predicate import of_query
from penstock.sql.query.edits import Edit, braces, stand_in
from penstock.sql.query.names import all_sources, called, common_table, select_around
from penstock.sql.tables import Analysis, Reference
from penstock.sql.text import Predicate
from penstock.sql.tokens import SqlText

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


# Clauses in which Spark finds no alias of the SELECT.
_WITHOUT_ALIASES = frozenset({"where", "joins", "from_", "laterals"})


@dataclass(frozen=True, slots=True)
class Mention:
    """A hidden column ``name`` of one of ``tables``.

    It is one only where none of ``rivals``, which include them, has a real column of that name.
    """

    name: str
    tables: tuple[Reference, ...]
    rivals: tuple[Reference, ...] = ()


def mentions(analysis: Analysis) -> list[Mention]:
    """Return the names in a query that may be hidden columns, as far as its text tells."""
    tables = {id(table.node): table for table in analysis.tables}
    found = (
        _mention(column, tables)
        for column in analysis.tree.find_all(exp.Column)
        if fold(column.name) in NAMES and not isinstance(column.this, exp.Star)
    )
    return [mention for mention in found if mention is not None]


def by_table(mentioned: Iterable[Mention]) -> dict[int, frozenset[str]]:
    """The names by the place of the table."""
    names: dict[int, frozenset[str]] = {}
    for mention in mentioned:
        for table in mention.tables:
            names[table.start] = names.get(table.start, frozenset()) | {mention.name}
    return names


def _mention(column: exp.Column, tables: Mapping[int, Reference]) -> Mention | None:
    """Find what a column names: a table by its qualifier, else the tables of the nearest SELECT
    that has some. ``rowid`` without a qualifier is that of these tables, whatever stands beside.
    """
    name, qualifier = fold(column.name), fold(column.table)
    select = column.find_ancestor(exp.Select)
    strict = name != ROWID and not qualifier
    if strict and select is not None and _is_alias(column, select):
        return None
    own: list[Reference] = []
    around: list[Reference] = []
    while select is not None:
        named, others = _sources(select, tables)
        if qualifier:
            own = [table for table in named if table.called == qualifier]
            others = [other for other in others if called(other) == qualifier]
            if own or others:
                break
        else:
            if strict and any(_may_have(other, name) for other in others):
                return None
            around += named
            own = own or named
            if own and not strict:
                break
        select = select_around(select)
    return Mention(name, tuple(own), tuple(around) if strict else ()) if own else None


def _is_alias(column: exp.Column, select: exp.Select) -> bool:
    """Return whether an item of the SELECT has this name, where the column may mean it."""
    item: exp.Expr = column
    while item.parent is not select:
        assert item.parent is not None, "the SELECT is around it"
        item = item.parent
    if item.arg_key in _WITHOUT_ALIASES:
        return False
    name = fold(column.name)
    return any(
        each is not item and name in map(fold, _names_of(each)) and not _is_hidden(each, name)
        for each in select.expressions
    )


def _names_of(item: exp.Expr) -> Sequence[str]:
    if isinstance(item, exp.Aliases):
        return [alias.name for alias in item.aliases]
    return [item.output_name]


def _is_hidden(item: exp.Expr, name: str) -> bool:
    """Return whether it is the name alone, which gives it no other meaning."""
    return isinstance(item, exp.Column) and not item.table and fold(item.name) == name


def _sources(
    select: exp.Select, tables: Mapping[int, Reference]
) -> tuple[list[Reference], list[exp.Expr]]:
    """Return what a SELECT reads: tables and views by name, and all else."""
    named: list[Reference] = []
    others: list[exp.Expr] = []
    for source in all_sources(select):
        if id(source) in tables and not source.args.get("pivots") and not source.alias_column_names:
            named.append(tables[id(source)])
        else:
            others.append(source)
    return named, others


def _may_have(source: exp.Expr, name: str) -> bool:
    """Return whether a subquery, common table expression or function may have a column."""
    columns = source.alias_column_names
    if columns:
        return name in map(fold, columns)
    query = source.this if isinstance(source, exp.Subquery) else None
    cte = common_table(source) if isinstance(source, exp.Table) else None
    if cte is not None:
        query = None if cte.alias_column_names else cte.this
    if not isinstance(query, exp.Query) or query.is_star or source.args.get("pivots"):
        return True
    return name in map(fold, query.named_selects)


def excluded(analysis: Analysis, exposed: Mapping[int, Collection[str]]) -> Iterator[Edit]:
    """Exclude from ``*`` the hidden columns that were added to tables, by their places."""
    selects: dict[int, tuple[exp.Select, list[Reference]]] = {}
    for reference in analysis.tables:
        names = exposed.get(reference.start)
        if not names:
            continue
        select = reference.node.find_ancestor(exp.Select) if reference.node is not None else None
        if select is None:
            raise _unsupported(names, "in this form of query", "write a SELECT")
        selects.setdefault(id(select), (select, []))[1].append(reference)
    for select, tables in selects.values():
        shown = {name for table in tables for name in exposed[table.start]}
        joins: Iterable[exp.Join] = select.args.get("joins") or ()
        if any(str(join.args.get("method") or "").upper() == "NATURAL" for join in joins):
            hint = "name the columns of the join in USING"
            raise _unsupported(shown, "over a NATURAL join", hint)
        columns = [
            (table.called, f"{quoted(table.node.alias or table.name)}.{name}")
            for table in tables
            if table.node is not None
            for name in COLUMNS
            if name in exposed[table.start]
        ]
        for star in select.find_all(exp.Star):
            if star.find_ancestor(exp.Select) is select:
                yield from _exclude(analysis, select, star, columns, shown)


def _unsupported(names: Iterable[str], where: str, hint: str) -> UnsupportedFeature:
    return UnsupportedFeature(f"{' and '.join(sorted(names))} {where}", hint=hint)


def _exclude(
    analysis: Analysis,
    select: exp.Select,
    star: exp.Star,
    columns: Sequence[tuple[str, str]],
    shown: Collection[str],
) -> Iterator[Edit]:
    """``columns`` are hidden ones with what their table is called."""
    holder = star.parent
    if isinstance(holder, exp.Count):
        return
    qualifier = None
    if isinstance(holder, exp.Column):
        qualifier, holder = fold(holder.table), holder.parent
    if holder is not select:
        raise _unsupported(shown, "beside a * inside an expression", "name the columns")
    names = [column for table, column in columns if qualifier in {None, table}]
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
    mentioned = mentions(analysis)
    wanted = by_table(mentioned)
    rows = {
        table.start: _rows(table, analysis, context, wanted.get(table.start, frozenset()))
        for table in analysis.tables
    }
    mentioned = [mention for mention in mentioned if not _is_real(mention, rows)]
    fewer = by_table(mentioned)
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
    yield from excluded(analysis, {start: read.hidden for start, read in rows.items()})


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
