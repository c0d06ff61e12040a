"""Repeat past runs: plan what failed in them, and make steps once more beside their tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

from penstock.errors import ArgumentError
from penstock.project.past_runs import find_run_id, list_runs
from penstock.project.planning import plan_with_reasons
from penstock.project.states import select_names
from penstock.project.table_history import SAMPLES
from penstock.settings.environment_tables import is_of_another

if TYPE_CHECKING:
    from penstock.engine.planning.plan import Plan
    from penstock.engine.planning.retry import PastPlan
    from penstock.engine.planning.slices import RunRequest
    from penstock.engine.state.records import RunRecord, SliceRecord, StepRecord
    from penstock.engine.verifying.reproduce import Reproduction
    from penstock.model.definition.model import Model
    from penstock.project.context import ProjectContext


_MOST_RUNS = 10_000  # that are retried together


def plan_retry(
    context: ProjectContext, run: str = "last", *, inputs: str = "latest"
) -> tuple[ProjectContext, Plan]:
    """Plan the part of a run that failed.

    Args:
        context: The project.
        run: A run as in `describe_run`.
        inputs: Must be ``latest``: a retry reads its inputs as they are now.

    Returns:
        The context that the plan is of, and the plan.

    Raises:
        ArgumentError: The run is still running, or its plan is not recorded.
    """
    if inputs != "latest":
        raise ArgumentError(
            f"a retry reads its inputs as they are now, not {inputs!r}",
            hint="leave out inputs, or say latest",
        )
    run_id = find_run_id(context, run)
    past = _past_plan(context, run_id)
    if isinstance(past, str):
        raise ArgumentError(past, hint="run what is missing: penstock run")
    context = _with_tables_of(context, [past])
    return context, _retry(context, [past], past.plan.request, run_id)


def plan_retries(
    context: ProjectContext,
    models: Sequence[str],
    *,
    since: str | datetime = "24h",
    select: str | Sequence[str] | None = None,
    exclude: str | Sequence[str] | None = None,
) -> tuple[ProjectContext, Plan]:
    """Plan the failed parts of all runs that failed or were killed.

    Args:
        context: The project.
        models: Models in the selection language; none for all.
        since: An age such as ``24h``, or a time.
        select: More models.
        exclude: Models to leave out.

    Returns:
        The context that the plan is of, and the plan.

    Raises:
        ArgumentError: An argument is wrong.
    """
    from penstock.engine.planning.run_arguments import selection_of
    from penstock.engine.planning.slices import RunRequest

    failed = list_runs(context, failed=True, since=since, limit=_MOST_RUNS)
    pasts = [_past_plan(context, run.run_id) for run in failed]
    found = [each for each in pasts if not isinstance(each, str)]
    last = max(found, key=lambda each: each.began, default=None)
    request = RunRequest() if last is None else last.plan.request
    if len(found) > 1:
        request = replace(request, range=None, partition=None)
    selection, _ = selection_of(models, select, exclude, None, context.models)
    names: frozenset[str] | None = None
    if selection:
        names = select_names(context, selection)
    said = tuple(each for each in pasts if isinstance(each, str))
    context = _with_tables_of(context, found)
    plan = _retry(context, found, request, None if last is None else last.run_id, names)
    return context, replace(plan, notices=(*said, *plan.notices))


def _retry(
    context: ProjectContext,
    pasts: Sequence[PastPlan],
    request: RunRequest,
    retry_of: str | None,
    names: frozenset[str] | None = None,
) -> Plan:
    from penstock.engine.planning.plan import Plan
    from penstock.engine.planning.retry import INPUTS, goal_of, left_of

    by_name = {model.name: model for model in context.models}
    left = left_of(pasts, by_name, partial(_published, context))
    if names is not None:
        kept = {name: of for name, of in left.slices.items() if name in names}
        left = replace(left, slices=kept)
    if not left.slices:
        nothing = "nothing is left to do: what was to be made is made"
        return Plan((), request, notices=(nothing, *left.notices), retry_of=retry_of)
    plan = plan_with_reasons(context, left.request(request), goal_of(left))
    notices = (INPUTS, *left.notices, *plan.notices)
    return replace(plan, notices=notices, retry_of=retry_of)


def _with_tables_of(context: ProjectContext, pasts: Sequence[PastPlan]) -> ProjectContext:
    """Return the context with tables of the environment for what its past runs were to build."""
    if context.own_models is None:
        return context
    names = {step.step for past in pasts for step in past.plan.steps if step.slices}
    return context.with_own(names & set(context.own_models.by_name))


def _past_plan(context: ProjectContext, run_id: str) -> PastPlan | str:
    """The plan of a run and how its steps ended, or why it cannot be retried."""
    from penstock.engine.answers.runs import past_run
    from penstock.engine.planning.recorded_plan import RecordedPlan
    from penstock.engine.planning.retry import PastPlan
    from penstock.engine.state.run_history import recorded
    from penstock.engine.state.store import State

    known = [
        State(catalog).read(partial(recorded, run_id=run_id), None)
        for catalog in context.existing_catalogs().values()
    ]
    of = [each for each in known if each is not None]
    run, steps = of[0].run, tuple(step for each in of for step in each.steps)
    if past_run(run, "", {}).state == "running":
        return f"run {run_id} is running: there is nothing to retry yet"
    if _is_of_another(context, run, steps):
        return f"run {run_id} is of another environment, whose tables it made"
    if run.plan is None:
        return f"run {run_id} cannot be retried: an earlier version ran it, without its plan"
    return PastPlan(run_id, run.started_at, RecordedPlan.parse(run.plan), run.args, steps)


def _is_of_another(context: ProjectContext, run: RunRecord, steps: Sequence[StepRecord]) -> bool:
    """Return whether a run made another environment's tables; of old runs by their names."""
    if run.environment is not None:
        return run.environment.suffix != context.settings.runs_in.suffix
    of_another = partial(
        is_of_another,
        own=context.settings.own_tables,
        suffixes=context.settings.suffixes,
        tables=[model.target.qualified for model in context.models],
    )
    return bool(steps) and all(of_another(step.target) for step in steps)


