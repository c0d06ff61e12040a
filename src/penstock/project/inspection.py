"""Inspect a project: the states of its models, their columns and rows.

The half of the Python API that changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from penstock.errors import QueryFailed
from penstock.model.definition.model import Model
from penstock.project.plan_inspection import PlanInspection

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from penstock.engine.answers.preview import Queries
    from penstock.engine.answers.rendering import Rendering
    from penstock.engine.answers.schema_history import VersionChanges
    from penstock.engine.answers.sparkless_query import SmallReads
    from penstock.engine.answers.status import Reads
    from penstock.engine.inputs.resolve import Resolved
    from penstock.engine.planning.run_arguments import Ends
    from penstock.engine.planning.slices import Partition
    from penstock.engine.results import (
        ModelDetail,
        QueryResult,
        RecordedChecks,
        Snapshots,
        Statuses,
    )
    from penstock.lake.queries.explain import Explanation
    from penstock.model.lineage.models import ProjectLineage
    from penstock.model.lineage.trace import Trace


class Inspection(PlanInspection):
    """Questions that a project answers without running. `Project` is its class for users."""

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
        from penstock.engine.answers.range_status import in_range, of_selection
        from penstock.engine.answers.status import status_of, statuses
        from penstock.engine.planning.ranges import SliceRange
        from penstock.engine.planning.run_arguments import selection_of

        self._make_own()
        given = [each for each in models if each is not None]
        selection, last = selection_of(given, select, exclude, to, self.models)
        only = selection.only(self.models)
        asked = None if from_ is None and last is None else SliceRange(from_, last)
        by_name = {each.name: each for each in self.models}

        def known() -> Statuses:
            of, reads = (self.settings, self._catalog), self._reads
            found = status_of(*of, only, reads) if only else statuses(*of, self.models, reads)
            if asked is None:
                return found
            return in_range(
                found,
                [only] if only else self.models,
                asked,
                lambda timed: self._known().intervals(timed),
                above=lambda of: [by_name[name] for name in self.graph.upstream(of.name)],
            )

        if only or not selection:
            return known()
        return of_selection(selection, by_name, self.graph, known)

    @property
    def _reads(self) -> Reads:
        from penstock.engine.answers.status import Reads

        return Reads(self.edges, self._table_reads, self._views_read)

    def _in_state(self, word: str) -> set[str]:
        return {each.model for each in self.status(select=f"state:{word}") if each.model}

    def show(self, model: str) -> ModelDetail:
        """Everything about one model: ``project.show("orders")``. Starts no Spark."""
        from penstock.engine.answers.status import detail_of

        shown = self.model(model)
        return detail_of(self.settings, self._catalog, shown, self._reads)

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
        self._connections.check_open()
        return self._lineage()[0]

    def tests(self, model: str) -> RecordedChecks:
        """The latest results of a model's data tests: ``project.tests("orders")``.

        By slice, in the order of the script. Starts no Spark.
        """
        from penstock.engine.answers.status import recorded_checks

        shown = self.model(model)
        return recorded_checks(shown, self._catalog(shown.target.lake))

    def schema_history(self, model: str) -> tuple[VersionChanges, ...]:
        """Return what became of the columns of a model's table:
        ``project.schema_history("orders")``.

        By version, from the oldest. Starts no Spark.
        """
        from penstock.engine.answers.schema_history import schema_changes

        return schema_changes(self.show(model).schema_versions)

    def snapshots(self, lake: str | None = None, limit: int | None = None) -> Snapshots:
        """The newest snapshots of a lake, or of all: ``project.snapshots(limit=5)``. No Spark."""
        from penstock.engine.answers.status import snapshot_infos
        from penstock.engine.results import Snapshots

        only = None if lake is None else self._connections.lake_settings(lake).name
        names = self.settings.lakes if only is None else [only]
        return Snapshots(snapshot_infos({name: self._catalog(name) for name in names})[:limit])

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
        df = self._previewed(model, partition, args).df
        return df if limit is None else df.limit(limit)

    def preview_rows(
        self,
        model: str,
        partition: Partition | None = None,
        limit: int = 100,
        args: Mapping[str, object] | None = None,
    ) -> QueryResult:
        """The first rows of a `preview`: ``project.preview_rows("orders", limit=5).rows``."""
        from penstock.engine.answers.sparkless_query import collected

        previewed = self._previewed(model, partition, args)
        return collected(previewed.df, limit, previewed.placed)

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
        from penstock.engine.answers.rendering import rendering

        shown = self.model(model)
        if not shown.strategy.runs:  # which is never planned
            return rendering(shown, None)
        plan = self._plan_of(shown, partition=partition, args=args, from_=from_, to=to)
        return rendering(shown, plan)

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
        self._connections.check_open()
        from penstock.lake.statements.dispatch import is_statement

        dialect = dialect or self.settings.dialect
        if lake is not None or is_statement(text, dialect):
            self._connections.drop_dead_session()
            name = lake or self._connections.default_lake()
            try:
                return self.lake(name).sql(text, args, dialect=dialect)
            except QueryFailed as error:
                other = error.data.get("catalog")
                if lake is None and other in self.settings.lakes:
                    error.hint = (
                        f"statements run on the lake {name} unless another is named: "
                        f"penstock sql --lake {other}, or project.sql(..., lake={other!r})"
                    )
                raise
        return self._queries().query(text, args or {}, dialect).df

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
        self._connections.check_open()
        if lake is not None:
            lake = self._connections.lake_settings(lake).name
        written = dialect or self.settings.dialect
        rows = None if spark else self._small(limit, lambda reads: reads.query(text, lake, written))
        if rows is not None:
            return rows
        from penstock.engine.answers.sparkless_query import collected
        from penstock.lake.statements.dispatch import is_statement

        if lake is not None or is_statement(text, written):
            return collected(self.sql(text, lake=lake, dialect=dialect), limit)
        queried = self._queries().query(text, {}, written)
        return collected(queried.df, limit, queried.placed)

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
        from penstock.engine.answers.sparkless_query import collected, require_published

        maker = self.model(model)
        if partition is not None and maker.by_time is not None:
            return self._read_interval(maker, partition, limit)
        value = (
            None if partition is None else self._plan_of(maker, partition=partition).slice_of_step()
        )
        require_published(maker, self._catalog)
        rows = None if spark else self._small(limit, lambda read: read.table(maker.target, value))
        if rows is not None:
            return rows
        return collected(self._queries().published(maker.target, value), limit)

    def _read_interval(self, maker: Model, moment: str, limit: int) -> QueryResult:
        """The rows of the published intervals that a date or another moment is in."""
        from penstock.engine.answers.sparkless_query import (
            collected,
            require_published,
            rows_by_time,
        )

        intervals = rows_by_time(maker, moment)
        require_published(maker, self._catalog)
        return collected(self._queries().in_intervals(maker, intervals), limit)

    def explain(
        self, text: str, args: Mapping[str, Any] | None = None, *, dialect: str | None = None
    ) -> Explanation:
        """The files that `sql` would read, and why: ``project.explain("SELECT * FROM orders")``.

        Starts no Spark. Raises what `sql` raises before it starts it.
        """
        self._connections.check_open()
        return self._queries().explain(text, args or {}, dialect or self.settings.dialect)

    def _previewed(
        self, model: str, partition: Partition | None, args: Mapping[str, object] | None
    ) -> Resolved:
        if not self.model(model).strategy.runs:  # which is never planned
            return self._queries().of_model(self.model(model))
        plan = self._plan_of(self.model(model), partition=partition, args=args)
        return self._queries().preview(plan)

    @property
    def spark(self) -> SparkSession:
        """The Spark session of the project, started when there is none: ``project.spark``."""
        self._connections.check_open()
        return self._session()

    def _queries(self) -> Queries:
        from penstock.engine.answers.preview import Queries

        return Queries.of(self._connections, self._session, self._loaded)

    def _small(
        self, limit: int, ask: Callable[[SmallReads], QueryResult | None]
    ) -> QueryResult | None:
        """An answer without Spark, unless a session exists, which may have other settings."""
        if self._connections.has_session:
            return None
        from penstock.engine.answers.sparkless_query import SmallReads

        return ask(SmallReads(self.settings, self._catalog, limit, self._loaded.moved))
