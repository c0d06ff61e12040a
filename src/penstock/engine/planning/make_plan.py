"""Make the plan of a run from what was asked for and what the catalogs know. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC
from functools import partial

from penstock.destinations.capabilities import refusals
from penstock.engine.planning.intervals import Due, IntervalHistory, ModelIntervals, start_above
from penstock.engine.planning.needed import NeededSlice
from penstock.engine.planning.plan import Asked, Known, Plan, PlannedStep, count_of
from penstock.engine.planning.plan_notices import notices_of, with_lagging
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
from penstock.engine.planning.reasons import left_stale
from penstock.engine.planning.restatement_scope import (
    Cascade,
    ModelRestatement,
    by_cron,
    cascade,
    together,
    why_kept,
)
from penstock.engine.planning.run_arguments import args_of, check_arguments
from penstock.engine.planning.slices import (
    RunRequest,
    StepSlice,
    bindings_of,
    resolve_slices,
    tops_of,
    value_of,
)
from penstock.engine.planning.up_to_date import redefined, without_up_to_date
from penstock.engine.planning.waiting import (
    Completed,
    complete,
    following,
    may_touch,
    touched,
    with_more,
)
from penstock.errors import ArgumentError, PartitionError
from penstock.model.definition.graph import Graph, chains, makers_of
from penstock.model.definition.model import Model
from penstock.model.project.not_models import FIRST_MODEL
from penstock.model.script.constants import Bindings
from penstock.model.script.file_uris import path_of
from penstock.model.time.interval import Interval, minus, union
from penstock.model.time.moments import is_moment
from penstock.model.time.partition import TIME_KINDS, Moment, value_from
from penstock.model.time.slice import WHOLE, Part, Slice
from penstock.model.time.time_range import TimeRange
from penstock.states import SliceState

Planner = Callable[[Asked], list[PlannedStep]]
First = Mapping[str, Mapping[Slice, NeededSlice]]


def make_plan(
    models: Mapping[str, Model],
    graph: Graph,
    request: RunRequest,
    known: Known | None = None,
    planner: Planner | None = None,
) -> Plan:
    """``known`` is asked for ranges, for models by time, for those that restate themselves, and for
    what others need of their inputs. ``planner`` says what is made of the models;
    as a run does without it.

    Raises ArgumentError and PartitionError: what is wrong is said before anything runs.
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
        models, graph, partial(_in_state, models, graph, request, known, planner)
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
    asked = Asked(request, [models[name] for name in order], graph, steps, args, known, lines)
    asked = replace(asked, roots=roots, excluded=selected.excluded)
    if planner is None:
        asked = replace(asked, cascade=_by_themselves(asked))
    planned = with_lagging(_planned(asked, planner), asked)
    notices = (*unvalued, *notices_of(planned, asked))
    makers = makers_of(models.values())
    stale = left_stale(planned, known)
    return Plan(tuple(planned), request, args, notices, makers, known.edges, stale=stale)


def _planned(asked: Asked, planner: Planner | None) -> list[PlannedStep]:
    """Return the steps as a run takes them, without what is up to date, or as a planner says."""
    if planner is not None:
        return _completed(planner(asked), asked).steps
    plan = _of_moment if asked.request.range is None else of_range
    completed = _completed(plan(asked), asked)
    while (first := _joined(asked.first, completed.added)) != asked.first:
        asked = replace(asked, first=first)  # others that read it may have to be made, too
        completed = _completed(plan(asked), asked)
    return without_up_to_date(completed.steps, asked, lambda step: finished(step, asked))


def _joined(first: First, added: First) -> First:
    return {name: {**first.get(name, {}), **added.get(name, {})} for name in {**first, **added}}