def _published(context: ProjectContext, model: Model) -> Sequence[SliceRecord]:
    """The records of a model's slices that no rollback has undone."""
    from penstock.engine.state.store import State

    catalog = context.catalog(model.target.lake)
    records = [] if catalog is None else State(catalog).slices(model.target.qualified)
    return [each for each in records if each.rolled_back is None]


def reproduce_run(
    context: ProjectContext,
    run: str,
    step: str | None = None,
    *,
    partition: str | None = None,
    samples: int = SAMPLES,
) -> Reproduction:
    """Repeat the steps of a run from their inputs as they were, and compare the rows.

    Args:
        context: The project.
        run: An id, a part with which exactly one id begins or ends, or ``last``.
        step: The only step to repeat.
        partition: The only slice of the step to repeat.
        samples: The largest number of rows of each kind of difference.

    Returns:
        The differences. A step that cannot be repeated as it was is refused, with the reason.

    Raises:
        ArgumentError: The run has no such step.
    """
    from penstock.engine.state import run_history
    from penstock.engine.state.store import State
    from penstock.engine.verifying.reproduce import Reproducer, Reproduction, chosen

    catalogs = context.existing_catalogs()
    run_id = find_run_id(context, run)
    name = _step_name(context, step) if step is not None else None
    ask = partial(run_history.recorded, run_id=run_id)
    known = {lake: State(catalog).read(ask, None) for lake, catalog in catalogs.items()}
    found = {lake: (of, chosen(of.steps, name, partition)) for lake, of in known.items() if of}
    if not any(steps for _, steps in found.values()):
        what = "step" if name is None else " ".join(filter(None, (name, partition)))
        raise ArgumentError(
            f"run {run_id} has no {what}", hint=f"penstock runs show {run_id} says what it made"
        )
    lakes = {lake: context.lake(lake) for lake in catalogs}
    reproducer = Reproducer(
        context.settings, context.loaded, lakes, context.session, context.sink, samples
    )
    return Reproduction(
        run_id,
        tuple(
            reproducer.reproduced(each, lake, of)
            for lake, (of, steps) in found.items()
            for each in steps
        ),
    )


def _step_name(context: ProjectContext, step: str) -> str:
    """The name of a model, as users may call it; that of a model that is gone as it is."""
    try:
        return context.model(step).name
    except ArgumentError:
        return step
