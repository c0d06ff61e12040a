"""Goals of a plan: the steps that build what is due, one partition, or a range. Pure.

A goal maps the states of slices to steps. Restatements, changed definitions and retries have goals
of their own (`restate`, `changed`, `retry`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

from penstock.engine.planning.intervals import Due, IntervalHistory, ModelIntervals
from penstock.engine.planning.plan import Condition, PlannedStep, PlanningContext, count_of
from penstock.engine.planning.ranges import (
    Calendar,
    InRange,
    SliceRange,
    SliceStates,
    Tally,
    choose,
    choose_whole,
    idle,
    require_range,
)
from penstock.engine.planning.restatement_scope import (
    ModelRestatement,
    together,
    why_kept,
)
from penstock.engine.planning.slice_reason import Skip, SkipKind
from penstock.engine.planning.slices import (
    RunRequest,
    StepSlice,
    bindings_of,
    resolve_slices,
    value_of,
)
from penstock.engine.planning.up_to_date import redefined
from penstock.engine.planning.waiting import (
    following,
    may_touch,
    touched,
    with_more,
)
from penstock.errors import ArgumentError
from penstock.model.definition.graph import chains
from penstock.model.definition.model import Model
from penstock.model.script.constants import Bindings
from penstock.model.script.file_uris import path_of
from penstock.model.time.interval import Interval, minus, union
from penstock.model.time.moments import is_moment
from penstock.model.time.partition import Moment
from penstock.model.time.slice import WHOLE, Part, Slice
from penstock.model.time.time_range import TimeRange
from penstock.states import SliceState

Goal = Callable[[PlanningContext], list[PlannedStep]]


NOT_NEEDED = Skip(SkipKind.NOT_NEEDED, "nothing that the selected models need of it is missing")


def first_of_others(context: PlanningContext) -> dict[str, PlannedStep]:
    """Plan the slices of models that are not selected and that readers lack.

    Args:
        context: The plan.

    Returns:
        The steps, by the names of their models.
    """
    if not context.first:
        return {}
    names = {model.name for model in context.steps}
    unselected = (m for m in context.order if m.name in context.first and m.name not in names)
    return {
        m.name: _with_first(PlannedStep(m, (), skipped=NOT_NEEDED), context) for m in unselected
    }


def _with_first(step: PlannedStep, context: PlanningContext) -> PlannedStep:
    """Return a step with the slices of its model that readers lack."""
    more = context.first.get(step.name)
    if not more or step.blocked is not None:
        return step
    return with_more(step, more, lambda model, slices: step_of(model, slices, context))


def step_of(model: Model, slices: tuple[Slice, ...], context: PlanningContext) -> PlannedStep:
    """Plan slices of a model whatever is there; of a model by time in batches.

    Args:
        model: The model.
        slices: Its slices.
        context: The plan.

    Returns:
        The step.
    """
    after = context.after(model)
    if model.by_time is None:
        return finished(of_slices(model, slices, context), context)
    intervals = union(slice_ for slice_ in slices if isinstance(slice_, Interval))
    batches, apart = model.by_time.batches(intervals), None
    if len(batches) > 1:
        apart = _apart_by_time(model.by_time)
    return finished(PlannedStep(model, batches, after, apart=apart), context)


def _apart_by_time(by_time: TimeRange) -> str:
    size = by_time.batch_size
    return "each range of missing intervals" if size is None else f"batch_size is {size}"


def of_intervals(
    model: Model, line: ModelIntervals, due: Due, after: tuple[str, ...]
) -> PlannedStep:
    """Plan due intervals, with a slice for each evaluation of the query.

    Args:
        model: The model.
        line: Its intervals.
        due: Those that are due.
        after: The models that must have ended before.

    Returns:
        The step.
    """
    slices = line.by_time.batches(due.intervals)
    apart = _apart_by_time(line.by_time) if len(slices) > 1 else None
    late = line.out_of_order(slices[0]) if model.in_order and slices else None
    recorded_runs = line.painted.runs if due.lacking else None
    return PlannedStep(model, slices, after, late, due.idle, due.tally, apart, seen=recorded_runs)


def of_moment(context: PlanningContext) -> list[PlannedStep]:
    """Plan one slice of each model, of models by time all that are due, and what is restated.

    Args:
        context: The plan.

    Returns:
        The steps, in the order of the graph.
    """
    chains_ = chains_of(context.order, {model.name for model in context.steps})
    slices = resolve_slices(chains_, context.request, context.graph.upstream)
    planned, early = first_of_others(context), set[str]()
    for model in context.steps:
        after, run_slice = context.after(model), slices.get(model.name)
        skipped = _why_skipped(run_slice, [name for name in after if name in early])
        early |= {model.name} if skipped else set()
        restatement, line = context.cascade.again.get(model.name), context.lines.get(model.name)
        slices_of_run = (Part(run_slice.value) if run_slice else WHOLE,)
        if skipped is not None:
            step = PlannedStep(model, slices_of_run, after, skipped=skipped)
        elif restatement is not None:
            step = _restated(model, restatement, context, slices_of_run)
        elif line is not None:
            alone = not slices
            with _placed_at(model, "target"):
                due = _due(line, context.request.partition, alone)
                step = of_intervals(model, line, due, after)
        elif run_slice is not None and _takes_late(model, context.request):
            step = of_slices(model, together(*slices_of_run, *_behind(model, context)), context)
        else:
            step = PlannedStep(model, slices_of_run, after)
        step = _with_first(step, context)
        if line is not None and skipped is None and restatement is None:
            step = _with_touched(step, line, planned, context)
        planned[model.name] = finished(step, context)
    return [planned[model.name] for model in context.steps]


def _takes_late(model: Model, request: RunRequest) -> bool:
    return request.late or (model.late_run and request.partition is None)


def _behind(model: Model, context: PlanningContext) -> list[Slice]:
    """Return the slices of a partitioned model that are behind, where a run can take them back.

    Where only the model asks for them, and not the run, these are the slices with late rows.
    """
    states = context.known.slices([model]).get(model.name, SliceStates())
    if not states.remakes:
        return []
    behind = (text for text, state in states.items() if text and state == SliceState.BEHIND)
    return [Part(text) for text in behind if context.request.late or text in states.late]


def _with_touched(
    step: PlannedStep,
    line: ModelIntervals,
    above: Mapping[str, PlannedStep],
    context: PlanningContext,
) -> PlannedStep:
    """Add the intervals whose inputs are made in this run, to be made if these change.

    In a range these are the intervals within it. ``above`` are the steps before.
    """
    if step.blocked or not line.painted.remakes or not context.request.behind:
        return step
    catalogs = context.known
    inputs = {edge.upstream.name for edge in catalogs.edges.get(step.name, ())}
    if inputs.union(view.name for view in catalogs.views.get(step.name, ())).isdisjoint(above):
        return step
    intervals = union(slice_ for slice_ in step.slices if isinstance(slice_, Interval))
    units = list(line.by_time.units(minus(line.materialized(context.request.range), intervals)))
    reread = union(s for s in touched(step.model, units, above, context) if isinstance(s, Interval))
    if not reread:
        return step
    batches = line.by_time.batches(reread)
    slices = tuple(sorted((*(s for s in step.slices if isinstance(s, Interval)), *batches)))
    apart = _apart_by_time(line.by_time) if len(slices) > 1 else None
    step = replace(step, slices=slices, apart=apart, skipped=None)
    return step.decide(batches, condition=Condition.ROWS)


def _due(line: ModelIntervals, moment: Moment | None, alone: bool) -> Due:
    """Return what is due.

    A run for one partition makes the interval that contains its value again, even where it is up to
    date. A value that is not a moment is meant for the partitioned models of the run; where there
    are none (``alone``), it is an error.
    """
    if moment is None or not (alone or is_moment(moment, line.now)):
        return line.due()
    return line.of(SliceRange(moment, moment, all=True))


def _restated(
    model: Model,
    restatement: ModelRestatement,
    context: PlanningContext,
    slices_of_run: tuple[Slice, ...],
) -> PlannedStep:
    """Return what a run makes of a model anyhow, and what is restated of it."""
    if restatement.anew:
        return rebuilt(model, context, restatement.why)
    line = context.lines.get(model.name)
    if line is None:
        step = of_slices(model, together(*slices_of_run, *restatement.slices), context)
    else:
        intervals = tuple(slice_ for slice_ in restatement.slices if isinstance(slice_, Interval))
        step = of_intervals(model, line, line.due(intervals), context.after(model))
    return replace(step, again=restatement.why)


def rebuilt(model: Model, context: PlanningContext, reason: str) -> PlannedStep:
    """Plan a whole table from nothing; where its query reads by intervals, by all of them.

    Args:
        model: The model.
        context: The plan.
        reason: Why it is rebuilt.

    Returns:
        The step.
    """
    line = context.lines.get(model.name)
    if line is None:
        step = of_slices(model, (WHOLE,), context)
    else:
        line = replace(line, painted=IntervalHistory())
        step = of_intervals(model, line, line.due(), context.after(model))
    return replace(step, again=reason, anew=True)


def again_of(model: Model, restatement: ModelRestatement, context: PlanningContext) -> PlannedStep:
    """Plan what is there of a model once more.

    Args:
        model: The model.
        restatement: What is restated of it.
        context: The plan.

    Returns:
        The step; intervals are made in one commit.
    """
    if restatement.anew:
        return rebuilt(model, context, restatement.why)
    return replace(of_slices(model, restatement.slices, context), again=restatement.why)


def of_slices(model: Model, slices: tuple[Slice, ...], context: PlanningContext) -> PlannedStep:
    """Plan slices of a model that are made whatever they hold.

    Args:
        model: The model.
        slices: Its slices.
        context: The plan.

    Returns:
        The step.
    """
    apart = _why_apart(model, SliceRange(all=True), context) if len(slices) > 1 else None
    return PlannedStep(model, slices, context.after(model), apart=apart)


def of_range(context: PlanningContext) -> list[PlannedStep]:
    """Plan the slices of a range that are to be made.

    Args:
        context: The plan.

    Returns:
        The steps, in the order of the graph.

    Raises:
        ArgumentError: The request is wrong for a range, or no model has ranges.
    """
    request, lines, steps = context.request, context.lines, context.steps
    require_range(
        context.range,
        partition_too=request.partition is not None,
        full_refresh=request.full_refresh,
    )
    if not lines and all(model.partition is None for model in steps):
        raise ArgumentError(
            "no selected model is partitioned: there is no range to make",
            hint="leave out --from and --to, or select models that are partitioned or by time",
        )
    calendar = Calendar(context.range, request.fire_time, context.parents)
    planned = first_of_others(context)
    ranges = {model.name: calendar.of(model) for model in steps if model.partition is not None}
    states = context.known.slices(steps)
    redefined_names = redefined([model for model in steps if not model.slicing], context)
    for model in steps:
        states_of_model = states.get(model.name, SliceStates())
        if model.name in lines:
            step = _intervals_of_range(model, lines[model.name], planned, context)
        elif model.partition is not None:
            step = _slices_of_range(model, ranges[model.name], states_of_model, planned, context)
        else:
            step = _whole_of_range(
                model, states_of_model, planned, context, is_redefined=model.name in redefined_names
            )
        restatement = context.cascade.again.get(model.name)
        step = step if restatement is None else _with_again(step, restatement, context)
        planned[model.name] = finished(step, context)
    return [planned[model.name] for model in steps]


def _with_again(
    step: PlannedStep, restatement: ModelRestatement, context: PlanningContext
) -> PlannedStep:
    """Return a step of a range with what changed definitions rebuild of its model, wherever."""
    model = step.model
    if restatement.anew:
        return rebuilt(model, context, restatement.why)
    planned = () if step.skipped else step.slices
    step_with_more = step_of(
        model, together(*planned, *restatement.slices, spec=model.partition), context
    )
    tally = step.tally and replace(step.tally, to_make=count_of(model, step_with_more.slices))
    conditional = (
        step.conditional().intersection(step_with_more.slices).difference(restatement.slices)
    )
    step_with_more = replace(step_with_more, again=restatement.why, tally=tally)
    return step_with_more.decide(conditional, condition=Condition.ROWS)


def _intervals_of_range(
    model: Model, line: ModelIntervals, above: Mapping[str, PlannedStep], context: PlanningContext
) -> PlannedStep:
    with _placed_at(model, "start"):
        step = of_intervals(model, line, line.of(context.range), context.after(model))
        if step.blocked is not None:  # nothing is recorded of what was asked for in vain
            raise ArgumentError(f"{model.name}: {step.blocked}")
        step = _with_first(step, context)
        return step if context.range.all else _with_touched(step, line, above, context)


def _slices_of_range(
    model: Model,
    in_range: InRange,
    states: SliceStates,
    above: Mapping[str, PlannedStep],
    context: PlanningContext,
) -> PlannedStep:
    chosen, tally = choose(in_range, states, every=context.range.all)
    for_readers, reread = context.first.get(model.name, {}), frozenset[Slice]()
    if for_readers:
        chosen = together(*chosen, *for_readers, spec=model.partition)
        tally = tally.with_more((needed.state for needed in for_readers.values()), len(chosen))
    if (
        not context.range.all
        and states.remakes
        and context.request.behind
        and may_touch(model, above, context)
    ):
        chosen_set = frozenset(chosen)
        remaining = [slice_ for slice_ in in_range.slices if slice_ not in chosen_set]
        reached = touched(model, remaining, above, context)
        reread = frozenset((*reached, *following(model, remaining, (*chosen, *reached), context)))
        chosen = together(*chosen, *reread, spec=model.partition) if reread else chosen
        tally = replace(tally, to_make=len(chosen))
    step = replace(_of_states(model, chosen, tally, context), for_readers=for_readers)
    if context.range.all:
        return step
    return replace(step, seen=states.runs).decide(reread, condition=Condition.ROWS)


def _whole_of_range(
    model: Model,
    states: SliceStates,
    above: Mapping[str, PlannedStep],
    context: PlanningContext,
    *,
    is_redefined: bool,
) -> PlannedStep:
    """Return the step of a whole table. ``is_redefined``: it was built by another definition."""
    reached = (above[name] for name in context.graph.upstream(model.name) if name in above)
    changes = is_redefined or any(not step.skipped for step in reached)
    return _of_states(
        model, *choose_whole(states, every=context.range.all, inputs_change=changes), context
    )


def _of_states(
    model: Model, chosen: tuple[Slice, ...], tally: Tally, context: PlanningContext
) -> PlannedStep:
    """Return a step of the slices that were chosen by their states."""
    skipped = None if chosen else idle(tally, why_kept(model))
    apart = _why_apart(model, context.range, context) if len(chosen) > 1 else None
    after = context.after(model)
    return PlannedStep(model, chosen, after, skipped=skipped, tally=tally, apart=apart)


@contextmanager
def _placed_at(model: Model, keyword: str) -> Iterator[None]:
    try:
        yield
    except ArgumentError as error:
        error.location = error.location or model.place(keyword)
        raise


def _why_apart(model: Model, range_: SliceRange, context: PlanningContext) -> str | None:
    if model.strategy.only_adds and range_.all:
        return "rows that an interrupted run has appended are not to be added again"
    return context.known.why_apart(model)


def chains_of(models: Sequence[Model], chosen: Collection[str]) -> list[list[Model]]:
    """Find the chosen models of each chain. What connects them may be left out of a run.

    Args:
        models: All models, in the order of the graph.
        chosen: The names of those that are chosen.

    Returns:
        The chains.
    """
    by_name = {model.name: model for model in models}
    selected = ([name for name in chain if name in chosen] for chain in chains(models))
    return [[by_name[name] for name in chain] for chain in selected if chain]


def _why_skipped(run_slice: StepSlice | None, early: Sequence[str]) -> Skip | None:
    """``early`` are the models above that are before their start."""
    if run_slice is not None and run_slice.early:
        return Skip(SkipKind.EARLY, "before start")
    return Skip(SkipKind.EARLY, f"{early[0]} is before its start") if early else None


def finished(step: PlannedStep, context: PlanningContext) -> PlannedStep:
    """Bind what the script of a step may refer to.

    Args:
        step: The step.
        context: The plan.

    Returns:
        The step with its bindings. What is wrong is refused before anything runs.
    """
    model = step.model
    first_slice = step.slices[0] if step.slices else WHOLE
    if step.blocked or step.skipped:
        return replace(step, bindings=Bindings(partition=value_of(first_slice)))
    bindings = bindings_of(model, first_slice, context.args, context.request)
    for source in model.query.files:
        path_of(source, bindings, model.query.arguments)
    as_of = context.known.as_of.get(model.target.lake)
    is_dropped = step.anew or context.request.full_refresh
    return replace(step, bindings=bindings, anew=is_dropped, as_of=as_of)
