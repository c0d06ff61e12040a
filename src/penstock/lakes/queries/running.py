"""Queries over a lake: DataFrames replace the names of tables, and Spark runs the query."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock.errors import ArgumentError, PenstockError, Position, QueryFailed
from penstock.lakes.format.naming import DEFAULT_SCHEMA, TableRef, fold
from penstock.lakes.queries.rewriters import REWRITERS, CommitContext, Names, View
from penstock.lakes.queries.travel import in_zone
from penstock.spark.failures import SPARKS_SQL, explain, explained
from penstock.spark.functions import run_sql
from penstock.sql.query.edits import Edit, template, touches_line
from penstock.sql.tables import Analysis, analyse
from penstock.sql.text import Unreadable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True, slots=True)
class ReadQuery:
    """A SELECT as ``written``, its ``text`` without macros, and what that names; or why sqlglot
    does not understand it.
    """

    written: str
    text: str
    analysis: Analysis | Unreadable


def read_query(text: str, names: Names) -> ReadQuery:
    """Read a SELECT, once for all who ask about it. Raises QueryFailed, UnsupportedFeature."""
    source = names.expanded(text)
    analysis: Analysis | Unreadable
    try:
        analysis = analyse(source)
    except Unreadable as problem:
        analysis = problem
    return ReadQuery(text, source.text, analysis)


def run(
    spark: SparkSession,
    query: str | ReadQuery,
    names: Names,
    *,
    args: Mapping[str, Any] | None = None,
    views: Mapping[str, View] | None = None,
) -> DataFrame:
    """The rows of one SELECT, lazily.

    Names of tables are looked up in ``names``, except common table expressions and ``views``. A
    snapshot is named as ``t AT (VERSION => 3)``, ``t AT (TIMESTAMP => '...')``,
    ``t VERSION AS OF 3`` or ``t TIMESTAMP AS OF '...'``; a time without a zone is in the
    session's zone. ``args`` are bound to ``:name`` markers, never put into the text. Raises
    QueryFailed, whose ``data`` has the ``line`` (and ``column``, where known) in ``text``.
    """
    bound, zone = _bound(spark, args)
    read = read_query(query, names) if isinstance(query, str) else query
    analysis = _analysis(read, spark, bound)
    local = {fold(name): df for name, df in (views or {}).items()}
    context = CommitContext(spark, names, bound, zone, local)
    answer = names.answer(analysis, context)
    if answer is not None:
        return answer
    edits = [edit for rewriter in REWRITERS for edit in rewriter(analysis, context)]
    try:
        return _run(context, read.text, edits)
    except QueryFailed as problem:
        raise problem if read.text == read.written else _without_column(problem) from None


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A query in which ``{t0}`` stands for a DataFrame of ``frames``, as `str.format` has it."""

    text: str
    frames: Mapping[str, DataFrame]


def rewritten(
    spark: SparkSession, text: str, names: Names, *, views: Mapping[str, DataFrame] | None = None
) -> Rewritten:
    """A SELECT in which DataFrames replace tables."""
    _, zone = _bound(spark, None)
    read = read_query(text, names)
    analysis = _analysis(read, spark, {})
    local = {fold(name): df for name, df in (views or {}).items()}
    context = CommitContext(spark, names, {}, zone, local)
    edits = [edit for rewriter in REWRITERS for edit in rewriter(analysis, context)]
    return Rewritten(template(read.text, edits), context.frames)


def _analysis(read: ReadQuery, spark: SparkSession, args: Mapping[str, Any]) -> Analysis:
    if isinstance(read.analysis, Unreadable):
        raise _unreadable(spark, read.text, args, read.analysis) from None
    return read.analysis


def _bound(spark: SparkSession, args: Mapping[str, Any] | None) -> tuple[dict[str, Any], str]:
    """The arguments in the session's zone, and that zone."""
    zone = str(spark.conf.get("spark.sql.session.timeZone") or "UTC")
    return {name: in_zone(value, zone) for name, value in (args or {}).items()}, zone


def _without_column(problem: QueryFailed) -> QueryFailed:
    """Place an error in the text before macros were expanded: lines are the same, columns not."""
    line = problem.data.get("line")
    data = {key: value for key, value in problem.data.items() if key != "column"}
    position = None if line is None else Position(line)
    return QueryFailed(problem.cause, hint=problem.hint, data=data, position=position)


def _run(context: CommitContext, text: str, edits: Sequence[Edit]) -> DataFrame:
    values = dict(context.args) or None
    try:
        if not edits:
            return run_sql(context.spark, text, args=values)
        df = run_sql(context.spark, template(text, edits), values, context.frames)
        df.schema  # noqa: B018 - Spark Connect analyses late: its errors belong here
        return df
    except Exception as error:  # placed if it is Spark's, else raised as it is
        with explained():
            _locate(error, text, edits)
        raise


def _unreadable(
    spark: SparkSession, text: str, args: Mapping[str, Any], problem: Unreadable
) -> QueryFailed:
    """Spark's message where it refuses the text as well, else Penstock's."""
    try:
        run_sql(spark, text, args=dict(args))
    except Exception as error:  # whatever it is, the text is refused below
        explained_error = explain(error)
        if explained_error.data.get("condition", "").startswith("PARSE"):
            return _at_line(explained_error, text, [])
    return QueryFailed(f"the tables of the query cannot be found in it{problem}", hint=SPARKS_SQL)


def _locate(error: Exception, text: str, edits: Sequence[Edit]) -> None:
    """Raise Spark's error with the place in the text as the user wrote it."""
    if not type(error).__module__.startswith(("pyspark", "py4j", "grpc")):
        return
    explained_error = explain(error)
    if not isinstance(explained_error, QueryFailed):
        raise explained_error from error
    raise _at_line(explained_error, text, edits) from error


def _at_line(problem: PenstockError, text: str, edits: Sequence[Edit]) -> QueryFailed:
    """Place an error: edits keep lines, and columns only up to the first edit of a line."""
    data = dict(problem.data)
    fragment, line = data.pop("fragment", None), data.get("line")
    data.pop("start", None)
    if fragment and text.count(fragment) == 1:
        before = text[: text.index(fragment)]
        line = before.count("\n") + 1
        data |= {"line": line, "column": len(before) - before.rfind("\n")}
    elif touches_line(text, edits, line):
        data.pop("column", None)
    position = Position(data["line"], data.get("column")) if "line" in data else None
    return QueryFailed(problem.cause, hint=problem.hint, data=data, position=position)


def view_names(tables: Iterable[TableRef], prefix: str = "") -> dict[str, TableRef]:
    """Return the tables by the names of their views: ``t`` of ``main.t``, ``shop_t`` of ``shop.t``,
    each after ``prefix``.

    Raises ArgumentError where two tables would have one name, as Spark compares them.
    """
    views: dict[str, TableRef] = {}
    taken: dict[str, TableRef] = {}
    for table in tables:
        own = table.name if table.schema == DEFAULT_SCHEMA else f"{table.schema}_{table.name}"
        name = f"{prefix}{own}"
        other = taken.setdefault(fold(name), table)
        if other != table:
            raise ArgumentError(
                f"{other} and {table} would both be the view {name}",
                hint=f'register them apart, tables=["{other}"] first, each with another prefix=',
            )
        views[name] = table
    return views
