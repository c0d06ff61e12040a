"""Plan a retry: what past runs were to make and did not, as they were to make it. Pure.

A slice is left where no run has published it since the run began that was to make it: what
succeeded stays, whoever made it, and a retry can be retried. What was skipped because of a failure
goes with it. Arguments, payload and the time of the run are those of the run that is retried;
definitions and inputs are the latest.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING

from penstock.engine.planning.goals import Goal, step_of
from penstock.engine.planning.plan import PlannedStep, PlanningContext
from penstock.engine.planning.ranges import SliceStates
from penstock.engine.planning.recorded_plan import RecordedPlan, RecordedStep
from penstock.engine.planning.slice_reason import RunInputs
from penstock.engine.planning.slices import RunRequest
from penstock.errors import ArgumentError, PartitionError
from penstock.model.definition.model import Model
from penstock.model.time.interval import Interval, interval_of, minus, union
from penstock.model.time.slice import Slice
from penstock.model.time.time_range import TimeRange
from penstock.states import PUBLISHED

if TYPE_CHECKING:
    from penstock.engine.state.records import SliceRecord, StepRecord

INPUTS = "inputs are the latest, not those of then"


@dataclass(frozen=True, slots=True)
class PastPlan:
    """A run that is retried: its plan, and its ``steps`` as they ended."""

    run_id: str
    began: datetime
    plan: RecordedPlan
    args: Mapping[str, str | None]
    steps: Sequence[StepRecord] = ()

    @property
    def given(self) -> RunInputs:
        return RunInputs(self.args, self.plan.request.fire_time, self.plan.request.payload)


Published = Callable[[Model], Iterable["SliceRecord"]]


@dataclass(frozen=True, slots=True)
class Left:
    """Slices that runs have left, by the names of models, each with what its run was given; and the
    recorded step of the last run, with whether it has made any. ``notices`` are worth saying.
    """

    slices: Mapping[str, Mapping[Slice, RunInputs]] = field(default_factory=dict)
    steps: Mapping[str, tuple[RecordedStep, bool]] = field(default_factory=dict)
    notices: tuple[str, ...] = ()

    def request(self, of: RunRequest) -> RunRequest:
        """The request of the retry, by that of the last run."""
        given = [each for slices in self.slices.values() for each in slices.values()]
        same = all(each == given[0] for each in given)
        return replace(
            of,
            select=tuple(self.slices),
            exclude=(),
            to=(),
            args=of.args if same else {},
            payload=of.payload if same else None,
            trigger="retry",
            full_refresh=False,
            upstream=False,
            changed=False,
            force=False,
        )


def left_of(runs: Sequence[PastPlan], models: Mapping[str, Model], published: Published) -> Left:
    """Return what runs have left, of which a later one counts. ``published`` are the records of a
    model's slices. Raises ArgumentError where a model has other slices now.
    """
    found: dict[str, dict[Slice, RunInputs]] = {}
    steps: dict[str, tuple[RecordedStep, bool]] = {}
    notices: dict[str, None] = {}
    records: dict[str, tuple[SliceRecord, ...]] = {}
    for run in sorted(runs, key=lambda each: each.began):
        for step in run.plan.steps:
            model = models.get(step.step)
            if not step.slices:
                continue
            if model is None:
                notices[f"{step.step} is left out: there is no such model any more"] = None
                continue
            if model.name not in records:
                records[model.name] = tuple(published(model))
            made = [each for each in records[model.name] if each.published_at >= run.began]
            left = list(_left(run, step, model, made))
            if not left:
                continue
            if step.definition != model.definition_hash:
                notices[f"{step.step} is made by its definition of now, which has changed"] = None
            kept = found.setdefault(step.step, {})
            _put(kept, left, run.given)
            steps[step.step] = (step, bool(made))
    return Left(
        {name: _in_order(models[name], of) for name, of in found.items()}, steps, tuple(notices)
    )


def _put(kept: dict[Slice, RunInputs], left: Sequence[Slice], given: RunInputs) -> None:
    """A later run's slices in place of an earlier one's."""
    new = union(each for each in left if isinstance(each, Interval))
    for each in [each for each in kept if isinstance(each, Interval)] if new else ():
        rest, before = minus((each,), new), kept.pop(each)
        kept.update(dict.fromkeys(rest, before))
    kept.update(dict.fromkeys(left, given))


def _in_order(model: Model, slices: Mapping[Slice, RunInputs]) -> dict[Slice, RunInputs]:
    if model.by_time is None:
        return dict(slices)
    intervals = sorted(each for each in slices if isinstance(each, Interval))
    return {each: slices[each] for each in intervals}


def _left(
    run: PastPlan, step: RecordedStep, model: Model, made: Sequence[SliceRecord]
) -> Iterator[Slice]:
    """The slices that a step was to make and nobody has made since."""
    try:
        planned = step.slices_of(model)
        idle = frozenset(step.idle_of(model))
    except (PartitionError, ValueError) as error:
        raise ArgumentError(
            f"run {run.run_id} cannot be retried: the slices of {model.name} are others now",
            hint="run what is missing: penstock run",
        ) from error
    ended = {each.slice: each.state for each in run.steps if each.step == step.step}
    bad = {text for text, state in ended.items() if state not in PUBLISHED}
    texts = {each.slice for each in made}
    intervals = [own for each in made if (own := interval_of(each.slice)) is not None]
    for slice_ in planned:
        # What was to be made only if its input changed, and was not tried, is as it is.
        if slice_ in idle and slice_.text not in bad:
            continue
        if not isinstance(slice_, Interval):
            if slice_.text not in texts and ended.get(slice_.text) not in PUBLISHED:
                yield slice_
            continue
        if ended.get(slice_.text) in PUBLISHED:
            continue
        yield from minus((slice_,), intervals)


def goal_of(left: Left) -> Goal:
    """Return what a retry makes of the models of a plan."""

    def plan(context: PlanningContext) -> list[PlannedStep]:
        return [_step(model, left, context) for model in context.steps if model.name in left.slices]

    return plan


def _step(model: Model, left: Left, context: PlanningContext) -> PlannedStep:
    given = left.slices[model.name]
    recorded, has_made = left.steps[model.name]
    step = step_of(model, tuple(given), context)
    several = len(set(left_givens(left))) > 1
    if several and model.by_time is not None:
        step = replace(step, slices=tuple(_batches(model.by_time, given)))
    by_slice = {each: _given_of(each, given) for each in step.slices}
    line = context.lines.get(model.name)
    states = context.known.slices([model]).get(model.name, SliceStates()) if line is None else None
    seen = line.painted.runs if line is not None else states.runs if states is not None else None
    step = replace(
        step,
        again=recorded.again,
        # What it dropped is dropped: what it has made since stays.
        anew=recorded.anew and not has_made,
        seen=seen,
    )
    return step.decide_each("inputs", by_slice) if several else step


def _batches(by_time: TimeRange, given: Mapping[Slice, RunInputs]) -> list[Interval]:
    """The batches of intervals, in order; none is of two runs that were given other things."""
    alike = defaultdict[str, list[Interval]](list)
    for each, of in given.items():
        if isinstance(each, Interval):
            alike[repr(of)].append(each)
    return sorted(batch for own in alike.values() for batch in by_time.batches(union(own)))


def left_givens(left: Left) -> Iterator[str]:
    """Texts of what the runs were given, to tell whether they differ."""
    for slices in left.slices.values():
        yield from (repr(each) for each in slices.values())


def _given_of(slice_: Slice, given: Mapping[Slice, RunInputs]) -> RunInputs:
    """Return what the run of a slice was given, or that of a batch of intervals."""
    if slice_ in given:
        return given[slice_]
    assert isinstance(slice_, Interval), "only intervals are put together"
    return next(
        of for each, of in given.items() if isinstance(each, Interval) and each.overlap(slice_)
    )
