"""Leave out of a plan what need not run: slices that are as a run would make them. Pure.

That is a slice that was asked for by itself (the one of a plain run, the one of ``--partition``, a
whole table), or that a range takes only because it is not over yet. It is there, made by the
definition as it is now, under the same data tests, with the same arguments, of the same files, and
of inputs of which no row has changed since. Where the run may change rows of an input first, it is
made only if it does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from penstock.engine.planning.made_from import MadeFrom
from penstock.engine.planning.needed import edge_to, touching
from penstock.engine.planning.plan import Condition, PlannedStep, PlanningContext, count_of
from penstock.engine.planning.ranges import SliceStates
from penstock.engine.planning.slice_reason import UP_TO_DATE, Cause, Reason, Skip, SkipKind
from penstock.engine.planning.slices import bindings_of
from penstock.model.definition.model import Model
from penstock.model.slicing.undated import why_undated
from penstock.model.time.slice import WHOLE, Slice
from penstock.states import SliceState

_CURRENT = Skip(SkipKind.CURRENT, UP_TO_DATE)
Finish = Callable[[PlannedStep], PlannedStep]


def without_up_to_date(
    steps: Sequence[PlannedStep], context: PlanningContext, finish: Finish
) -> list[PlannedStep]:
    """Return the steps without slices that are up to date. ``finish`` binds the arguments of a step
    again whose slices are fewer. A step that has none left is skipped.
    """
    request, made_from = context.request, context.known.made_from
    if request.force or request.full_refresh or not request.behind or made_from is None:
        return list(steps)
    wanted = {step.name: slices for step in steps if (slices := tuple(_asked_for(step, context)))}
    models = [step.model for step in steps if step.name in wanted]
    known = made_from(wanted, models) if models else {}
    done: dict[str, PlannedStep] = {}
    fewer: set[str] = set()  # steps that lost slices
    for planned in steps:
        step = _touched(planned, done, context, finish) if fewer & {*planned.after} else planned
        slices = wanted.get(step.name, ())
        causes = dict(_causes(step, slices, known.get(step.name, {}), context))
        current = {each for each in slices if each not in causes}
        told = {each: cause for each, cause in causes.items() if cause is not None}
        left = step.decide_each("cause", told)
        left = left.decide_each("built_from", known.get(step.name, {}))
        done[step.name] = _without(left, current, done, context, finish) if current else left
        if done[step.name].skipped != planned.skipped or done[step.name].slices != planned.slices:
            fewer.add(step.name)
    return list(done.values())


def redefined(models: Sequence[Model], context: PlanningContext) -> frozenset[str]:
    """Return the whole tables, views and seeds that a run has to rebuild as their definition, their
    data tests or settings of Spark are others now. What a rerun would do once more is left.
    """
    rerun = [model for model in models if not model.strategy.may_repeat]
    states = context.known.slices(rerun)
    found = {name for name, of in states.items() if of.get(WHOLE.text) == SliceState.STALE}
    if context.known.made_from is None:
        return frozenset(found)
    there = [
        model
        for model in rerun
        if states.get(model.name, SliceStates()).state(WHOLE.text).has_current_definition
    ]
    wanted = {model.name: (WHOLE,) for model in there}
    known = context.known.made_from(wanted, there) if there else {}
    for model in there:
        made = known.get(model.name, {}).get(WHOLE)
        if made is not None and _is_redefined(model, made):
            found.add(model.name)
    return frozenset(found)


def _is_redefined(model: Model, made: MadeFrom) -> bool:
    tests = any(read.tests != model.terms for read in made.reads)
    return tests or (made.settings is not None and not model.forward_only)


def _asked_for(step: PlannedStep, context: PlanningContext) -> Iterator[Slice]:
    """Yield the slices that are made although nothing says that they are lacking."""
    model, request = step.model, context.request
    if step.blocked or step.skipped or step.again is not None or step.anew:
        return
    if request.range is not None and request.range.all:
        return
    if request.range is not None and model.slicing:
        yield from _unfinished(step, context)
        return
    if model.by_time is not None and request.partition is None:
        return
    yield from (slice_ for slice_ in step.slices if _is_plain(step, slice_))


def _is_plain(step: PlannedStep, slice_: Slice) -> bool:
    """Return whether a slice neither waits nor depends on what the run changes."""
    work = step.work(slice_)
    return work.waits_for is None and work.condition is None


def _unfinished(step: PlannedStep, context: PlanningContext) -> Iterator[Slice]:
    """Yield the slices that a range takes as they are not over: no state says what they lack."""
    states = context.known.slices([step.model]).get(step.name, SliceStates())
    for slice_ in step.slices:
        is_open = states.get(slice_.text) == SliceState.UNFINISHED
        if is_open and _is_plain(step, slice_):
            yield slice_


def _causes(
    step: PlannedStep,
    wanted: Sequence[Slice],
    known: Mapping[Slice, MadeFrom],
    context: PlanningContext,
) -> Iterator[tuple[Slice, Cause | None]]:
    """Yield why slices are made that a run would not make as they are; None where all is said by
    their states.
    """
    undated = why_undated(step.model, context.known.views.get(step.name, ())) if known else None
    for slice_ in wanted:
        made = known.get(slice_)
        if made is None:
            yield slice_, None
        elif undated is not None:
            yield slice_, Cause(Reason.FORCED, undated)
        elif (cause := _cause(step.model, slice_, made, context)) is not None:
            yield slice_, cause


def _cause(model: Model, slice_: Slice, made: MadeFrom, context: PlanningContext) -> Cause | None:
    """Return why a run that makes no input would not make a slice as it is."""
    changed = _changed(model, made, context)
    if changed is not None:
        return Cause(Reason.CHANGED, changed)
    if made.moved is not None and model.looks_at_rows:
        return Cause(Reason.BEHIND, made.moved)
    if not model.query.files:
        return None
    bindings = bindings_of(model, slice_, context.args, context.request)
    same = (context.known.same_files(model, bindings, read.inputs) for read in made.reads)
    return None if all(same) else Cause(Reason.BEHIND, "its files have changed")


def _changed(model: Model, made: MadeFrom, context: PlanningContext) -> str | None:
    """Return what of the model, or of what is given to it, is not as the slice was made."""
    if made.definitions != {model.definition_hash}:
        return "its definition"
    if made.settings is not None and not model.forward_only:
        return made.settings
    terms, given = model.terms, model.given(context.args)
    if any(read.tests != terms for read in made.reads):
        return "its data tests, comments or layout"
    return "its arguments" if any(read.arguments != given for read in made.reads) else None


def _without(
    step: PlannedStep,
    current: set[Slice],
    done: dict[str, PlannedStep],
    context: PlanningContext,
    finish: Finish,
) -> PlannedStep:
    others = [each for each in step.slices if each not in current]
    may_move = list(_may_move(step, others, done, context)) if step.model.looks_at_rows else []
    moved = frozenset(each for each in current if any(needs(each) for needs in may_move))
    left = tuple(s for s in step.slices if s not in current or s in moved)
    if not left:
        return replace(step, skipped=_CURRENT, stages=())
    step = step.decide(moved, condition=Condition.INPUTS)
    if len(left) == len(step.slices):
        return step
    tally = step.tally and replace(step.tally, to_make=count_of(step.model, left))
    return finish(replace(step, slices=left, tally=tally))


def _touched(
    step: PlannedStep, done: dict[str, PlannedStep], context: PlanningContext, finish: Finish
) -> PlannedStep:
    """Return a step without slices that are made only if inputs change that the run leaves."""
    conditional = step.conditional(Condition.ROWS)
    if not conditional or step.skipped or step.blocked:
        return step
    others = [each for each in step.slices if each not in conditional]
    may_move = list(_may_move(step, others, done, context))
    idle = {each for each in conditional if not any(needs(each) for needs in may_move)}
    left = tuple(each for each in step.slices if each not in idle)
    if not left:
        return replace(step, skipped=_CURRENT, stages=())
    if not idle:
        return step
    tally = step.tally and replace(step.tally, to_make=count_of(step.model, left))
    return finish(replace(step, slices=left, tally=tally))


def _may_move(
    step: PlannedStep,
    others: Sequence[Slice],
    done: dict[str, PlannedStep],
    context: PlanningContext,
) -> Iterator[Callable[[Slice], bool]]:
    """Yield which slices need any that the run may give other rows: of tables, of files, and of
    views whose queries may be others. ``others`` are those of its own that are made.
    """
    edges = {edge.upstream.name: edge for edge in context.known.edges.get(step.name, ())}
    if step.name in edges:
        yield touching(edges[step.name], others)
    for name in step.after:
        above = done.get(name)
        if above is None or above.skipped:
            continue
        edge = edge_to(step.model, above.model, edges)
        if edge is not None:
            yield touching(edge, above.slices, whole=True)
