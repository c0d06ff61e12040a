"""Complete a plan by what its slices need: what is missing is made first, else they wait. Pure.

In two passes over the steps. From the last to the first: slices of inputs are added where they are
missing. From the first to the last: what lacks a slice that nobody makes waits, with all that needs
it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import groupby
from typing import TYPE_CHECKING

from penstock.engine.planning.intervals import IntervalHistory, ModelIntervals, start_above
from penstock.engine.planning.needed import Lack, There, first_lacking, lacked, touching
from penstock.engine.planning.plan import PlannedStep, PlanningContext, count_of
from penstock.engine.planning.ranges import SliceStates
from penstock.engine.planning.restatement_scope import together
from penstock.model.definition.model import Model
from penstock.model.slicing.needs import Edge, Sliced, sliced
from penstock.model.time.interval import Interval
from penstock.model.time.needs import Rule
from penstock.model.time.slice import WHOLE, Slice
from penstock.model.time.time_range import TimeRange
from penstock.model.values.strategy import Output

if TYPE_CHECKING:
    from penstock.engine.planning.freshness import OldTable
    from penstock.engine.planning.needed import NeededSlice

Finish = Callable[[PlannedStep], PlannedStep]
#: make a step of a model and its slices, as the plan makes others
Make = Callable[[Model, tuple[Slice, ...]], PlannedStep]
CUT = "some of them wait for their input"


def complete(
    planned: Sequence[PlannedStep], context: PlanningContext, make: Make, finish: Finish
) -> Completed:
    """Return the steps with what has to be made before, and with what waits. ``finish`` binds the
    arguments of a step again after its slices have been cut.
    """
    completion = _Completion.of(planned, context)
    if completion is None:
        return Completed(list(planned))
    for model in reversed(context.steps):
        for edge in completion.edges(model):
            completion.add_missing(edge, make)
    if context.request.allow_missing:
        completion.do_without()
    else:
        for model in context.steps:
            completion.wait(model, finish)
    return Completed(list(completion.steps.values()), completion.added)


@dataclass(frozen=True, slots=True)
class Completed:
    """The steps of a plan, and the slices that were ``added`` as their readers lack them, by the
    names of models.
    """

    steps: list[PlannedStep]
    added: Mapping[str, Mapping[Slice, NeededSlice]] = field(default_factory=dict)


@dataclass(slots=True)
class _Completion:
    """The steps of a plan while it is completed, by the names of their models."""

    asked: PlanningContext
    steps: dict[str, PlannedStep]
    there: Mapping[str, There]
    old: Mapping[str, Sequence[OldTable]]
    waits: dict[str, dict[Slice, Lack]] = field(default_factory=dict)
    added: dict[str, dict[Slice, NeededSlice]] = field(default_factory=dict)

    @classmethod
    def of(cls, planned: Sequence[PlannedStep], context: PlanningContext) -> _Completion | None:
        """None where no step needs anything that may not be there."""
        edges = [edge for step in planned for edge in context.known.edges.get(step.name, ())]
        inputs = {edge.upstream.name: edge.upstream for edge in edges if may_lack(edge)}
        old = context.known.old_tables(context.request.fire_time.astimezone(UTC))
        steps = {step.name: step for step in planned}
        if not inputs and old.keys().isdisjoint(steps):
            return None
        return cls(context, steps, there_of(inputs.values(), context), old)

    @property
    def now(self) -> datetime:
        return self.asked.request.fire_time.astimezone(UTC)

    def edges(self, model: Model) -> list[Edge]:
        """Return what may lack. A view has no rows: its readers wait for what they read by it."""
        if self._step(model) is None or model.strategy.output is Output.VIEW:
            return []
        edges = self.asked.known.edges.get(model.name, ())
        return [edge for edge in edges if edge.upstream.name in self.there and may_lack(edge)]

    def _step(self, model: Model) -> PlannedStep | None:
        """Return the step of a model, if it makes something."""
        step = self.steps.get(model.name)
        return None if step is None or not step.slices or step.skipped or step.blocked else step

    def add_missing(self, edge: Edge, make: Make) -> None:
        """Add to the step of an input what the reader lacks of it; again, where that is itself."""
        name, reader = edge.upstream.name, edge.reader.name
        while (step := self.steps.get(name)) is not None and step.blocked is None:
            slices, there = self.steps[reader].slices, self.there[name]
            added = lacked(edge, slices, there, self.now, step.slices)
            if not added:
                return
            self.steps[name] = with_more(step, added, make)
            self.added.setdefault(name, {}).update(added)
            if not edge.is_self:
                return

    def do_without(self) -> None:
        """Say of the slices of all steps which of them are made without what they need."""
        for model in self.asked.steps:
            edges, step = self.edges(model), self._step(model)
            if step is not None and (edges or model.name in self.old):
                waits = self._waits(model, edges, step.slices)
                lacks = {slice_: str(lack) for slice_, lack in waits.items()}
                self.steps[model.name] = step.decide_each("lacks", lacks)

    def wait(self, model: Model, finish: Finish) -> None:
        """Find the slices of a step that wait: for what is not there, or waits itself. Of a batch
        of intervals those wait that lack something, and the others are made.
        """
        edges, step = self.edges(model), self._step(model)
        if step is None or not (edges or model.name in self.old):
            return
        waits = self._waits_by_order(model, edges, step.slices)
        if waits and model.by_time is not None:
            cut = self._cut(model, model.by_time, step, waits)
            if cut.slices != step.slices:
                step = finish(replace(cut, apart=step.apart or CUT))
                waits = self._waits_by_order(model, edges, step.slices)
        if waits:
            first = next(each for each in step.slices if each in waits)
            if model.in_order:
                later = step.slices[step.slices.index(first) :]
                waits = {each: waits.get(each, waits[first]) for each in later}
            if step.anew:  # what is dropped is made again whole, or stays
                waits = {each: waits.get(each, waits[first]) for each in step.slices}
            self.waits[model.name] = waits
            told = {each: str(why) for each, why in waits.items()}
            self.steps[model.name] = step.decide_each("waits_for", told)

    def _waits_by_order(
        self, model: Model, edges: Sequence[Edge], slices: Sequence[Slice]
    ) -> dict[Slice, Lack]:
        """Find the slices that wait, those of a model that reads its own table also for such as
        wait before them.
        """
        waits = self._waits(model, edges, slices)
        while waits and any(edge.is_self for edge in edges):
            self.waits[model.name] = waits
            more = self._waits(model, edges, slices)
            if len(more) == len(waits):
                break
            waits = more
        return waits

    def _waits(
        self, model: Model, edges: Sequence[Edge], slices: Sequence[Slice]
    ) -> dict[Slice, Lack]:
        waits: dict[Slice, Lack] = {}
        for old in self.old.get(model.name, ()):
            lack = Lack(str(old.table), WHOLE, old.why)
            held_by = (each for each in slices if old.holds(each, model.partition))
            waits |= {each: lack for each in held_by if each not in waits}
        for edge in edges:
            name = edge.upstream.name
            above, held = self.steps.get(name), self.waits.get(name, {})
            planned = () if above is None or above.skipped or above.blocked else above.slices
            made = [each for each in planned if each not in held]
            found = first_lacking(edge, slices, self.there[name], self.now, made)
            for slice_, lack in found.items():
                waits.setdefault(slice_, _cause(lack, held))
        return waits

    def _cut(
        self, model: Model, by_time: TimeRange, step: PlannedStep, waits: Collection[Slice]
    ) -> PlannedStep:
        """Cut the batches of a step where their intervals begin to wait, or end."""
        slices: list[Slice] = []
        for slice_ in step.slices:
            if slice_ not in waits or not isinstance(slice_, Interval):
                slices.append(slice_)
                continue
            units = list(by_time.units((slice_,)))
            held = self._waits(model, self.edges(model), units)
            runs = (list(alike) for _, alike in groupby(units, held.__contains__))
            parts = [Interval(run[0].start, run[-1].end) for run in runs]
            step = step.divided(slice_, parts) if len(parts) > 1 else step
            slices += parts
        return replace(step, slices=tuple(slices))


def with_more(step: PlannedStep, more: Mapping[Slice, NeededSlice], make: Make) -> PlannedStep:
    """Return a step with ``more`` slices. Of a step that was skipped only they are made."""
    known = () if step.skipped else step.slices
    made = make(step.model, together(*known, *more, spec=step.model.partition))
    states = [lack.state for lack in more.values()]
    tally = step.tally and step.tally.with_more(states, count_of(step.model, made.slices))
    return replace(
        step,
        slices=made.slices,
        apart=made.apart,
        bindings=made.bindings,
        skipped=None,
        tally=tally,
        for_readers={**step.for_readers, **more},
    )


def _cause(lack: Lack, held: Mapping[Slice, Lack]) -> Lack:
    """Return why an input waits itself, where it does."""
    if isinstance(lack.slice, Interval):
        for slice_, why in held.items():
            if isinstance(slice_, Interval) and slice_.contains(lack.slice):
                return why
    return held.get(lack.slice, lack)


def may_lack(edge: Edge) -> bool:
    """Return whether a reader may have to wait for an input."""
    if edge.need.rule is Rule.NONE:
        return False
    upstream = edge.upstream
    return sliced(upstream) is not Sliced.NOT or upstream.strategy.keeps_versions


def there_of(models: Iterable[Model], context: PlanningContext) -> dict[str, There]:
    """Return what is there of models; nothing of those that the run makes from nothing."""
    every = list(models)
    refreshed = {m.name for m in context.steps} if context.request.full_refresh else set[str]()
    timed = [model for model in every if model.by_time is not None]
    painted = context.known.intervals(timed) if timed else {}
    states = context.known.slices([model for model in every if model.by_time is None])
    by_name = {model.name: model for model in context.order}
    now = context.request.fire_time.astimezone(UTC)
    found: dict[str, There] = {}
    for model in every:
        is_new, line = model.name in refreshed, None
        if model.by_time is not None:
            known = IntervalHistory() if is_new else painted.get(model.name, IntervalHistory())
            start = start_above(model, by_name, context.graph, now)
            line = ModelIntervals(model.by_time, known, now, start)
        own = SliceStates() if is_new else states.get(model.name, SliceStates())
        found[model.name] = There(model, own, line)
    return found


def may_touch(model: Model, steps: Mapping[str, PlannedStep], planning: PlanningContext) -> bool:
    """Tell whether any slice of a model may need one that a plan makes.

    Args:
        model: The model.
        steps: The steps of the plan before the one of the model.
        planning: What the plan is of.

    Returns:
        False where `touched` and `following` return nothing.
    """
    edges = planning.known.edges.get(model.name, ())
    names = [edge.upstream.name for edge in edges]
    names += [view.name for view in planning.known.views.get(model.name, ())]
    upstream = (steps.get(name) for name in names)
    is_made = any(step is not None and not (step.skipped or step.blocked) for step in upstream)
    return is_made or any(edge.is_self for edge in edges)


def touched(
    model: Model,
    slices: Sequence[Slice],
    steps: Mapping[str, PlannedStep],
    context: PlanningContext,
) -> list[Slice]:
    """Return those of a model's slices that need a slice which a plan makes. Where late rows are
    asked for, also those that read a whole table which it makes by the bounds of their slice.
    """
    found: dict[Slice, None] = {}
    for edge in context.known.edges.get(model.name, ()):
        above = steps.get(edge.upstream.name)
        if edge.is_self or above is None or above.skipped or above.blocked:
            continue
        whole = context.request.late and edge.need.has_late_rows
        needs = touching(edge, above.slices, whole=whole)
        found |= dict.fromkeys(slice_ for slice_ in slices if needs(slice_))
    if any(_is_another(view, steps, context) for view in context.known.views.get(model.name, ())):
        return list(slices)
    return list(found)


def _is_another(view: Model, steps: Mapping[str, PlannedStep], context: PlanningContext) -> bool:
    """Return whether a plan gives a view another query."""
    step = steps.get(view.name)
    if step is None or step.skipped or step.blocked:
        return False
    states = context.known.slices([view]).get(view.name, SliceStates())
    return not states.state(WHOLE.text).has_current_definition  # its rows are its inputs'


def following(
    model: Model, slices: Sequence[Slice], made: Collection[Slice], context: PlanningContext
) -> list[Slice]:
    """Return those of ``slices``, in the order of time, that read what a run makes of their own
    table, and those that read these.
    """
    edge = next((each for each in context.known.edges.get(model.name, ()) if each.is_self), None)
    if edge is None or not made:
        return []
    needs = [touching(edge, made)]
    found: list[Slice] = []
    for slice_ in slices:
        if slice_ not in made and any(each(slice_) for each in reversed(needs)):
            found.append(slice_)
            needs.append(touching(edge, (slice_,)))
    return found