def _in_state(  # noqa: PLR0917 - `make_plan`'s own arguments, and the word
    models: Mapping[str, Model],
    graph: Graph,
    request: RunRequest,
    known: Known,
    planner: Planner | None,
    word: str,
) -> frozenset[str]:
    """Return the models of which the request looks at a slice in this state."""
    # Late: only ``state:`` asks.
    from penstock.engine.planning.selected_states import in_state

    ordered = [models[name] for name in graph.order()]
    made = [model for model in ordered if model.strategy.runs]
    request = replace(request, select=(), exclude=(), to=(), full_refresh=False, changed=False)
    lines = _lines(models, graph, made, request, known)
    asked = Asked(request, ordered, graph, made, {}, known, lines)
    chains_ = _chains(ordered, {model.name for model in made})
    plan = partial(make_plan, models, graph, request, known, planner)
    return in_state(word, asked, chains_, plan)


def _completed(planned: Sequence[PlannedStep], asked: Asked) -> Completed:
    """Return the steps with what they need first. Of models that are not selected only that."""
    moment = asked.request.fire_time.astimezone(UTC)
    if not any(asked.known.edges.values()) and not asked.known.old_tables(moment):
        return Completed(list(planned))
    known = {step.name: step for step in planned} | _first_of_others(asked)
    names = {model.name for model in asked.steps}
    above = {name for model in asked.steps for name in asked.graph.upstream(model.name)}
    added = above - names - asked.excluded if asked.request.upstream else set[str]()
    if added:
        added = {m.name for m in asked.order if m.name in added and m.strategy.runs and m.own}
        steps = [m for m in asked.order if m.name in names | added]
        asked = replace(asked, steps=steps, args=args_of(steps, asked.request))
    every = [known.get(m.name) or PlannedStep(m, (), skipped=NOT_ASKED) for m in asked.steps]
    found = complete(
        every,
        asked,
        lambda model, slices: step_of(model, slices, asked),
        lambda step: finished(step, asked),
    )
    kept = [step for step in found.steps if step.name in names or step.slices]
    if added:
        within = replace(asked, steps=[step.model for step in kept])
        kept = [replace(step, after=within.after(step.model)) for step in kept]
    return replace(found, steps=kept)


def _first_of_others(asked: Asked) -> dict[str, PlannedStep]:
    """Return what is made first of models that are not selected."""
    if not asked.first:
        return {}
    names = {model.name for model in asked.steps}
    others = (m for m in asked.order if m.name in asked.first and m.name not in names)
    return {m.name: _with_first(PlannedStep(m, (), skipped=NOT_ASKED), asked) for m in others}


def _with_first(step: PlannedStep, asked: Asked) -> PlannedStep:
    """Return a step with the slices of its model that readers lack."""
    more = asked.first.get(step.name)
    if not more or step.blocked is not None:
        return step
    return with_more(step, more, lambda model, slices: step_of(model, slices, asked))


OF_MOMENT = ": without --from and --to, one slice of each partitioned model is looked at"
NOT_ASKED = "nothing that the selected models need of it is missing"


def step_of(model: Model, slices: tuple[Slice, ...], asked: Asked) -> PlannedStep:
    """Return a step that makes these slices, whatever is there."""
    after = asked.after(model)
    if model.by_time is None:
        return finished(of_slices(model, slices, asked), asked)
    intervals = union(each for each in slices if isinstance(each, Interval))
    batches, apart = model.by_time.batches(intervals), None
    if len(batches) > 1:
        apart = _apart_by_time(model.by_time)
    return finished(PlannedStep(model, batches, after, apart=apart), asked)


def _apart_by_time(by_time: TimeRange) -> str:
    size = by_time.batch_size
    return "each range of missing intervals" if size is None else f"batch_size is {size}"


def _by_themselves(asked: Asked) -> Cascade:
    """Return what ``auto_restatement_cron`` makes again in a run, with what reads it; in a range
    what definitions that have changed do.
    """
    if asked.request.changed:
        # Late: few runs ask for it.
        from penstock.engine.planning.changed_scope import changed_scope

        return changed_scope(asked).reached
    request, names = asked.request, {model.name for model in asked.steps}
    autos = [model for model in asked.order if model.auto_restatement is not None]
    other = request.range is not None or request.partition is not None or request.full_refresh
    if not autos or other:
        return Cascade()
    below = {name for model in autos for name in asked.graph.downstream(model.name)}
    reached = [each for each in asked.order if each in autos or each.name in below]
    if not any(model.name in names for model in reached):
        return Cascade()
    pasts = asked.known.pasts(reached)
    waves = by_cron(autos, pasts, request.fire_time.astimezone(UTC))
    return cascade(reached, asked.graph.parents, names, pasts, first=waves)


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


