"""Make the plan of a run from what was asked for and what the catalogs know. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC
from functools import partial

from penstock.destinations.capabilities import refusals
from penstock.engine.planning.goals import (
    NOT_NEEDED,
    Goal,
    chains_of,
    finished,
    first_of_others,
    of_moment,
    of_range,
    step_of,
)
from penstock.engine.planning.intervals import IntervalHistory, ModelIntervals, start_above
from penstock.engine.planning.needed import NeededSlice
from penstock.engine.planning.plan import Known, Plan, PlannedStep, PlanningContext
from penstock.engine.planning.plan_notices import notices_of, with_lagging
from penstock.engine.planning.reasons import left_stale
from penstock.engine.planning.restatement_scope import (
    Cascade,
    by_cron,
    cascade,
    why_kept,
)
from penstock.engine.planning.run_arguments import args_of, check_arguments
from penstock.engine.planning.slices import (
    RunRequest,
    tops_of,
)
from penstock.engine.planning.up_to_date import without_up_to_date
from penstock.engine.planning.waiting import (
    Completed,
    complete,
)
from penstock.errors import ArgumentError, PartitionError
from penstock.model.definition.graph import Graph, makers_of
from penstock.model.definition.model import Model
from penstock.model.project.not_models import FIRST_MODEL
from penstock.model.time.partition import TIME_KINDS, value_from
from penstock.model.time.slice import Slice

First = Mapping[str, Mapping[Slice, NeededSlice]]


def make_plan(
    models: Mapping[str, Model],
    graph: Graph,
    request: RunRequest,
    known: Known | None = None,
    goal: Goal | None = None,
) -> Plan:
    """Make the plan of a request.

    Args:
        models: The models of the project, by their names.
        graph: Their graph.
        request: The request.
        known: What the catalogs know; nothing by default.
        goal: Maps the states of slices to steps; None for the goal of the request.

    Returns:
        The plan.

    Raises:
        ArgumentError: The request is wrong.
        PartitionError: A slice of the request is wrong.
    """
    if not models:
        raise ArgumentError("the project has no model to run", hint=FIRST_MODEL)
    if request.fire_time.tzinfo is None:
        raise ArgumentError(
            f"fire_time {request.fire_time} has no time zone",
            hint="give one: datetime.now(UTC), or fire_time.replace(tzinfo=ZoneInfo(...))",
        )
    order, known = graph.order(), known or Known()
    selected = request.selection.of(
        models, graph, partial(_in_state, models, graph, request, known, goal)
    )
    if selected.idle is not None:
        one = request.range is None and any(model.partition for model in models.values())
        return Plan((), request, notices=(f"{selected.idle}{OF_MOMENT if one else ''}",))
    chosen, unvalued = _chosen(selected.names, models, graph, request)
    roots = chosen
    if request.changed:  # with what reads them
        below = frozenset(name for each in roots for name in graph.downstream(each))
        below -= selected.excluded
        if request.range is not None:  # nothing but a change asks for them
            below = frozenset(n for n in below if not models[n].strategy.may_repeat)
        chosen |= frozenset(n for n in below if models[n].strategy.runs and models[n].own)
    steps = [models[name] for name in order if name in chosen]
    if not all(map(known.can_make, steps)):
        raise next(refusals(steps, known.destinations))
    check_arguments(models.values(), request.args)
    args = args_of(steps, request)
    lines = _lines(models, graph, steps, request, known)
    context = PlanningContext(
        request, [models[name] for name in order], graph, steps, args, known, lines
    )
    context = replace(context, roots=roots, excluded=selected.excluded)
    if goal is None:
        context = replace(context, cascade=_by_themselves(context))
    planned = with_lagging(_planned(context, goal), context)
    notices = (*unvalued, *notices_of(planned, context))
    makers = makers_of(models.values())
    stale = left_stale(planned, known)
    return Plan(tuple(planned), request, args, notices, makers, known.edges, stale=stale)


def _planned(context: PlanningContext, goal: Goal | None) -> list[PlannedStep]:
    """Return the steps of a goal; without one those of the request, and nothing up to date."""
    if goal is not None:
        return _completed(goal(context), context).steps
    goal = of_moment if context.request.range is None else of_range
    completed = _completed(goal(context), context)
    while (first := _joined(context.first, completed.added)) != context.first:
        context = replace(context, first=first)  # others that read it may have to be made, too
        completed = _completed(goal(context), context)
    return without_up_to_date(completed.steps, context, lambda step: finished(step, context))


def _joined(first: First, added: First) -> First:
    return {name: {**first.get(name, {}), **added.get(name, {})} for name in {**first, **added}}


def _in_state(  # noqa: PLR0917 - `make_plan`'s own arguments, and the word
    models: Mapping[str, Model],
    graph: Graph,
    request: RunRequest,
    known: Known,
    goal: Goal | None,
    word: str,
) -> frozenset[str]:
    """Return the models of which the request looks at a slice in this state."""
    # Late: only ``state:`` asks.
    from penstock.engine.planning.selected_states import in_state

    ordered = [models[name] for name in graph.order()]
    made = [model for model in ordered if model.strategy.runs]
    request = replace(request, select=(), exclude=(), to=(), full_refresh=False, changed=False)
    lines = _lines(models, graph, made, request, known)
    context = PlanningContext(request, ordered, graph, made, {}, known, lines)
    chains_ = chains_of(ordered, {model.name for model in made})
    plan = partial(make_plan, models, graph, request, known, goal)
    return in_state(word, context, chains_, plan)


def _completed(planned: Sequence[PlannedStep], context: PlanningContext) -> Completed:
    """Return the steps with what they need first. Of models that are not selected only that."""
    moment = context.request.fire_time.astimezone(UTC)
    names = {model.name for model in context.steps}
    above = {name for model in context.steps for name in context.graph.upstream(model.name)}
    # Of the steps and what they read only: to find edges takes a look at a query.
    has_edges = any(context.known.edges.get(name) for name in (*names, *above))
    if not has_edges and not context.known.old_tables(moment):
        return Completed(list(planned))
    known = {step.name: step for step in planned} | first_of_others(context)
    added = above - names - context.excluded if context.request.upstream else set[str]()
    if added:
        added = {m.name for m in context.order if m.name in added and m.strategy.runs and m.own}
        steps = [m for m in context.order if m.name in names | added]
        context = replace(context, steps=steps, args=args_of(steps, context.request))
    every = [known.get(m.name) or PlannedStep(m, (), skipped=NOT_NEEDED) for m in context.steps]
    found = complete(
        every,
        context,
        lambda model, slices: step_of(model, slices, context),
        lambda step: finished(step, context),
    )
    kept = [step for step in found.steps if step.name in names or step.slices]
    if added:
        within = replace(context, steps=[step.model for step in kept])
        kept = [replace(step, after=within.after(step.model)) for step in kept]
    return replace(found, steps=kept)


OF_MOMENT = ": without --from and --to, one slice of each partitioned model is looked at"


def _by_themselves(context: PlanningContext) -> Cascade:
    """Return what ``auto_restatement_cron`` makes again in a run, with what reads it; in a range
    what definitions that have changed do.
    """
    if context.request.changed:
        # Late: few runs ask for it.
        from penstock.engine.planning.changed import changed_scope

        return changed_scope(context).reached
    request, names = context.request, {model.name for model in context.steps}
    autos = [model for model in context.order if model.auto_restatement is not None]
    other = request.range is not None or request.partition is not None or request.full_refresh
    if not autos or other:
        return Cascade()
    below = {name for model in autos for name in context.graph.downstream(model.name)}
    reached = [each for each in context.order if each in autos or each.name in below]
    if not any(model.name in names for model in reached):
        return Cascade()
    pasts = context.known.pasts(reached)
    waves = by_cron(autos, pasts, request.fire_time.astimezone(UTC))
    return cascade(reached, context.graph.parents, names, pasts, first=waves)


def _lines(
    models: Mapping[str, Model],
    graph: Graph,
    steps: Sequence[Model],
    request: RunRequest,
    known: Known,
) -> dict[str, ModelIntervals]:
    """Return what is known of the intervals of models by time. A table that is
    rebuilt has none.
    """
    timed = [model for model in steps if model.by_time is not None]
    painted = known.intervals(timed) if timed and not request.full_refresh else {}
    now = request.fire_time.astimezone(UTC)
    return {
        model.name: ModelIntervals(
            model.by_time,
            painted.get(model.name, IntervalHistory()),
            now,
            start_above(model, models, graph, now),
            why_kept(model),
        )
        for model in timed
        if model.by_time is not None
    }


def _with_steps(
    chosen: frozenset[str], models: Mapping[str, Model], graph: Graph
) -> frozenset[str]:
    """The chosen models that a run makes. Raises ArgumentError where only EMBEDDED ones are."""
    found = frozenset(name for name in chosen if models[name].strategy.runs)
    if chosen and not found:
        name = min(chosen)
        readers = [each for each in graph.downstream(name) if models[each].strategy.runs]
        raise ArgumentError(
            f"{name} is EMBEDDED: its query stands in its readers, and there is nothing to run",
            hint=f"run a reader: penstock run {readers[0]}" if readers else "no model reads it",
            location=models[name].place("kind"),
        )
    return found


def _chosen(
    names: frozenset[str], models: Mapping[str, Model], graph: Graph, request: RunRequest
) -> tuple[frozenset[str], tuple[str, ...]]:
    """Return the selected models that a run makes. Dynamic models that have no value are left out
    of a run of the whole project, with notices: only who names such a model can mean one of its
    values.
    """
    chosen = _with_steps(names, models, graph)
    if request.select or request.to:
        return chosen, ()
    known = [models[name] for name in chosen if models[name].partition is not None]
    by_time = any(model.partition and model.partition.kind in TIME_KINDS for model in known)
    without: list[Model] = []
    chains_ = chains_of([models[name] for name in graph.order()], chosen)
    upstream = graph.upstream if request.range is None else lambda _: ()  # no step has a value
    tops = {name: top for c in chains_ for name, top in tops_of(c, upstream).items()}
    for name, top in tops.items():
        model, spec = models[name], top.partition
        assert spec is not None, "a dynamic step has a partition"
        with suppress(PartitionError):
            if request.range is None and (
                (request.partition is not None and not by_time) or value_from(spec, request.inputs)
            ):
                continue
        without.append(model)
    left = chosen.difference(model.name for model in without)
    if not left:
        return chosen, ()
    return left, tuple(
        f"{model.name} is skipped: its dynamic partition has no value here; run it with "
        f"`penstock run {model.name} --partition VALUE`, or send the value in --payload"
        for model in sorted(without, key=lambda model: model.name)
    )
