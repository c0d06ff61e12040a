"""Tell which models have slices in a state, among those that a plan of a request looks at. Pure.

For ``state:`` in selections. With a range these are its slices, with a partition that slice; else
the slice of the moment of partitioned models, and all that are over of models by time.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress

from penstock.engine.planning.plan import Plan, PlanningContext
from penstock.engine.planning.ranges import (
    Calendar,
    SliceRange,
    SliceStates,
)
from penstock.engine.planning.selectors import STATES
from penstock.engine.planning.slices import StepSlice, resolve_slices
from penstock.errors import PartitionError, PenstockError
from penstock.model.definition.model import Model
from penstock.model.time.moments import is_moment
from penstock.model.time.partition import TIME_KINDS, start_of
from penstock.model.time.slice import WHOLE, Part
from penstock.states import SliceState


def in_state(
    word: str, context: PlanningContext, chains: Sequence[Sequence[Model]], plan: Callable[[], Plan]
) -> frozenset[str]:
    """Return the models that have a slice in a state. ``asked`` is the request of all models, and
    ``plan`` its plan: what waits in it is waiting, too. Raises PartitionError and ArgumentError for
    a partition or a range that is wrong.
    """
    wanted = STATES[word]
    found = {name for name, states in _states(context, chains) if wanted.intersection(states)}
    if SliceState.WAITING in wanted:
        with suppress(PenstockError):  # of models that nobody may have asked for
            found |= {step.name for step in plan().steps if step.waits and not step.skipped}
    return frozenset(found)


def _states(
    context: PlanningContext, chains: Sequence[Sequence[Model]]
) -> Iterator[tuple[str, Collection[str]]]:
    recorded = context.known.slices([m for m in context.steps if m.by_time is None])
    range_ = context.request.range
    slices = _of_moment(context, chains) if range_ is None else {}
    calendar = Calendar(range_ or SliceRange(), context.request.fire_time, context.parents)
    for model in context.steps:
        states = recorded.get(model.name, SliceStates())
        if model.by_time is not None:
            yield model.name, _by_time(model, context)
        elif model.partition is None:
            yield model.name, {states.state(WHOLE.text)}
        elif range_ is not None and _has_range(model, range_):
            yield model.name, {states.state(p.text) for p in calendar.of(model).slices}
        elif (own := slices.get(model.name)) is not None and not own.early:
            behind = (
                {SliceState.BEHIND} & set(states.values()) if context.request.late else set[str]()
            )
            yield model.name, {states.state(Part(own.value).text), *behind}


def _has_range(model: Model, range_: SliceRange) -> bool:
    spec = model.partition
    if spec is None or spec.kind not in TIME_KINDS:
        return False
    return range_.first is not None or start_of(spec) is not None


def _of_moment(context: PlanningContext, chains: Sequence[Sequence[Model]]) -> dict[str, StepSlice]:
    """Return the slice that a run makes of each partitioned model. Raises PartitionError where the
    partition that was asked for is none of any.
    """
    found: dict[str, StepSlice] = {}
    wrong: PartitionError | None = None
    for chain in chains:
        try:
            found |= resolve_slices([chain], context.request, context.graph.upstream)
        except PartitionError as error:
            wrong = wrong or error
    if wrong is not None and not found and context.request.partition is not None:
        raise wrong
    return found


def _by_time(model: Model, context: PlanningContext) -> Collection[str]:
    line, request = context.lines[model.name], context.request
    if request.range is not None:
        start = line.by_time.start(line.now) or line.start
        if request.range.first is None and start is None:
            return ()
        return line.of(request.range).tally.states
    if request.partition is None:
        return line.due().tally.states
    if not is_moment(request.partition, line.now):
        return ()
    return line.of(SliceRange(request.partition, request.partition, all=True)).tally.states