def of_intervals(
    model: Model, line: ModelIntervals, due: Due, after: tuple[str, ...]
) -> PlannedStep:
    """A slice for each evaluation of the query."""
    slices = line.by_time.batches(due.intervals)
    apart = _apart_by_time(line.by_time) if len(slices) > 1 else None
    late = line.out_of_order(slices[0]) if model.in_order and slices else None
    seen = line.painted.runs if due.lacking else None
    return PlannedStep(model, slices, after, late, due.idle, due.tally, apart, seen=seen)


def _of_moment(asked: Asked) -> list[PlannedStep]:
    """One slice of each model; of models by time all that are due; and what is restated."""
    chains_ = _chains(asked.order, {model.name for model in asked.steps})
    slices = resolve_slices(chains_, asked.request, asked.graph.upstream)
    planned, early = _first_of_others(asked), set[str]()
    for model in asked.steps:
        after, own = asked.after(model), slices.get(model.name)
        skipped = _why_skipped(own, [name for name in after if name in early])
        early |= {model.name} if skipped else set()
        again, line = asked.cascade.again.get(model.name), asked.lines.get(model.name)
        made = (Part(own.value) if own else WHOLE,)
        if skipped is not None:
            step = PlannedStep(model, made, after, skipped=skipped)
        elif again is not None:
            step = _restated(model, again, asked, made, line)
        elif line is not None:
            alone = not slices
            with _placed_at(model, "target"):
                due = _due(line, asked.request.partition, alone)
                step = of_intervals(model, line, due, after)
        elif own is not None and _takes_late(model, asked.request):
            step = of_slices(model, together(*made, *_behind(model, asked)), asked)
        else:
            step = PlannedStep(model, made, after)
        step = _with_first(step, asked)
        if line is not None and skipped is None and again is None:
            step = _with_touched(step, line, planned, asked)
        planned[model.name] = finished(step, asked)
    return [planned[model.name] for model in asked.steps]


def _takes_late(model: Model, request: RunRequest) -> bool:
    return request.late or (model.late_run and request.partition is None)


def _behind(model: Model, asked: Asked) -> list[Slice]:
    """Return the slices of a partitioned model that are behind, where a run can take them back;
    those with late rows, where only the model asks for them, and not the run.
    """
    states = asked.known.slices([model]).get(model.name, SliceStates())
    if not states.remakes:
        return []
    behind = (text for text, state in states.items() if text and state == SliceState.BEHIND)
    return [Part(text) for text in behind if asked.request.late or text in states.late]


def _with_touched(
    step: PlannedStep, line: ModelIntervals, above: Mapping[str, PlannedStep], asked: Asked
) -> PlannedStep:
    """Add the intervals whose inputs are made in this run, to be made if these change: of a range
    those within it. ``above`` are the steps before.
    """
    if step.blocked or not line.painted.remakes or not asked.request.behind:
        return step
    known = asked.known
    inputs = {each.upstream.name for each in known.edges.get(step.name, ())}
    if inputs.union(view.name for view in known.views.get(step.name, ())).isdisjoint(above):
        return step
    own = union(each for each in step.slices if isinstance(each, Interval))
    made = list(line.by_time.units(minus(line.materialized(asked.request.range), own)))
    again = union(e for e in touched(step.model, made, above, asked) if isinstance(e, Interval))
    if not again:
        return step
    batches = line.by_time.batches(again)
    slices = tuple(sorted((*(e for e in step.slices if isinstance(e, Interval)), *batches)))
    apart = _apart_by_time(line.by_time) if len(slices) > 1 else None
    return replace(step, slices=slices, if_changed=frozenset(batches), apart=apart, skipped=None)


