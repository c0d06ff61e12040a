"""A project: its models, and what can be done with them. The Python API.

What needs no Spark does not start it, and what needs no catalog does not open it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from penstock.engine.session.connections import Connections
from penstock.errors import ArgumentError, Diagnostic, LakeError, TableNotFound
from penstock.events import EventSink
from penstock.model.definition.graph import table_key
from penstock.project.rolling_back import RollingBack
from penstock.settings.config import load_settings

if TYPE_CHECKING:
    from datetime import datetime

    from pyspark.sql import SparkSession

    from penstock.destinations.catalog import Catalog
    from penstock.engine.planning.plan import Plan
    from penstock.engine.planning.restate import Restated
    from penstock.engine.planning.run_arguments import Ends, Fired, Positional
    from penstock.engine.planning.selection import Selection
    from penstock.engine.planning.slices import Partition, RunRequest
    from penstock.engine.results import (
        Adopted,
        Dropped,
        RunResult,
    )
    from penstock.engine.running.prune import Pruned
    from penstock.engine.verifying.external import CreatedExternal
    from penstock.engine.verifying.unit_tests import UnitTestResult
    from penstock.model.definition.model import Model
    from penstock.model.project.formatting import Formatter


class Project(RollingBack):
    """The models of one directory and the lakes they write to.

    Catalogs are opened when they are first needed: close the project, or use it in a ``with``::

        with Project.load("shop") as project:
            result = project.run(select="orders")
            print(result.state, [step.rows for step in result.steps])
            print(project.query("SELECT * FROM orders ORDER BY id", limit=3).rows)
            print(project.status("orders")[0].state)
    """

    @classmethod
    def load(
        cls,
        directory: str | Path = ".",
        *,
        spark: SparkSession | None = None,
        environment: str | None = None,
        overrides: Mapping[str, str] | None = None,
        warm: bool | None = None,
    ) -> Self:
        """The project in ``directory``, which holds penstock.toml: ``Project.load("shop")``.

        ``spark`` is the session to use; without it one is started when data is first needed.
        ``environment`` is one of penstock.toml's, by default that of PENSTOCK_ENV. ``warm``:
        whether Spark is that of a server that stays; by default at a terminal and in a notebook.
        ``overrides`` are settings by dotted key. Raises ConfigError, ModelError.
        """
        settings = load_settings(Path(directory), environment=environment, overrides=overrides)
        connections = Connections(settings, spark, warm)
        return cls(settings, connections.load_models(), connections)

    def show_as(self, model: str, form: str) -> str:
        """A script in a form, ``annotations`` or ``model``: ``project.show_as("orders", "model")``.

        Raises InputError, at the script's place, for what that form cannot say.
        """
        return self._formatter(form).formatted(self.model(model))[1]

    def format(
        self, paths: Sequence[str | Path] = (), form: str | None = None, *, check: bool = False
    ) -> tuple[Path, ...]:
        """Rewrite what declares each model in canonical spelling: ``project.format(check=True)``.

        Of all models, or of those in these files and directories; with a ``form`` in that form.
        Returns the files that change; with ``check`` they are left as they are. Raises ModelError
        with the files that cannot be rewritten, when the others are: ``error.data["changed"]``.
        """
        return self._formatter(form).run(self.models, [Path(path) for path in paths], check=check)

    def _formatter(self, form: str | None) -> Formatter:
        from penstock.model.project.formatting import Formatter

        assert self._loaded.place is not None, "a project that has models was read somewhere"
        return Formatter(self._loaded.place, form)

    def check(self, *, spark: bool = False) -> tuple[Diagnostic, ...]:
        """Findings about a project that could be loaded, in file order: ``project.check()``.

        `load` raises the errors of scripts. Errors among these findings are faults that only a run
        would meet: a project without models can still answer queries. With ``spark`` each
        query is analysed by Spark against the schemas that are known; none runs.
        """
        self._connections.check_open()
        from penstock.engine.verifying.project_check import check_project
        from penstock.model.slicing.needs import doubt_findings, needs_findings

        about = check_project(self.settings, self.models, self.externals, self._catalog)
        if any(model.input_needs for model in self.models):
            about = (*about, *needs_findings(self.models, self.edges))
        about = (*about, *doubt_findings(self.edges))
        findings = (*self._loaded.diagnostics, *about)
        if any(finding.rule == "lake" for finding in findings):
            return findings
        if not spark:
            return (*findings, *self._column_findings())
        from penstock.engine.verifying.reference_check import RULE as REFERENCE
        from penstock.engine.verifying.spark_check import check_queries

        ordered = self.graph.ordered(self.models)
        lakes = {
            name: self.lake(name) for name in self.settings.lakes if self._catalog(name) is not None
        }
        session = self._session()
        found = check_queries(ordered, session, lakes, self.settings, self.externals)
        named = [each for each in self._column_findings() if each.rule == REFERENCE]
        places = {(str(each.location.path), each.location.line) for each in named}
        others = (f for f in found if (str(f.location.path), f.location.line) not in places)
        return (*findings, *named, *others)

    def _column_findings(self) -> tuple[Diagnostic, ...]:
        """Columns that models name, and that their queries or those above them do not return.

        The lakes are asked where something is missing, which they may have, and where models read
        what no model of the project says the columns of.
        """
        from penstock.engine.verifying.column_check import check_columns, names_columns
        from penstock.engine.verifying.reference_check import missing_references

        if not any(names_columns(model) or model.names_tables for model in self.models):
            return ()
        root, found = self.settings.root, list[Diagnostic]()
        try:
            for lakes in (False, True):
                lineage, known = self._lineage(lakes=lakes)
                references = missing_references(self.models, self.models, lineage, known.tables)
                found = [*check_columns(self.models, lineage, known.tables, root)]
                found += [each.finding() for each in references]
                if not found and lineage.knows_all(self.models):
                    return ()
        except LakeError:  # a catalog that cannot be read says nothing of columns
            return ()
        return tuple(found)

    def create_external(self) -> CreatedExternal:
        """Add the tables that are read and not made to external_models.yaml, with their types.

        ``project.create_external().added``. What the file has stays as it is. Starts no Spark.
        """
        from penstock.engine.verifying.external import create_external

        return create_external(self.settings.root, self.models, self.externals, self._catalog)

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
        self._connections.check_open()
        from penstock.engine.planning.run_arguments import selection_of
        from penstock.engine.verifying.unit_test_files import WantedTests
        from penstock.engine.verifying.unit_tests import run_unit_tests

        selection, last = selection_of((), select, exclude, to, self.models)
        if last is not None:
            raise ArgumentError(
                f"unit tests have no range that could end at {last}", hint="--to names a model"
            )

        root, dialect = self.settings.root, self.settings.dialect
        wanted = WantedTests(names, selection, self._selected)
        return run_unit_tests(root, wanted, self.models, self._session, dialect)

    def _selected(self, chosen: Selection) -> frozenset[str]:
        by_name = {model.name: model for model in self.models}
        return chosen.of(by_name, self.graph, self._in_state).names

    def run(
        self,
        *models: Positional,
        partition: Partition | None = None,
        select: str | Sequence[str] | None = None,
        exclude: str | Sequence[str] | None = None,
        args: Mapping[str, object] | None = None,
        jobs: int | None = None,
        fire_time: Fired | None = None,
        payload: Mapping[str, Any] | None = None,
        trigger: str = "manual",
        full_refresh: bool = False,
        from_: Partition | None = None,
        to: Ends = None,
        all_: bool = False,
        upstream: bool = False,
        allow_missing: bool = False,
        behind: bool | None = None,
        changed: bool = False,
        force: bool = False,
        wait: bool = True,
        new_catalog: bool = False,
        plan: Plan | str | Path | None = None,
        on_event: EventSink | None = None,
    ) -> RunResult:
        """Run the steps in order, as `penstock run` does: ``project.run("orders", force=True)``.

        ``to`` ends a range, or names models; ``partition`` may be a moment, and is the slice of
        ``fire_time`` without it. ``plan``, or its file, is run as it is, or raises PlanMoved."""
        request = self._request(
            *models,
            partition=partition,
            select=select,
            exclude=exclude,
            args=args,
            fire_time=fire_time,
            payload=payload,
            trigger=trigger,
            full_refresh=full_refresh,
            from_=from_,
            to=to,
            all_=all_,
            upstream=upstream,
            allow_missing=allow_missing,
            behind=behind,
            changed=changed,
            force=force,
        )
        to_run = self._to_run(request, plan)
        return self._run_and_tell(to_run, jobs, on_event, new_catalog=new_catalog, wait=wait)

    def _to_run(self, request: RunRequest, plan: Plan | str | Path | None) -> Plan:
        """The plan to run: of the request, or as it was made before. Raises what both raise."""
        if plan is None:
            return self._reasoned(request)
        from penstock.engine.planning.saved_plan import require_alone

        require_alone(request)
        return self._unmoved(plan)

    def retry(
        self,
        run: str = "last",
        *,
        inputs: str = "latest",
        jobs: int | None = None,
        wait: bool = True,
        on_event: EventSink | None = None,
    ) -> RunResult:
        """Retry the failed part of a run with its arguments: ``project.retry("last")``.

        Slices, arguments, payload and time are those of the run, what it made stays, and what was
        skipped because of a failure is made too. ``run`` is as in `past_run`; `retry_plan` says
        what would be done. Raises ArgumentError.
        """
        plan = self.retry_plan(run, inputs=inputs)
        return self.run_retry(plan, jobs=jobs, wait=wait, on_event=on_event)

    def run_retry(
        self,
        plan: Plan,
        *,
        jobs: int | None = None,
        wait: bool = True,
        on_event: EventSink | None = None,
    ) -> RunResult:
        """Run a `retry_plan`, just made: ``project.run_retry(project.retry_plan("last"))``."""
        return self._execute(plan, jobs, on_event, wait=wait)

    def retry_failed(
        self,
        *models: str,
        since: str | datetime = "24h",
        select: str | Sequence[str] | None = None,
        exclude: str | Sequence[str] | None = None,
        jobs: int | None = None,
        wait: bool = True,
        on_event: EventSink | None = None,
    ) -> RunResult:
        """Retry all runs that failed or were killed, in one plan: ``project.retry_failed()``.

        Of all models, or of those selected as in `run`. Each slice is made as its last run was to
        make it. Raises ArgumentError.
        """
        plan = self.retry_failed_plan(*models, since=since, select=select, exclude=exclude)
        return self.run_retry(plan, jobs=jobs, wait=wait, on_event=on_event)

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
        from penstock.engine.planning.restate import restated

        plan = self._restating(model, from_, to, downstream=downstream)
        columns = {name: each.partition_column for name, each in self.settings.lakes.items()}
        return restated(plan, self._connections.lakes(plan.lakes, self._session), columns)

    def restate(
        self,
        model: str,
        from_: Partition | None = None,
        to: Partition | None = None,
        *,
        downstream: bool = False,
        fire_time: Fired | None = None,
        wait: bool = True,
        on_event: EventSink | None = None,
    ) -> RunResult:
        """Make the slices of a range again: ``project.restate("sales", "2026-01-01", "now")``.

        What the query does not return any more is gone afterwards; a model by time is restated in
        one commit. A model without ranges is made again as a whole, ``project.restate("people")``:
        merges, appends and histories from nothing. With ``downstream`` also what is there of the
        models that read it; then ``model`` may be a table that others write. Raises ArgumentError
        for a model with ``disable_restatement`` and one whose rows are only added. Without ``wait``
        slices that another run is making are left out.
        """
        plan = self._restating(model, from_, to, downstream=downstream, fire_time=fire_time)
        return self._run_and_tell(plan, None, on_event, wait=wait)

    def _restating(
        self,
        model: str,
        from_: Partition | None,
        to: Partition | None,
        *,
        downstream: bool,
        fire_time: Fired | None = None,
    ) -> Plan:
        from penstock.engine.planning.ranges import SliceRange
        from penstock.engine.planning.restate import Root, planner_of
        from penstock.engine.planning.run_arguments import fired
        from penstock.engine.planning.slices import RunRequest

        asked = SliceRange.of(from_, to, every=True) if from_ or to else None
        external = next((each for each in self.externals if each.is_called(model)), None)
        self._make_own(() if external else [self.model(model).name])
        root = Root.of(external, self.models) if external else Root.at(self.model(model))
        select = root.select(self.graph, downstream=downstream)
        if self._own_models is not None:  # what another environment made stays as it is
            select = tuple(name for name in select if self.model(name).own)
            if not select:
                raise ArgumentError(
                    f"this environment has no table of its own that {model} is, or that reads it",
                    hint=f"make one first: penstock run {model}",
                )
        root.require(asked, downstream=downstream)
        request = RunRequest(
            select=select,
            fire_time=fired(fire_time),
            trigger="restate",
            range=asked,
        )
        return self._reasoned(request, planner_of(root))

    def _run_and_tell(
        self, plan: Plan, jobs: int | None, on_event: EventSink | None, **options: bool
    ) -> RunResult:
        """Run a plan; then tell those whom the settings name."""
        if not self.settings.notify:
            return self._execute(plan, jobs, on_event, **options)
        from penstock.sinks.notify import Notifier, run_and_tell

        notifier = Notifier.of(self.settings, self._named)
        return run_and_tell(
            lambda: self._execute(plan, jobs, on_event, **options),
            notifier,
            failing=lambda: self._in_state("failed"),
            sink=on_event,
        )

    def _named(self, words: Sequence[str]) -> frozenset[str]:
        """The models that words of the selection language name."""
        from penstock.engine.planning.run_arguments import selection_of

        return self._selected(selection_of((), words, (), (), self.models)[0])

    def _execute(
        self,
        plan: Plan,
        jobs: int | None,
        on_event: EventSink | None,
        *,
        new_catalog: bool = False,
        wait: bool = True,
    ) -> RunResult:
        from penstock.engine.planning.no_op import all_waits, idle_run, is_idle
        from penstock.engine.planning.run_arguments import require_jobs
        from penstock.sinks.progress.live import showing

        require_jobs(jobs)
        for step in plan.steps:
            self._require_own(step.model.target)
        if is_idle(plan):
            with showing(on_event) as sink:
                return idle_run(plan, sink)
        if missing := self._missing_references(plan):
            from penstock.engine.verifying.reference_check import require_columns

            require_columns(missing)
        from penstock.engine.running.run import run_plan

        lakes = self._connections.lakes(plan.lakes, self._session, new_catalog=new_catalog)
        with showing(on_event, live=not self._connections.draws_bars()) as sink:
            return run_plan(
                plan,
                settings=self.settings,
                session=None if all_waits(plan) else self._session(sink),
                lakes=lakes,
                sink=self._emitting(sink),
                jobs=jobs or self._connections.steps_at_once(),
                waits=wait,
            )

    def prune(self, *, dry_run: bool = False) -> Pruned:
        """Remove old records and logs of runs, as `[run]` and `[logs]` say: ``project.prune()``.

        The latest of each slice stays. What cannot be removed is named in the result, and stops
        nothing; with ``dry_run`` nothing is removed. Starts no Spark.
        """
        from penstock.engine.running.prune import prune

        known: Mapping[str, Catalog] = self._catalogs()
        if not dry_run:
            known = {name: self.lake(name).catalog for name in known}
        return prune(known, self.settings.retention, dry_run=dry_run)

    def _emitting(self, sink: EventSink) -> EventSink:
        """A sink that also sends events of OpenLineage, where the settings say so."""
        to = self.settings.open_lineage
        if to is None:
            return sink
        from penstock.sinks.open_lineage import Emitter, client_of

        models = {model.name: model for model in self.models}
        lineage = self.column_lineage
        return Emitter(self.settings, to.namespace, models, lineage, client_of(to), sink)

    def adopt(self, model: str, until: str | None = None, *, dry_run: bool = False) -> Adopted:
        """Record the rows that others have put into a model's table as made by its runs:
        ``project.adopt("orders", until="2026-01-31")``.

        Nothing of the table changes. Models by time and those partitioned by time are adopted up to
        and including ``until``, or to their last row. With ``dry_run`` nothing is recorded. Raises
        ArgumentError, TableNotFound, SchemaMismatch and DefinitionChanged for what cannot be.
        """
        from penstock.engine.running.adopt import adopt

        made = self.model(model)
        self._require_own(made.target)
        lake = made.target.lake
        if self._catalog(lake) is None:
            raise TableNotFound(f"lake {lake} does not exist yet", hint="nothing has run")

        def columns(value: str | None) -> Sequence[str] | None:
            if made.python is not None:  # only a run shows what Python makes
                return None
            return self._queries().preview(self._plan_of(made, partition=value)).df.columns

        column = self.settings.lakes[lake].partition_column
        return adopt(
            self.lake(lake),
            made,
            columns,
            column=column,
            until=until,
            dry_run=dry_run,
            environment=self.settings.runs_in,
        )

    def drop(self, model: str, slice: str | None = None) -> Dropped:  # noqa: A002 - what it is
        """Drop a model's table, or a slice, as a new snapshot: ``project.drop("orders")``.

        Earlier snapshots keep the rows. Of a step that writes files what is recorded is
        forgotten, and the files stay. Raises TableNotFound and ArgumentError for what is not
        there. A slice is called as `status` shows it; of a model by time it may also be some of the
        intervals. Of a model that is gone its name, or that of its table, is meant.
        """
        from penstock.engine.running.drop import drop, forget_files, unmade_target

        made: Model | None = None
        try:
            made = self.model(model)
            target = made.target
        except ArgumentError:
            gone = unmade_target(model, self.settings.lakes, self._catalog)
            if gone is None or any(table_key(gone) == table_key(m.target) for m in self.models):
                raise
            target = gone
        self._require_own(target)
        if self._catalog(target.lake) is None:
            raise TableNotFound(f"lake {target.lake} does not exist yet", hint="nothing has run")
        if made is not None and made.python is not None and not target.is_table:
            return forget_files(self.lake(target.lake), target, made.python.writes, slice)
        column = self.settings.lakes[target.lake].partition_column
        return drop(self.lake(target.lake), target, slice, column, made)
