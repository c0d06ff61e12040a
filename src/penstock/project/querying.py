"""Query the tables of a project, and preview what its models return. Writes nothing of a model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from penstock.errors import QueryFailed
from penstock.project.planning import plan_model

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from penstock.engine.answers.preview import Queries
    from penstock.engine.answers.rendering import Rendering
    from penstock.engine.answers.sparkless_query import SmallReads
    from penstock.engine.inputs.resolve import Resolved
    from penstock.engine.planning.slices import Partition
    from penstock.engine.results import QueryResult
    from penstock.lakes.queries.explain import Explanation
    from penstock.model.definition.model import Model
    from penstock.project.context import ProjectContext


def preview_model(
    context: ProjectContext,
    model: str,
    partition: Partition | None = None,
    limit: int | None = None,
    args: Mapping[str, object] | None = None,
) -> DataFrame:
    """Return what the SELECT of a model returns now.

    Args:
        context: The project.
        model: The model.
        partition: The slice; None for that of now.
        limit: The largest number of rows.
        args: The arguments of the script.

    Returns:
        The rows, of which nothing is written.
    """
    df = _previewed(context, model, partition, args).df
    return df if limit is None else df.limit(limit)


def preview_rows(
    context: ProjectContext,
    model: str,
    partition: Partition | None = None,
    limit: int = 100,
    args: Mapping[str, object] | None = None,
) -> QueryResult:
    """Return the first rows of a preview; see `preview_model`."""
    from penstock.engine.answers.sparkless_query import collected

    previewed = _previewed(context, model, partition, args)
    return collected(previewed.df, limit, previewed.placed)


def render_query(
    context: ProjectContext,
    model: str,
    partition: Partition | None = None,
    args: Mapping[str, object] | None = None,
    *,
    from_: Partition | None = None,
    to: Partition | None = None,
) -> Rendering:
    """Return the query of a model as it runs. Starts no Spark.

    Args:
        context: The project.
        model: The model.
        partition: The slice; None for that of now.
        args: The arguments of the script.
        from_: The first slice of a range, whose values the query has.
        to: The last slice of a range.

    Returns:
        The query, with its macros expanded.

    Raises:
        ArgumentError: An argument is wrong.
        PartitionError: A slice is wrong.
    """
    from penstock.engine.answers.rendering import rendering

    shown = context.model(model)
    if not shown.strategy.runs:  # which is never planned
        return rendering(shown, None)
    _, plan = plan_model(context, shown, partition=partition, args=args, from_=from_, to=to)
    return rendering(shown, plan)


def run_sql(
    context: ProjectContext,
    text: str,
    args: Mapping[str, Any] | None = None,
    *,
    lake: str | None = None,
    dialect: str | None = None,
) -> DataFrame:
    """Run a query over the tables of the project, or a statement on a lake.

    Args:
        context: The project.
        text: The query or the statement.
        args: The values of ``:name`` markers.
        lake: The lake of a statement; None for ``main``, or the only one.
        dialect: The dialect of the text; None for the project's.

    Returns:
        The rows.

    Raises:
        ModelError: The text is wrong, at a place in it.
        QueryFailed: Spark refuses the query.
    """
    context.connections.check_open()
    from penstock.lakes.statements.dispatch import is_statement

    dialect = dialect or context.settings.dialect
    if lake is not None or is_statement(text, dialect):
        context.connections.drop_dead_session()
        name = lake or context.connections.default_lake()
        try:
            return context.lake(name).sql(text, args, dialect=dialect)
        except QueryFailed as error:
            other = error.data.get("catalog")
            if lake is None and other in context.settings.lakes:
                error.hint = (
                    f"statements run on the lake {name} unless another is named: "
                    f"penstock sql --lake {other}, or project.sql(..., lake={other!r})"
                )
            raise
    return _queries(context).query(text, args or {}, dialect).df


def run_query(
    context: ProjectContext,
    text: str,
    *,
    lake: str | None = None,
    limit: int = 100,
    spark: bool = False,
    dialect: str | None = None,
) -> QueryResult:
    """Return the first rows of what `run_sql` returns.

    A plain SELECT of a small table on this machine is answered from its files, without Spark.

    Args:
        context: The project.
        text: The query or the statement.
        lake: The lake of a statement.
        limit: The largest number of rows.
        spark: Always use Spark.
        dialect: The dialect of the text; None for the project's.

    Returns:
        The rows.
    """
    context.connections.check_open()
    if lake is not None:
        lake = context.connections.lake_settings(lake).name
    written = dialect or context.settings.dialect
    rows = (
        None
        if spark
        else _answer_small(context, limit, lambda reads: reads.query(text, lake, written))
    )
    if rows is not None:
        return rows
    from penstock.engine.answers.sparkless_query import collected
    from penstock.lakes.statements.dispatch import is_statement

    if lake is not None or is_statement(text, written):
        return collected(run_sql(context, text, lake=lake, dialect=dialect), limit)
    queried = _queries(context).query(text, {}, written)
    return collected(queried.df, limit, queried.placed)


def read_table(
    context: ProjectContext,
    model: str,
    partition: str | None = None,
    *,
    limit: int = 100,
    spark: bool = False,
) -> QueryResult:
    """Return the first rows of a published table, or of a slice of it.

    Args:
        context: The project.
        model: The model.
        partition: The slice; None for the whole table.
        limit: The largest number of rows.
        spark: Always use Spark.

    Returns:
        The rows.

    Raises:
        ArgumentError: The model has published nothing yet, or has no slices.
        PartitionError: The slice is wrong.
    """
    from penstock.engine.answers.sparkless_query import collected, require_published

    maker = context.model(model)
    if partition is not None and maker.by_time is not None:
        return _read_interval(context, maker, partition, limit)
    value = None
    if partition is not None:
        value = plan_model(context, maker, partition=partition)[1].slice_of_step()
    require_published(maker, context.catalog)
    rows = (
        None
        if spark
        else _answer_small(context, limit, lambda read: read.table(maker.target, value))
    )
    if rows is not None:
        return rows
    return collected(_queries(context).published(maker.target, value), limit)


def _read_interval(context: ProjectContext, maker: Model, moment: str, limit: int) -> QueryResult:
    """Return the rows of the published intervals that contain a moment."""
    from penstock.engine.answers.sparkless_query import collected, require_published, rows_by_time

    intervals = rows_by_time(maker, moment)
    require_published(maker, context.catalog)
    return collected(_queries(context).in_intervals(maker, intervals), limit)


def explain_query(
    context: ProjectContext,
    text: str,
    args: Mapping[str, Any] | None = None,
    *,
    dialect: str | None = None,
) -> Explanation:
    """Return the files that a query would read, and why. Starts no Spark."""
    context.connections.check_open()
    return _queries(context).explain(text, args or {}, dialect or context.settings.dialect)


def _previewed(
    context: ProjectContext,
    model: str,
    partition: Partition | None,
    args: Mapping[str, object] | None,
) -> Resolved:
    if not context.model(model).strategy.runs:  # which is never planned
        return _queries(context).of_model(context.model(model))
    planned, plan = plan_model(context, context.model(model), partition=partition, args=args)
    return _queries(planned).preview(plan)


def _queries(context: ProjectContext) -> Queries:
    from penstock.engine.answers.preview import Queries

    return Queries.of(context.connections, context.session, context.loaded)


def _answer_small(
    context: ProjectContext, limit: int, ask: Callable[[SmallReads], QueryResult | None]
) -> QueryResult | None:
    """Answer without Spark, unless a session exists, which may have other settings."""
    if context.connections.has_session:
        return None
    from penstock.engine.answers.sparkless_query import SmallReads

    return ask(SmallReads(context.settings, context.catalog, limit, context.loaded.moved))