def _due(line: ModelIntervals, asked: Moment | None, alone: bool) -> Due:
    """Return what is due. A run for one partition makes the interval that contains its value again,
    even where it is up to date. A value that is not a moment is meant for the partitioned models of
    the run; where there are none (``alone``), it is an error.
    """
    if asked is None or not (alone or is_moment(asked, line.now)):
        return line.due()
    return line.of(SliceRange(asked, asked, all=True))


def _restated(
    model: Model,
    again: ModelRestatement,
    asked: Asked,
    own: tuple[Slice, ...],
    line: ModelIntervals | None,
) -> PlannedStep:
    """Return what a run makes of a model anyhow, and what is restated of it."""
    if line is not None:
        intervals = tuple(each for each in again.slices if isinstance(each, Interval))
        line = replace(line, painted=IntervalHistory()) if again.anew else line
        due = line.due() if again.anew else line.due(intervals)
        step = of_intervals(model, line, due, asked.after(model))
    else:
        step = of_slices(model, together(*own, *again.slices), asked)
    return replace(step, again=again.why, anew=again.anew)


def of_slices(model: Model, slices: tuple[Slice, ...], asked: Asked) -> PlannedStep:
    """Slices of a model that are made whatever they hold."""
    apart = _why_apart(model, SliceRange(all=True), asked) if len(slices) > 1 else None
    return PlannedStep(model, slices, asked.after(model), apart=apart)


def of_range(asked: Asked) -> list[PlannedStep]:
    """The slices of a range that are to be made."""
    request, lines, steps, range_ = asked.request, asked.lines, asked.steps, asked.request.range
    assert range_ is not None, "asked for a range"
    require_range(
        range_, partition_too=request.partition is not None, full_refresh=request.full_refresh
    )
    if not lines and all(model.partition is None for model in steps):
        raise ArgumentError(
            "no selected model is partitioned: there is no range to make",
            hint="leave out --from and --to, or select models that are partitioned or by time",
        )
    calendar = Calendar(range_, request.fire_time, asked.parents)
    planned = _first_of_others(asked)
    ranges = {model.name: calendar.of(model) for model in steps if model.partition is not None}
    states = asked.known.slices(steps)
    others = redefined([model for model in steps if not model.slicing], asked)
    for model in steps:
        own = states.get(model.name, SliceStates())
        if model.name in lines:
            step = _intervals_of_range(model, lines[model.name], planned, asked)
        elif model.partition is not None:
            step = _slices_of_range(model, ranges[model.name], own, planned, asked)
        else:
            step = _whole_of_range(model, own, planned, asked, is_other=model.name in others)
        again = asked.cascade.again.get(model.name)
        step = step if again is None else _with_again(step, again, asked)
        planned[model.name] = finished(step, asked)
    return [planned[model.name] for model in steps]


def _with_again(step: PlannedStep, again: ModelRestatement, asked: Asked) -> PlannedStep:
    """Return a step of a range with what changed definitions rebuild of its model, wherever."""
    model = step.model
    if again.anew:
        return _restated(model, again, asked, (WHOLE,), asked.lines.get(model.name))
    own = () if step.skipped else step.slices
    made = step_of(model, together(*own, *again.slices, spec=model.partition), asked)
    tally = step.tally and replace(step.tally, to_make=count_of(model, made.slices))
    kept = step.if_changed.intersection(made.slices).difference(again.slices)
    return replace(made, again=again.why, tally=tally, if_changed=kept)


def _intervals_of_range(
    model: Model, line: ModelIntervals, above: Mapping[str, PlannedStep], asked: Asked
) -> PlannedStep:
    range_ = asked.request.range
    assert range_ is not None, "asked for a range"
    with _placed_at(model, "start"):
        step = of_intervals(model, line, line.of(range_), asked.after(model))
        if step.blocked is not None:  # nothing is recorded of what was asked for in vain
            raise ArgumentError(f"{model.name}: {step.blocked}")
        step = _with_first(step, asked)
        return step if range_.all else _with_touched(step, line, above, asked)


