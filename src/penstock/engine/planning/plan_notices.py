"""Notices of a plan before it runs: what it leaves out, rebuilds and drops. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from penstock.engine.planning.intervals import without_start
from penstock.engine.planning.waiting import touched
from penstock.errors import ArgumentError
from penstock.model.definition.model import Model
from penstock.model.slicing.needs import doubt_of, needs_hint
from penstock.model.time.interval import Interval, minus
from penstock.model.time.slice import WHOLE, Part, Slice
from penstock.states import SliceState

if TYPE_CHECKING:
    from penstock.engine.planning.plan import Plan, PlannedStep, PlanningContext
    from penstock.engine.planning.restatement_scope import Cascade
    from penstock.engine.planning.slices import RunRequest

MANY = 10_000  # slices of a run, above which a notice says how many
_LAGGING = (SliceState.FAILED, SliceState.SKIPPED, SliceState.CHANGED_OUTSIDE, SliceState.STALE)


def notices_of(steps: Sequence[PlannedStep], context: PlanningContext) -> Iterator[str]:
    """Raises ArgumentError for a full refresh of what must not be."""
    yield from _notices(steps, context.request)
    if context.request.range is None:
        yield from without_start(context.lines)
    yield from _left_out(context.cascade)
    if context.request.behind and not context.request.full_refresh:
        yield from _behind(steps, context)
        yield from _behind_by_time(steps, context)
        yield from _will_be_behind(steps, context)


def doubts_of(plan: Plan) -> Iterator[str]:
    """Yield the inputs of which the steps of a plan need every slice, as nothing bounds them."""
    for step in plan.steps:
        for edge in plan.edges.get(step.name, ()) if not step.skipped else ():
            if edge.need.in_doubt:
                yield f"{doubt_of(edge)}: {needs_hint(edge)}"


def with_lagging(steps: Sequence[PlannedStep], context: PlanningContext) -> list[PlannedStep]:
    """The steps, where those that have nothing to do say what they read that is not up to date."""
    idle = [step for step in steps if step.skipped and step.tally is not None and not step.slices]
    above = {model.name: model for step in idle for model in context.above(step.model)}
    if not above:
        return list(steps)
    own = {step.name: step for step in steps}
    states: dict[str, frozenset[str]] = {}
    for name, known in context.known.slices(list(above.values())).items():
        step = own.get(name)
        if step is not None and step.slices and not step.skipped:
            continue  # this run makes it
        states[name] = known.kinds
    if not any(kinds.intersection(_LAGGING) for kinds in states.values()):
        return list(steps)
    names = {step.name for step in idle}
    return [_lagging(step, states, context) if step.name in names else step for step in steps]


def _lagging(
    step: PlannedStep, states: Mapping[str, frozenset[str]], context: PlanningContext
) -> PlannedStep:
    for model in context.above(step.model):
        state = next((each for each in _LAGGING if each in states.get(model.name, ())), None)
        if state is not None:
            assert step.skipped is not None, "only idle steps lag"
            outdated = f"{model.name}, which it reads, is {state}"
            return replace(step, skipped=replace(step.skipped, outdated_input=outdated))
    return step


def _behind(steps: Sequence[PlannedStep], context: PlanningContext) -> Iterator[str]:
    """Yield which slices of partitioned models are behind that the run does not make."""
    models = [s.model for s in steps if s.model.partition is not None and _reads(s.model)]
    if not models:
        return
    planned = {step.name: {each.text for each in step.slices} for step in steps}
    known = context.known.slices(models)
    for name, states in ((m.name, known[m.name]) for m in models if m.name in known):
        if states.kinds.isdisjoint((SliceState.BEHIND, SliceState.LATE)):
            continue
        left = [
            text
            for text, state in states.items()
            if state in (SliceState.BEHIND, SliceState.LATE) and text not in planned[name]
        ]
        if left:
            number = len(left)
            what = f"{number:,} slice{'' if number == 1 else 's'} behind {_ITS[number > 1]} input"
            do = f"penstock run {name} --behind" if states.remakes else _NOT_TAKEN_BACK
            yield f"{name}: this run leaves {what}: {do}"


def _behind_by_time(steps: Sequence[PlannedStep], context: PlanningContext) -> Iterator[str]:
    """Yield which intervals are behind that no run takes back."""
    for step in steps:
        line = context.lines.get(step.name)
        if line is None or line.painted.remakes or step.anew:
            continue
        own = [each for each in step.slices if isinstance(each, Interval)]
        if number := line.count(minus(line.painted.of_states(SliceState.BEHIND), own)):
            what = f"{number:,} slice{'' if number == 1 else 's'} behind {_ITS[number > 1]} input"
            yield f"{step.name}: this run leaves {what}: {_ways(step.model)}"


def _will_be_behind(steps: Sequence[PlannedStep], context: PlanningContext) -> Iterator[str]:
    """Yield which slices read what the run makes, and cannot be made again themselves."""
    above = {step.name: step for step in steps}
    for step in steps:
        if step.anew or not context.known.edges.get(step.name):
            continue
        read = touched(step.model, _kept(step, context), above, context)
        if number := len(read):
            what, verb = ("slice", "reads") if number == 1 else ("slices", "read")
            stays = "stays as it is" if number == 1 else "stay as they are"
            yield (
                f"{step.name}: {number:,} {what} that {verb} what this run makes {stays}, and "
                f"{_BECOMES[number > 1]} behind if that has other rows: {_ways(step.model)}"
            )


def _kept(step: PlannedStep, context: PlanningContext) -> list[Slice]:
    """The slices of a model that are up to date, and that no run takes back."""
    line, planned = context.lines.get(step.name), set(step.slices)
    if line is not None:
        if line.painted.remakes:
            return []
        own = [each for each in step.slices if isinstance(each, Interval)]
        return list(line.by_time.units(minus(line.materialized(None), own)))
    if step.model.partition is None or step.model.strategy.restores:
        return []
    states = context.known.slices([step.model]).get(step.name)
    if states is None or states.remakes:
        return []
    made = (
        Part(text) for text, state in states.items() if text and state == SliceState.MATERIALIZED
    )
    return [each for each in made if each not in planned]


def _ways(model: Model) -> str:
    return _LATER_COUNTS if model.strategy.keeps_versions else _NOT_TAKEN_BACK


def _reads(model: Model) -> bool:
    return bool(model.inputs or model.query.files)


_ITS = {False: "its", True: "their"}
_BECOMES = {False: "is", True: "are"}
_LATER_COUNTS = "in a history the later loads count; --full-refresh loads it again from its start"
_NOT_TAKEN_BACK = (
    "a rerun would not take back what they wrote; roll the table back, or drop what is to be made "
    "again"
)


def _changed(step: PlannedStep) -> str | None:
    """That a step rebuilds what another writer changed."""
    model, tally = step.model, step.tally
    number = 0 if tally is None else tally.states.get(SliceState.CHANGED_OUTSIDE, 0)
    by_time = model.by_time is not None
    if not number or not step.slices or not model.strategy.rerun_restores(by_time=by_time):
        return None
    what = f"{number:,} slice{'' if number == 1 else 's'}"
    said = f"{step.name}: {what} changed by another writer: the run makes {_IT[number > 1]} what "
    said += "the SELECT returns"
    return said if model.strategy.merges else f"{said}, and removes rows that writer added"


_IT = {False: "it", True: "them"}


def _left_out(found: Cascade) -> Iterator[str]:
    """Yield what the cascade of ``auto_restatement_cron`` does not reach."""
    for name, why in found.left_out.items():
        yield f"{name} is not restated with what it reads: {why}"


def _notices(steps: Sequence[PlannedStep], request: RunRequest) -> Iterator[str]:
    if request.partition is not None and all(step.slices == (WHOLE,) for step in steps):
        yield "no selected step is partitioned: --partition has no effect"
    for step in steps:
        if step.tally is not None and step.tally.later:
            one = step.tally.later == 1
            later = f"{step.tally.later:,} slice{'' if one else 's'}"
            begun = "has not begun yet, and is" if one else "have not begun yet, and are"
            yield f"{step.name}: {later} of the range {begun} left out"
        if step.again is not None and not step.skipped:
            what = "rebuilt" if step.anew else f"restated ({step.slice or 'whole table'})"
            yield f"{step.name} is {what}: {step.again}"
        if changed := _changed(step):
            yield changed
        if without := step.without:
            yield _without(step, without)
    number = sum(_number(step) for step in steps if not step.skipped)
    if number > MANY:
        yield (
            f"the run makes {number:,} slices, more than {MANY:,}: if that is not what is meant, "
            "give a shorter range, or the models a later start"
        )
    if request.full_refresh:
        yield from _refreshed([step.model for step in steps if not step.skipped], request)


def _without(step: PlannedStep, without: Mapping[Slice, str]) -> str:
    """Say which slices ``--allow-missing`` lets a step make of what is there."""
    slices, lacks = list(without), list(dict.fromkeys(without.values()))
    name = slices[0].text and f" {slices[0]}"
    what = (
        f"{step.name}{name} is" if len(slices) == 1 else f"{step.name}: {len(slices):,} slices are"
    )
    more = f", and {len(lacks) - 1:,} more" if len(lacks) > 1 else ""
    return f"{what} made without all of the input (--allow-missing): {lacks[0]}{more}"


def _number(step: PlannedStep) -> int:
    return len(step.slices) if step.tally is None else step.tally.to_make


def _refreshed(steps: Sequence[Model], request: RunRequest) -> Iterator[str]:
    """Yield what a full refresh drops that the run does not make again. Raises ArgumentError."""
    if not request.select and not request.to:
        raise ArgumentError(
            "a full refresh drops what is there: it is for the models that you name",
            hint="for example: penstock run MODEL --full-refresh",
        )
    for model in steps:
        if model.disable_restatement:
            raise ArgumentError(
                f"{model.name} is excluded from being rebuilt: disable_restatement is true",
                hint="write disable_restatement false in its kind, or `penstock drop` the table",
                location=model.place("disable_restatement"),
            )
        if model.partition is not None:
            yield f"{model.name}: full refresh drops every slice and makes this run's only"
        elif not model.strategy.exact:
            yield f"{model.name}: full refresh leaves only what the SELECT returns now"
