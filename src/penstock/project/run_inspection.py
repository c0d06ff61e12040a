"""Inspect the past runs of a project: lists of them, and what is known of each.

The part of the Python API that answers what happened, and changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING

from penstock.errors import ArgumentError
from penstock.project.inspection import Inspection
from penstock.settings.durations import is_duration, seconds_of
from penstock.settings.environment_tables import is_of_another

if TYPE_CHECKING:
    from penstock.engine.answers.runs import PastRuns, RunDetail, RunLogLines
    from penstock.engine.answers.why import Why
    from penstock.engine.planning.make_plan import Planner
    from penstock.engine.planning.plan import Plan
    from penstock.engine.planning.retry import PastPlan
    from penstock.engine.planning.slices import RunRequest
    from penstock.engine.results import ModelStatus, SliceStatus
    from penstock.engine.state.records import RunRecord, SliceRecord, StepRecord
    from penstock.lake.catalog.catalog import Catalog
    from penstock.model.definition.model import Model

_MOST_RUNS = 10_000  # that are retried together
LAST_RUNS = 20  # that a list shows


def moment_since(since: str | datetime | None, now: datetime | None = None) -> datetime | None:
    """The moment that ``24h`` before now, or a time with its zone, is. Raises ArgumentError."""
    from penstock.engine.planning.run_arguments import fired

    if isinstance(since, str) and is_duration(since):
        return (now or datetime.now(UTC)) - timedelta(seconds=seconds_of(since))
    try:
        return None if since is None else fired(since)
    except ArgumentError as error:
        if "time zone" in error.message:
            raise
        raise ArgumentError(
            f"{str(since)!r} is neither an age nor a time",
            hint='write an age, such as "24h" or "7d", or a time: 2026-11-27T22:00Z',
        ) from None


def _state(status: ModelStatus, known: SliceStatus | None, partition: str | None) -> str:
    if known is not None:
        return known.state
    return status.state if partition is None else "missing"


class RunInspection(Inspection):
    """Questions about past runs. `Project` is its class for users."""

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
        from penstock.engine.answers.runs import past_runs
        from penstock.engine.state.run_history import AskedRuns

        target = None if model is None else self.model(model).target
        asked = AskedRuns(
            limit,
            moment_since(since),
            failed,
            None if target is None else target.qualified,
            None if all_environments else self.settings.runs_in.suffix,
        )
        return past_runs(self._catalogs(), asked, None if target is None else target.lake)

    def past_run(self, run: str = "last") -> RunDetail:
        """All that is known of a run: ``project.past_run("last").steps``. Starts no Spark.

        ``run`` is an id, a part that only one begins or ends with, or ``last``. Raises
        ArgumentError.
        """
        from penstock.engine.answers.runs import run_detail
        from penstock.engine.state.run_log import log_of

        catalogs, directory = self._catalogs(), self.settings.retention.directory
        detail = run_detail(catalogs, self._run_id(run))
        if directory is None:
            return detail
        return detail.with_log(log_of(directory, detail.run.run_id))

    def log(self, run: str = "last") -> RunLogLines:
        """The log of a run, or of the last run of a model: ``project.log("orders").lines``.

        ``run`` is as in `past_run`, or a model, of which the lines of its own steps are meant.
        Raises ArgumentError where there is none on this machine.
        """
        from penstock.engine.answers.logs import find_log
        from penstock.engine.answers.runs import RunLogLines, no_log

        directory = self.settings.retention.directory
        model = next((each for each in self.models if each.name == run), None)
        path = None if model is not None else find_log(directory, run)
        if path is not None:
            return RunLogLines(path, None)
        if model is None:
            with suppress(ArgumentError):
                model = self.model(run)
        if model is None:
            try:
                run_id = self._run_id(run)
            except ArgumentError as error:
                error.hint = f"{error.hint}; a model is named as penstock status has it"
                raise
            raise no_log(self._catalogs(), run_id)
        runs = self.runs(model.name, limit=1)
        if not runs:
            raise ArgumentError(f"no run of {model.name} is recorded", hint="penstock run makes it")
        path = find_log(directory, runs[0].run_id)
        if path is None:
            raise no_log(self._catalogs(), runs[0].run_id)
        return RunLogLines(path, model.name)

    def why(self, model: str, partition: str | None = None) -> Why:
        """Explain the state of a table, or of a slice: ``project.why("orders").made``.

        Which run made it and for what reason, what it was made from, what a run would do now and
        why, what that waits for, who is making it, who reads it. Starts no Spark. Raises
        ArgumentError, and PartitionError for a slice that the model cannot have.
        """
        from penstock.engine.answers.why import Why, chosen, history, now, waits
        from penstock.engine.planning.plan import without_slices
        from penstock.model.time.slice import Part, Slice

        shown = self.model(model)
        if partition is not None and not shown.slicing and shown.by_time is None:
            raise without_slices(shown.name, partition)
        status = self.status(shown.name)[0]
        plan = self.plan(shown.name, partition=partition)
        step = next((each for each in plan.steps if each.name == shown.name), None)
        slice_: Slice | None = None
        if partition is not None:
            slice_ = Part(partition) if shown.partition is not None else None
            if step is not None and step.slices and shown.by_time is not None:
                slice_ = step.slices[0]
        text = None if slice_ is None else str(slice_)
        known = chosen(status.slices, text)
        until = waits(step)
        makers = {str(each.target): each for each in self.models}
        of = history(shown, slice_, self._catalogs(), makers)
        return Why(
            model=shown.name,
            table=str(shown.target),
            slice=text,
            state=_state(status, known, partition),
            reason=None if known is None else known.reason,
            made=of.made,
            tried=of.tried,
            inputs=of.inputs,
            now=tuple(now(step, slice_)),
            waits_for=until["waiting"],
            held_by=until["held"],
            readers=self.graph.children()[shown.name],
        )

    def retry_plan(self, run: str = "last", *, inputs: str = "latest") -> Plan:
        """Return what `Project.retry` would do: ``project.retry_plan("last").steps``.

        Starts no Spark. Raises ArgumentError for a run that goes on, or whose plan is not recorded.
        """
        if inputs != "latest":
            raise ArgumentError(
                f"a retry reads its inputs as they are now, not {inputs!r}",
                hint="leave out inputs, or say latest",
            )
        run_id = self._run_id(run)
        past = self._past_plan(run_id)
        if isinstance(past, str):
            raise ArgumentError(past, hint="run what is missing: penstock run")
        self._make_own_of([past])
        return self._retry([past], past.plan.request, run_id)

    def retry_failed_plan(
        self,
        *models: str,
        since: str | datetime = "24h",
        select: str | Sequence[str] | None = None,
        exclude: str | Sequence[str] | None = None,
    ) -> Plan:
        """Return what `Project.retry_failed` would do: ``project.retry_failed_plan().steps``."""
        from penstock.engine.planning.run_arguments import selection_of
        from penstock.engine.planning.slices import RunRequest

        failed = self.runs(failed=True, since=since, limit=_MOST_RUNS)
        pasts = [self._past_plan(run.run_id) for run in failed]
        found = [each for each in pasts if not isinstance(each, str)]
        last = max(found, key=lambda each: each.began, default=None)
        request = RunRequest() if last is None else last.plan.request
        if len(found) > 1:
            request = replace(request, range=None, partition=None)
        selection, _ = selection_of(models, select, exclude, None, self.models)
        names: frozenset[str] | None = None
        if selection:
            by_name = {model.name: model for model in self.models}
            names = selection.of(by_name, self.graph, self._in_state).names
        said = tuple(each for each in pasts if isinstance(each, str))
        self._make_own_of(found)
        plan = self._retry(found, request, None if last is None else last.run_id, names)
        return replace(plan, notices=(*said, *plan.notices))

    def _retry(
        self,
        pasts: Sequence[PastPlan],
        request: RunRequest,
        retry_of: str | None,
        names: frozenset[str] | None = None,
    ) -> Plan:
        from penstock.engine.planning.plan import Plan
        from penstock.engine.planning.retry import INPUTS, left_of, planner_of

        by_name = {model.name: model for model in self.models}
        left = left_of(pasts, by_name, self._published)
        if names is not None:
            kept = {name: of for name, of in left.slices.items() if name in names}
            left = replace(left, slices=kept)
        if not left.slices:
            nothing = "nothing is left to do: what was to be made is made"
            return Plan((), request, notices=(nothing, *left.notices), retry_of=retry_of)
        plan = self._reasoned(left.request(request), planner_of(left))
        notices = (INPUTS, *left.notices, *plan.notices)
        return replace(plan, notices=notices, retry_of=retry_of)

    def _run_id(self, text: str) -> str:
        """The id of the run that a text names; ``last`` is of those that `runs` lists."""
        from penstock.engine.answers.runs import run_id_of

        return run_id_of(self._catalogs(), text, self.settings.runs_in.suffix)

    def _make_own_of(self, pasts: Sequence[PastPlan]) -> None:
        """Let the environment make the tables that past runs of it were to make."""
        if self._own_models is not None:
            names = {step.step for past in pasts for step in past.plan.steps if step.slices}
            self._make_own(names & set(self._own_models.by_name))

    def _past_plan(self, run_id: str) -> PastPlan | str:
        """The plan of a run and how its steps ended, or why it cannot be retried."""
        from penstock.engine.answers.runs import past_run
        from penstock.engine.planning.recorded_plan import RecordedPlan
        from penstock.engine.planning.retry import PastPlan
        from penstock.engine.state.run_history import recorded
        from penstock.engine.state.store import State

        known = [
            State(catalog).read(partial(recorded, run_id=run_id), None)
            for catalog in self._catalogs().values()
        ]
        of = [each for each in known if each is not None]
        run, steps = of[0].run, tuple(step for each in of for step in each.steps)
        if past_run(run, "", {}).state == "running":
            return f"run {run_id} is running: there is nothing to retry yet"
        if self._is_of_another(run, steps):
            return f"run {run_id} is of another environment, whose tables it made"
        if run.plan is None:
            return f"run {run_id} cannot be retried: an earlier version ran it, without its plan"
        return PastPlan(run_id, run.started_at, RecordedPlan.parse(run.plan), run.args, steps)

    def _is_of_another(self, run: RunRecord, steps: Sequence[StepRecord]) -> bool:
        """Return whether a run made another environment's tables; of old runs by their names."""
        if run.environment is not None:
            return run.environment.suffix != self.settings.runs_in.suffix
        of_another = partial(
            is_of_another,
            own=self.settings.own_tables,
            suffixes=self.settings.suffixes,
            tables=[model.target.qualified for model in self.models],
        )
        return bool(steps) and all(of_another(step.target) for step in steps)

    def _published(self, model: Model) -> Sequence[SliceRecord]:
        """The records of a model's slices that no rollback has undone."""
        from penstock.engine.state.store import State

        catalog = self._catalog(model.target.lake)
        records = [] if catalog is None else State(catalog).slices(model.target.qualified)
        return [each for each in records if each.rolled_back is None]

    def _reasoned(self, request: RunRequest, planner: Planner | None = None) -> Plan:
        """The plan of a request with why each slice is made, which the run records."""
        from penstock.engine.planning.no_op import is_idle

        known = self._plan_known(request, restates=planner is not None or request.changed)
        plan = self._planned(request, planner, known)
        if is_idle(plan):
            return plan
        from penstock.engine.planning.reasons import with_reasons

        return with_reasons(plan, known)

    def _catalogs(self) -> dict[str, Catalog]:
        """The catalogs that exist, by the names of their lakes."""
        self._connections.check_open()
        known = ((name, self._catalog(name)) for name in self.settings.lakes)
        return {name: catalog for name, catalog in known if catalog is not None}