def _slices_of_range(
    model: Model,
    found: InRange,
    own: SliceStates,
    above: Mapping[str, PlannedStep],
    asked: Asked,
) -> PlannedStep:
    range_ = asked.request.range
    assert range_ is not None, "asked for a range"
    chosen, tally = choose(found, own, every=range_.all)
    first, again = asked.first.get(model.name, {}), frozenset[Slice]()
    if first:
        chosen = together(*chosen, *first, spec=model.partition)
        tally = tally.with_more((needed.state for needed in first.values()), len(chosen))
    if not range_.all and own.remakes and asked.request.behind and may_touch(model, above, asked):
        taken = frozenset(chosen)
        left = [each for each in found.slices if each not in taken]
        reached = touched(model, left, above, asked)
        again = frozenset((*reached, *following(model, left, (*chosen, *reached), asked)))
        chosen = together(*chosen, *again, spec=model.partition) if again else chosen
        tally = replace(tally, to_make=len(chosen))
    step = replace(_of_states(model, chosen, tally, asked), for_readers=first)
    return step if range_.all else replace(step, seen=own.runs, if_changed=again)


def _whole_of_range(
    model: Model,
    own: SliceStates,
    above: Mapping[str, PlannedStep],
    asked: Asked,
    *,
    is_other: bool,
) -> PlannedStep:
    """Return the step of a whole table. ``is_other``: it was built by another definition."""
    range_ = asked.request.range
    assert range_ is not None, "asked for a range"
    reached = (above[name] for name in asked.graph.upstream(model.name) if name in above)
    changes = is_other or any(not step.skipped for step in reached)
    return _of_states(model, *choose_whole(own, every=range_.all, inputs_change=changes), asked)


def _of_states(model: Model, chosen: tuple[Slice, ...], tally: Tally, asked: Asked) -> PlannedStep:
    """Return a step of the slices that were chosen by their states."""
    range_ = asked.request.range
    assert range_ is not None, "asked for a range"
    skipped = None if chosen else idle(tally, why_kept(model))
    apart = _why_apart(model, range_, asked) if len(chosen) > 1 else None
    after = asked.after(model)
    return PlannedStep(model, chosen, after, skipped=skipped, tally=tally, apart=apart)


@contextmanager
def _placed_at(model: Model, what: str) -> Iterator[None]:
    try:
        yield
    except ArgumentError as error:
        error.location = error.location or model.place(what)
        raise


def _why_apart(model: Model, range_: SliceRange, asked: Asked) -> str | None:
    if model.strategy.only_adds and range_.all:
        return "rows that an interrupted run has appended are not to be added again"
    return asked.known.why_apart(model)


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
    chains_ = _chains([models[name] for name in graph.order()], chosen)
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


def _chains(models: Sequence[Model], chosen: Collection[str]) -> list[list[Model]]:
    """The chosen steps of each chain: what connects them may be left out of a run."""
    by_name = {model.name: model for model in models}
    selected = ([name for name in chain if name in chosen] for chain in chains(models))
    return [[by_name[name] for name in chain] for chain in selected if chain]


def _why_skipped(own: StepSlice | None, early: Sequence[str]) -> str | None:
    """``early`` are the models above that are before their start."""
    if own is not None and own.early:
        return "before start"
    return f"{early[0]} is before its start" if early else None


def finished(step: PlannedStep, asked: Asked) -> PlannedStep:
    """The step with what its script may refer to; refuses what is wrong before anything runs."""
    model = step.model
    first = step.slices[0] if step.slices else WHOLE
    if step.blocked or step.skipped:
        return replace(step, bindings=Bindings(partition=value_of(first)))
    bindings = bindings_of(model, first, asked.args, asked.request)
    for source in model.query.files:
        path_of(source, bindings, model.query.arguments)
    anew = step.anew or asked.request.full_refresh
    as_of = asked.known.as_of.get(model.target.lake)
    return replace(step, bindings=bindings, anew=anew, as_of=as_of)
