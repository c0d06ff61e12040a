"""The part of the Python API that reads: the states of models, plans, runs, rows and columns.

What needs no Spark does not start it, and what needs no catalog does not open it. Each method calls
one operation on a `ProjectContext`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, Unpack

from penstock.engine.session.connections import Connections
from penstock.errors import Diagnostic
from penstock.events import Event, EventSink, ignore
from penstock.model.project.loader import Loaded
from penstock.project import (
    checking,
    past_runs,
    planning,
    querying,
    repeating,
    running,
    states,
    table_history,
)
from penstock.project.context import ProjectContext
from penstock.project.past_runs import LAST_RUNS
from penstock.project.table_history import SAMPLES
from penstock.rendering.columns import html_table
from penstock.rendering.text import count, line, listed
from penstock.settings.config import Settings

if TYPE_CHECKING:
    from datetime import datetime

    from pyspark.sql import DataFrame, SparkSession

    from penstock.engine.answers.comparing import TableDiffs
    from penstock.engine.answers.rendering import Rendering
    from penstock.engine.answers.row_history import RowVersion
    from penstock.engine.answers.runs import PastRuns, RunDetail, RunLogLines
    from penstock.engine.answers.schema_history import VersionChanges
    from penstock.engine.answers.summaries import ModelSummary
    from penstock.engine.answers.why import Why
    from penstock.engine.planning.estimates import Estimate
    from penstock.engine.planning.plan import Plan
    from penstock.engine.planning.restate import Restated
    from penstock.engine.planning.run_arguments import Ends, Positional, RunOptions
    from penstock.engine.planning.slices import Partition
    from penstock.engine.results import (
        ModelDetail,
        QueryResult,
        RecordedChecks,
        Snapshots,
        Statuses,
    )
    from penstock.engine.verifying.reproduce import Reproduction
    from penstock.engine.verifying.unit_tests import UnitTestResult
    from penstock.lakes.lake import Lake
    from penstock.lakes.queries.explain import Explanation
    from penstock.model.definition.external import External
    from penstock.model.definition.graph import Graph
    from penstock.model.definition.model import Model
    from penstock.model.lineage.models import ProjectLineage
    from penstock.model.lineage.trace import Trace
    from penstock.model.slicing.needs import Edge
    from penstock.project.table_history import Point


class ProjectReader:
    """Everything that a project answers without changing tables of models."""

    def __init__(self, settings: Settings, loaded: Loaded, connections: Connections) -> None:
        """For `load`."""
        self.on_event: EventSink = ignore  # receives that Spark starts, where reading rows needs it
        self._context = ProjectContext.of(settings, loaded, connections, self._forward)

    def _forward(self, event: Event) -> None:
        self.on_event(event)

    def __repr__(self) -> str:
        models = count(len(self.models), "model")
        return line(self, repr(self.settings.name), models, str(self.settings.root))

    def _repr_html_(self) -> str:
        # A notebook calls this.
        rows = [
            (
                model.name,
                model.target,
                model.strategy.name,
                listed([str(source) for source in model.reads]),
            )
            for model in self.models
        ]
        headings = ("model", "table", "strategy", "reads")
        return html_table(headings, rows, note=f"{self.settings.name}, in {self.settings.root}")

    @property
    def context(self) -> ProjectContext:
        """The models and connections that operations of ``penstock.project`` take:
        ``project.context.settings``.
        """
        return self._context

    @property
    def settings(self) -> Settings:
        """The settings of the project in its environment: ``project.settings.lakes``."""
        return self._context.settings

    @property
    def models(self) -> tuple[Model, ...]:
        """The models, in the order of their names: ``project.models[0].target``."""
        return self._context.models

    @property
    def externals(self) -> tuple[External, ...]:
        """The declared tables that no model builds: ``project.externals``."""
        return self._context.externals

    @property
    def graph(self) -> Graph:
        """Return which model reads which: ``project.graph.order()`` has each
        after what it reads.
        """
        return self._context.graph

    @property
    def edges(self) -> Mapping[str, tuple[Edge, ...]]:
        """Return which slices of what it reads each model needs, by its name:
        ``project.edges.get("orders", ())``.
        """
        return self._context.edges

    def plan(self, *models: Positional, **options: Unpack[RunOptions]) -> Plan:
        """Return what `run` would do: ``project.plan("orders").steps``.

        The ``stages`` of a step say what becomes of its table first, where that is dropped or
        altered, or the step refused, its ``ranges`` why its slices are made, and the ``changes`` of
        the plan what changed definitions touch. Reads the catalogs, and starts no Spark. Raises
        ArgumentError, PartitionError.
        """
        self._context, request = planning.build_request(self._context, models, options)
        return planning.plan_request(self._context, request)

    def estimates(self, plan: Plan) -> Mapping[str, Estimate]:
        """Return what the steps of a `plan` will take, by past runs:
        ``project.estimates(project.plan())["orders"].seconds``.
        """
        return planning.estimate_plan(self._context, plan)

    def save_plan(self, plan: Plan, path: str | Path) -> None:
        """Write a `plan` to a file, for `run`: ``project.save_plan(project.plan(), "today.json")``.

        Raises ArgumentError where the file cannot be written.
        """
        planning.save_plan(self._context, plan, path)

    def restatement(
        self,
        model: str,
        from_: Partition | None = None,
        to: Partition | None = None,
        *,
        downstream: bool = False,
    ) -> tuple[Restated, ...]:
        """Return what `restate` would do: ``project.restatement("sales", "2026-01-01",
        "2026-01-31")``.

        Raises what `restate` does. Starts Spark to count the rows that are there now.
        """
        return running.preview_restatement(self._context, model, from_, to, downstream=downstream)

    def status(
        self,
        *models: str | None,
        select: str | Sequence[str] | None = None,
        exclude: str | Sequence[str] | None = None,
        from_: Partition | None = None,
        to: Ends = None,
    ) -> Statuses:
        """The slices of one model, or of all: ``project.status("orders")[0].state``. No Spark.

        Models are selected as in `run`. Of all, with the tables in these lakes that no model makes
        any more. With a range, those of partitioned models that lie in it, the missing ones among
        them. Raises ArgumentError, and PartitionError for a range that a model cannot have.
        """
        self._context = self._context.with_own()
        names = [model for model in models if model is not None]
        return states.report_status(
            self._context, names, select=select, exclude=exclude, from_=from_, to=to
        )

    def summaries(
        self,
        *models: str,
        select: str | Sequence[str] | None = None,
        exclude: str | Sequence[str] | None = None,
    ) -> tuple[ModelSummary, ...]:
        """Return the slices of models in numbers: ``project.summaries()[0].counts``.

        Quicker than `status`, which has each slice. Starts no Spark.

        Args:
            *models: Models in the selection language; none for all.
            select: More models.
            exclude: Models to leave out.

        Returns:
            A summary for each model; without a selection, also of tables that no model makes.
        """
        self._context = self._context.with_own()
        return states.summarize_models(self._context, models, select=select, exclude=exclude)

    def show(self, model: str) -> ModelDetail:
        """Everything about one model: ``project.show("orders")``. Starts no Spark."""
        return states.describe_model(self._context, model)

    def why(self, model: str, partition: str | None = None) -> Why:
        """Explain the state of a table, or of a slice: ``project.why("orders").made``.

        Which run made it and for what reason, what it was made from, what a run would do now and
        why, what that waits for, who is making it, who reads it. Starts no Spark. Raises
        ArgumentError, and PartitionError for a slice that the model cannot have.
        """
        return past_runs.explain_state(self._context.with_own(), model, partition)

    def runs(
        self,
        model: str | None = None,
        *,
        failed: bool = False,
        since: str | datetime | None = None,
        limit: int = LAST_RUNS,
        all_environments: bool = False,
    ) -> PastRuns:
        """The last runs, newest first: ``project.runs(failed=True, since="24h")``. No Spark.

        Those that made slices of ``model``, or tried to; ``failed`` are those that failed or were
        killed. ``since`` is a duration, or a time. Runs of environments with other tables are left
        out, unless ``all_environments``. Raises ArgumentError.
        """
        return past_runs.list_runs(
            self._context,
            model,
            failed=failed,
            since=since,
            limit=limit,
            all_environments=all_environments,
        )

    def past_run(self, run: str = "last") -> RunDetail:
        """All that is known of a run: ``project.past_run("last").steps``. Starts no Spark.

        ``run`` is an id, a part that only one begins or ends with, or ``last``. Raises
        ArgumentError.
        """
        return past_runs.describe_run(self._context, run)

    def log(self, run: str = "last") -> RunLogLines:
        """The log of a run, or of the last run of a model: ``project.log("orders").lines``.

        ``run`` is as in `past_run`, or a model, of which the lines of its own steps are meant.
        Raises ArgumentError where there is none on this machine.
        """
        return past_runs.read_log(self._context, run)

    def retry_plan(self, run: str = "last", *, inputs: str = "latest") -> Plan:
        """Return what `Project.retry` would do: ``project.retry_plan("last").steps``.

        Starts no Spark. Raises ArgumentError for a run that goes on, or whose plan is not recorded.
        """
        self._context, plan = repeating.plan_retry(self._context, run, inputs=inputs)
        return plan

    def retry_failed_plan(
        self,
        *models: str,
        since: str | datetime = "24h",
        select: str | Sequence[str] | None = None,
        exclude: str | Sequence[str] | None = None,
    ) -> Plan:
        """Return what `Project.retry_failed` would do: ``project.retry_failed_plan().steps``."""
        self._context, plan = repeating.plan_retries(
            self._context, models, since=since, select=select, exclude=exclude
        )
        return plan

    def check(self, *, spark: bool = False) -> tuple[Diagnostic, ...]:
        """Findings about a project that could be loaded, in file order: ``project.check()``.

        `load` raises the errors of scripts. Errors among these findings are faults that only a run
        would meet: a project without models can still answer queries. With ``spark`` each
        query is analysed by Spark against the schemas that are known; none runs.
        """
        return checking.check_models(self._context, spark=spark)

    def test(
        self,
        *names: str,
        select: str | Sequence[str] | None = None,
        exclude: str | Sequence[str] | None = None,
        to: str | Sequence[str] | None = None,
    ) -> Iterator[UnitTestResult]:
        """The results of unit tests, each as it ends: ``project.test()``.

        ``names`` are patterns of tests, models or files below ``tests/``, or select models as
        ``select`` does; without one, all. No lake is written, and none is read but for ``state:``.
        Raises ModelError and ArgumentError before any runs.
        """
        return checking.run_tests(self._context, names, select=select, exclude=exclude, to=to)

    def show_as(self, model: str, form: str) -> str:
        """A script in a form, ``annotations`` or ``model``: ``project.show_as("orders", "model")``.

        Raises InputError, at the script's place, for what that form cannot say.
        """
        return checking.show_as_form(self._context, model, form)

    def lineage(self, of: str, direction: str = "upstream", *, rows: bool = False) -> Trace:
        """Return what columns derive from, over all hops: ``project.lineage("orders.id").columns``.

        ``of`` is MODEL or MODEL.COLUMN, where MODEL may also be a table or file that models read;
        ``direction`` ``upstream``, or ``downstream`` for what derives from them. With ``rows``
        follow also what decides which rows there are. Starts no Spark. Raises ArgumentError with
        the nearest name.
        """
        from penstock.model.lineage.trace import trace

        return trace(self.column_lineage(), self.models, of, direction, rows=rows)

    def column_lineage(self) -> ProjectLineage:
        """The columns of all models, one hop: ``project.column_lineage().of("main.orders")``.

        With those of views that models read. The columns of tables that no model makes are those of
        the lakes. Starts no Spark.
        """
        return running.column_lineage(self._context)

    def tests(self, model: str) -> RecordedChecks:
        """The latest results of a model's data tests: ``project.tests("orders")``.

        By slice, in the order of the script. Starts no Spark.
        """
        return states.read_test_results(self._context, model)

    def schema_history(self, model: str) -> tuple[VersionChanges, ...]:
        """Return what became of the columns of a model's table:
        ``project.schema_history("orders")``.

        By version, from the oldest. Starts no Spark.
        """
        return states.read_schema_history(self._context, model)

    def snapshots(self, lake: str | None = None, limit: int | None = None) -> Snapshots:
        """The newest snapshots of a lake, or of all: ``project.snapshots(limit=5)``. No Spark."""
        return states.list_snapshots(self._context, lake, limit)

    def sql(
        self,
        text: str,
        args: Mapping[str, Any] | None = None,
        *,
        lake: str | None = None,
        dialect: str | None = None,
    ) -> DataFrame:
        """A query over the tables of the project: ``project.sql("SELECT * FROM orders").show()``.

        ``args`` are the values of ``:name`` markers, ``dialect`` is the project's unless it is
        given. A text that is not one query runs on ``lake``
        (by default ``main``, or the only one), as `Lake.sql` runs it. Raises ModelError,
        with places in ``text``, and what reading and writing raise.
        """
        return querying.run_sql(self._context, text, args, lake=lake, dialect=dialect)

    def query(
        self,
        text: str,
        *,
        lake: str | None = None,
        limit: int = 100,
        spark: bool = False,
        dialect: str | None = None,
    ) -> QueryResult:
        """The first rows of what `sql` returns: ``project.query("SELECT * FROM orders").rows``.

        A plain SELECT of a small table on this machine is answered from its files, without
        starting Spark, unless ``spark`` asks for it. Raises what `sql` raises, and QueryFailed.
        """
        return querying.run_query(
            self._context, text, lake=lake, limit=limit, spark=spark, dialect=dialect
        )

    def read(
        self,
        model: str,
        partition: str | None = None,
        *,
        limit: int = 100,
        spark: bool = False,
    ) -> QueryResult:
        """The first rows of a published table, or slice: ``project.read("orders", limit=5).rows``.

        As in `query`, Spark starts only for what is not small. Raises ArgumentError for a model
        that has published nothing yet or has no slices, and PartitionError.
        """
        return querying.read_table(self._context, model, partition, limit=limit, spark=spark)

    def preview(
        self,
        model: str,
        partition: Partition | None = None,
        limit: int | None = None,
        args: Mapping[str, object] | None = None,
    ) -> DataFrame:
        """Return what a model's SELECT returns now, unwritten:
        ``project.preview("orders").show()``.
        """
        return querying.preview_model(self._context, model, partition, limit, args)

    def preview_rows(
        self,
        model: str,
        partition: Partition | None = None,
        limit: int = 100,
        args: Mapping[str, object] | None = None,
    ) -> QueryResult:
        """The first rows of a `preview`: ``project.preview_rows("orders", limit=5).rows``."""
        return querying.preview_rows(self._context, model, partition, limit, args)

    def render(
        self,
        model: str,
        partition: Partition | None = None,
        args: Mapping[str, object] | None = None,
        *,
        from_: Partition | None = None,
        to: Partition | None = None,
    ) -> Rendering:
        """A model's query as it runs: ``project.render("orders").sql``. Starts no Spark.

        Macros are expanded, and the values of the slice, the arguments and the times of the run
        stand in it; of a range, those of its first slice. Raises ArgumentError, PartitionError.
        """
        return querying.render_query(self._context, model, partition, args, from_=from_, to=to)

    def explain(
        self, text: str, args: Mapping[str, Any] | None = None, *, dialect: str | None = None
    ) -> Explanation:
        """The files that `sql` would read, and why: ``project.explain("SELECT * FROM orders")``.

        Starts no Spark. Raises what `sql` raises before it starts it.
        """
        return querying.explain_query(self._context, text, args, dialect=dialect)

    def diff(
        self,
        table: str | None = None,
        other: str | None = None,
        *,
        from_: Point | None = None,
        to: Point | None = None,
        run: str | None = None,
        key: str | Sequence[str] | None = None,
        samples: int = SAMPLES,
    ) -> TableDiffs:
        """Return what differs in a table between two points:
        ``project.diff("orders", from_=3, to=7)``.

        A point is a snapshot, a time, an age (``24h``) or a run, as which it left the table; ``to``
        is now without one. With ``other`` what differs from one table to the other, as they are
        now; with ``run`` all that a run changed, of all its tables or one. ``table`` is a model or
        a table. Rows are matched by ``key``, or the model's, or by their ids. Raises ArgumentError,
        TableNotFound, SnapshotNotFound.
        """
        return table_history.compare_tables(
            self._context, table, other, from_=from_, to=to, run=run, key=key, samples=samples
        )

    def row_history(self, table: str, key: str | Mapping[str, object]) -> tuple[RowVersion, ...]:
        """The versions of a row, the first first: ``project.row_history("orders", {"id": 7})``.

        Each with its snapshot, and the run and the model that made it; ``key`` may be a text,
        ``id=7,region=eu``. What only expired snapshots had is not known. Raises ArgumentError,
        TableNotFound.
        """
        return table_history.trace_row(self._context, table, key)

    def reproduce(
        self,
        run: str,
        step: str | None = None,
        *,
        partition: str | None = None,
        samples: int = SAMPLES,
    ) -> Reproduction:
        """Make the steps of a run once more from their inputs as they were, and compare the rows
        with what it wrote: ``project.reproduce("last", "orders").steps``.

        All steps, or one, or its slice ``partition``. No table is written. A step that cannot be
        made as it was is ``refused``, with the reason. ``run`` is an id, a part that only one
        begins or ends with, or ``last``. Raises ArgumentError.
        """
        return repeating.reproduce_run(
            self._context, run, step, partition=partition, samples=samples
        )

    @property
    def spark(self) -> SparkSession:
        """The Spark session of the project, started when there is none: ``project.spark``."""
        self._context.connections.check_open()
        return self._context.session()

    def model(self, name: str) -> Model:
        """One model: ``project.model("orders").target``. Raises ArgumentError with the nearest."""
        return self._context.model(name)

    def lake(self, name: str, *, new_catalog: bool = False) -> Lake:
        """A lake of penstock.toml, made when it is new: ``project.lake("main").tables()``.

        Raises CatalogVanished where there is no catalog beside the files of a lake: with
        ``new_catalog`` it is made there all the same.
        """
        return self._context.lake(name, new_catalog=new_catalog)

    def close(self) -> None:
        """Close the catalogs: after ``project.close()`` every call raises LakeClosed.

        A Spark session stays open: the next project uses it.
        """
        self._context.connections.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
