"""A project: its models, and what can be done with them. The Python API.

What needs no Spark does not start it, and what needs no catalog does not open it. Each method calls
one operation on a `ProjectContext`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Self, Unpack

from penstock.engine.session.connections import Connections
from penstock.events import EventSink
from penstock.project import checking, maintaining, planning, running
from penstock.project.reader import ProjectReader
from penstock.settings.config import load_settings

if TYPE_CHECKING:
    from datetime import datetime

    from pyspark.sql import SparkSession

    from penstock.engine.planning.plan import Plan
    from penstock.engine.planning.run_arguments import Fired, Positional, RunOptions
    from penstock.engine.planning.slices import Partition
    from penstock.engine.results import Adopted, Dropped, RunResult
    from penstock.engine.running.prune import Pruned
    from penstock.engine.verifying.project_check import CreatedExternal
    from penstock.project.maintaining import Rollback
    from penstock.project.table_history import Point


class Project(ProjectReader):
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

    def run(
        self,
        *models: Positional,
        jobs: int | None = None,
        wait: bool = True,
        new_catalog: bool = False,
        plan: Plan | str | Path | None = None,
        on_event: EventSink | None = None,
        **options: Unpack[RunOptions],
    ) -> RunResult:
        """Run the steps in order, as `penstock run` does: ``project.run("orders", force=True)``.

        ``to`` ends a range, or names models; ``partition`` may be a moment, and is the slice of
        ``fire_time`` without it. ``plan``, or its file, is run as it is, or raises PlanMoved.

        The options are those of `penstock run`: ``partition``, ``select``, ``exclude``, ``args``,
        ``fire_time``, ``payload``, ``trigger``, ``full_refresh``, ``from_``, ``to``, ``all_``,
        ``upstream``, ``allow_missing``, ``behind``, ``changed`` and ``force``. `plan` has them too.
        """
        self._context, request = planning.build_request(self._context, models, options)
        settings = running.RunSettings(jobs, on_event, new_catalog, wait)
        return running.run_request(self._context, request, plan, settings)

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
        settings = running.RunSettings(jobs, on_event, wait=wait, notifies=False)
        return running.execute_plan(self._context, plan, settings)

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
        self._context, plan = running.plan_restatement(
            self._context, model, from_, to, downstream=downstream, fire_time=fire_time
        )
        settings = running.RunSettings(None, on_event, wait=wait)
        return running.execute_plan(self._context, plan, settings)

    def create_external(self) -> CreatedExternal:
        """Add the tables that are read and not made to external_models.yaml, with their types.

        ``project.create_external().added``. What the file has stays as it is. Starts no Spark.
        """
        return checking.create_external_models(self._context)

    def format(
        self, paths: Sequence[str | Path] = (), form: str | None = None, *, check: bool = False
    ) -> tuple[Path, ...]:
        """Rewrite what declares each model in canonical spelling: ``project.format(check=True)``.

        Of all models, or of those in these files and directories; with a ``form`` in that form.
        Returns the files that change; with ``check`` they are left as they are. Raises ModelError
        with the files that cannot be rewritten, when the others are: ``error.data["changed"]``.
        """
        return checking.format_files(self._context, paths, form, check=check)

    def rollback(
        self,
        model: str,
        to: Point,
        *,
        downstream: bool = False,
        dry_run: bool = False,
        wait: bool = True,
    ) -> Rollback:
        """Make a model's table what it was: ``project.rollback("orders", to=7, dry_run=True)``.

        ``to`` is a snapshot, a time, an age (``24h``), or a run, as which it left the table. Slices
        that were made since are missing again. With ``downstream`` the tables of all models
        that read it go back to the same moment; otherwise those that read what is taken back are
        behind. Each table is one commit. A run that is making some of a table is waited for, unless
        ``wait=False``: then CommitConflict names it. Raises ArgumentError, SnapshotNotFound,
        TableNotFound, and what the lake raises for files that are gone. Starts no Spark.
        """
        return maintaining.roll_back(
            self._context, model, to, downstream=downstream, dry_run=dry_run, wait=wait
        )

    def adopt(self, model: str, until: str | None = None, *, dry_run: bool = False) -> Adopted:
        """Record the rows that others have put into a model's table as made by its runs:
        ``project.adopt("orders", until="2026-01-31")``.

        Nothing of the table changes. Models by time and those partitioned by time are adopted up to
        and including ``until``, or to their last row. With ``dry_run`` nothing is recorded. Raises
        ArgumentError, TableNotFound, SchemaMismatch and DefinitionChanged for what cannot be.
        """
        return maintaining.adopt_rows(self._context, model, until, dry_run=dry_run)

    def drop(self, model: str, slice: str | None = None) -> Dropped:  # noqa: A002 - what it is
        """Drop a model's table, or a slice, as a new snapshot: ``project.drop("orders")``.

        Earlier snapshots keep the rows. Of a step that writes files what is recorded is
        forgotten, and the files stay. Raises TableNotFound and ArgumentError for what is not
        there. A slice is called as `status` shows it; of a model by time it may also be some of the
        intervals. Of a model that is gone its name, or that of its table, is meant.
        """
        return maintaining.drop_table(self._context, model, slice)

    def prune(self, *, dry_run: bool = False) -> Pruned:
        """Remove old records and logs of runs, as `[run]` and `[logs]` say: ``project.prune()``.

        The latest of each slice stays. What cannot be removed is named in the result, and stops
        nothing; with ``dry_run`` nothing is removed. Starts no Spark.
        """
        return maintaining.prune_records(self._context, dry_run=dry_run)
