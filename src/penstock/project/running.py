"""Run plans: of a request, of a saved plan, and of a range to rebuild."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.errors import ArgumentError, LakeError
from penstock.events import Event, EventSink, Notice
from penstock.project.planning import find_missing_columns, plan_with_reasons, require_same_plan
from penstock.project.states import models_in_state, select_words

if TYPE_CHECKING:
    from penstock.engine.planning.plan import Plan
    from penstock.engine.planning.restate import Restated
    from penstock.engine.planning.run_arguments import Fired
    from penstock.engine.planning.slices import Partition, RunRequest
    from penstock.engine.results import RunResult
    from penstock.model.lineage.models import ProjectLineage
    from penstock.project.context import ProjectContext
    from penstock.scheduler.values import Firing


@dataclass(frozen=True, slots=True)
class RunSettings:
    """Settings of how a plan is carried out.

    Attributes:
        jobs: The number of steps side by side; None to go by cores.
        on_event: Receives the events of the run; None for the progress of a terminal.
        new_catalog: Create a catalog beside the files of a lake that has lost its own.
        wait: Wait for slices that another run is building.
        notifies: Notify those whom the project's settings name.
        run_id: The id of the run; None for a new one.
        cancelled: Stops the run when another thread sets it.
        firing: The firing of which this is a run; None of a run that a person asks for.
    """

    jobs: int | None = None
    on_event: EventSink | None = None
    new_catalog: bool = False
    wait: bool = True
    notifies: bool = True
    run_id: str | None = None
    cancelled: threading.Event | None = None
    firing: Firing | None = None


def run_request(
    context: ProjectContext,
    request: RunRequest,
    plan: Plan | str | Path | None = None,
    settings: RunSettings = RunSettings(),
) -> RunResult:
    """Run the steps of a request in their order.

    Args:
        context: The project, as `build_request` returns it.
        request: The request.
        plan: A saved plan, or its file, to run as it is; the request then has no option.
        settings: How the plan is carried out.

    Returns:
        The result of each step.

    Raises:
        ArgumentError: The request has options beside a saved plan.
        PlanMoved: What a saved plan was built from has changed.
    """
    if plan is None:
        return execute_plan(context, plan_with_reasons(context, request), settings)
    from penstock.engine.planning.saved_plan import require_alone

    require_alone(request)
    return execute_plan(context, require_same_plan(context, plan), settings)


def preview_restatement(
    context: ProjectContext,
    model: str,
    from_: Partition | None = None,
    to: Partition | None = None,
    *,
    downstream: bool = False,
) -> tuple[Restated, ...]:
    """Return what a restatement would do. Starts Spark to count the rows that are there now.

    Args:
        context: The project.
        model: A model, or with ``downstream`` a table that others write.
        from_: The first slice.
        to: The last slice.
        downstream: Rebuild what reads the model as well.

    Returns:
        The steps with their rows.

    Raises:
        ArgumentError: The model cannot be restated.
    """
    from penstock.engine.planning.restate import restated

    context, plan = plan_restatement(context, model, from_, to, downstream=downstream)
    columns = {name: each.partition_column for name, each in context.settings.lakes.items()}
    return restated(plan, context.lakes(plan.lakes), columns)


def plan_restatement(
    context: ProjectContext,
    model: str,
    from_: Partition | None,
    to: Partition | None,
    *,
    downstream: bool,
    fire_time: Fired | None = None,
) -> tuple[ProjectContext, Plan]:
    """Plan to rebuild the slices of a range.

    Args:
        context: The project.
        model: A model, or with ``downstream`` a table that others write.
        from_: The first slice.
        to: The last slice.
        downstream: Rebuild what reads the model as well.
        fire_time: The time that the run is for.

    Returns:
        The context that the plan is of, and the plan.

    Raises:
        ArgumentError: The model cannot be restated.
    """
    from penstock.engine.planning.ranges import SliceRange
    from penstock.engine.planning.restate import Root, goal_of
    from penstock.engine.planning.run_arguments import fired
    from penstock.engine.planning.slices import RunRequest

    slice_range = SliceRange.of(from_, to, every=True) if from_ or to else None
    external = next((each for each in context.externals if each.is_called(model)), None)
    context = context.with_own(() if external else [context.model(model).name])
    root = Root.of(external, context.models) if external else Root.at(context.model(model))
    select = root.select(context.graph, downstream=downstream)
    if context.own_models is not None:  # what another environment made stays as it is
        select = tuple(name for name in select if context.model(name).own)
        if not select:
            raise ArgumentError(
                f"this environment has no table of its own that {model} is, or that reads it",
                hint=f"make one first: penstock run {model}",
            )
    root.require(slice_range, downstream=downstream)
    request = RunRequest(
        select=select,
        fire_time=fired(fire_time),
        trigger="restate",
        range=slice_range,
    )
    return context, plan_with_reasons(context, request, goal_of(root))


@contextmanager
def _open_sinks(
    context: ProjectContext, run: RunSettings, notices: list[Notice], *, builds: bool
) -> Iterator[EventSink]:
    """Open progress, the log, OpenLineage and notifications as one list of sinks.

    Each event goes to all of them, and each notice once. A run that ``builds`` nothing has no log,
    and OpenLineage has no events of it.
    """
    from penstock.engine.state.run_log import RunLog
    from penstock.sinks.progress.live import showing

    settings, sinks = context.settings, list[EventSink]()

    def send(event: Event) -> None:
        if isinstance(event, Notice):
            if event in notices:  # the same of each batch of a step
                return
            notices.append(event)
        for sink in sinks:
            sink(event)

    with ExitStack() as stack:
        live = not (builds and context.connections.draws_bars())
        progress = stack.enter_context(showing(run.on_event, live=live))
        if builds and settings.retention.directory is not None:
            log = RunLog(settings.retention.directory, settings.retention.logs, send)
            sinks.append(stack.enter_context(closing(log)))
        sinks.append(progress)  # behind the log, which has each event even if a caller's sink fails
        if builds and (to := settings.open_lineage) is not None:
            from penstock.sinks.open_lineage import Emitter, client_of

            lineage, client = partial(column_lineage, context), client_of(to)
            models = context.by_name
            sinks.append(Emitter(settings, to.namespace, models, lineage, client, send, run.firing))
        if run.notifies and settings.notify:
            from penstock.sinks.notify import Notifier, notify_after_run

            notifier = Notifier.of(settings, partial(select_words, context))
            failing = partial(models_in_state, context, "failed")
            sinks.append(stack.enter_context(notify_after_run(notifier, failing, send)))
        yield send


def execute_plan(
    context: ProjectContext, plan: Plan, settings: RunSettings = RunSettings()
) -> RunResult:
    """Run a plan. Its events go to the sinks of the project.

    Args:
        context: The project.
        plan: The plan.
        settings: How the plan is carried out.

    Returns:
        The result of each step.
    """
    from penstock.engine.planning.definition_diff import changes_of_tests
    from penstock.engine.planning.no_op import all_waits, idle_run, is_idle
    from penstock.engine.planning.run_arguments import require_jobs
    from penstock.engine.results import StaleSlices

    require_jobs(settings.jobs)
    notices: list[Notice] = []
    with _open_sinks(context, settings, notices, builds=not is_idle(plan)) as send:
        for step in plan.steps:
            context.require_own(step.model.target)
        if is_idle(plan):
            result = idle_run(plan, send, settings.run_id)
        else:
            if missing := find_missing_columns(context, plan):
                from penstock.engine.verifying.column_check import require_columns

                require_columns(missing)
            from penstock.engine.running.run import run_plan

            result = run_plan(
                plan,
                settings=context.settings,
                lakes=context.lakes(plan.lakes, new_catalog=settings.new_catalog),
                session=None if all_waits(plan) else context.session(send),
                sink=send,
                jobs=settings.jobs or context.connections.steps_at_once(),
                waits=settings.wait,
                run_id=settings.run_id,
                cancelled=settings.cancelled,
            )
    result = replace(result, notices=tuple(notices))
    with suppress(LakeError):  # the catalog itself may be what is gone
        changes = changes_of_tests([step.model for step in plan.steps], context.state_of)
        untested = (StaleSlices(c.model, c.slices or 0, c.rebuild or "") for c in changes)
        return replace(result, untested=tuple(untested))
    return result


def column_lineage(context: ProjectContext) -> ProjectLineage:
    """Return the columns of all models with what each derives from directly."""
    context.connections.check_open()
    return context.lineage()[0]
