"""Plans as runs record them: what was asked for, and the steps with their slices and reasons. Pure.

A record of a run has one such text, of which `penstock runs show` prints the reasons, and by which
`penstock retry` does the same again. Slices that follow each other in time are written as their
first and last, so that a year of days is as short as a week.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from penstock.engine.planning.plan import Plan, PlannedStep
from penstock.engine.planning.ranges import SliceRange
from penstock.engine.planning.saved_plan import request_as_dict, request_of, slice_of
from penstock.engine.planning.slices import RunRequest
from penstock.errors import PartitionError
from penstock.model.definition.model import Model
from penstock.model.time.interval import Interval, union
from penstock.model.time.partition import TIME_KINDS, between
from penstock.model.time.slice import Part, Slice

Ends = Sequence[str]  # the first and the last of slices that follow each other, or the only one


@dataclass(frozen=True, slots=True)
class RecordedStep:
    """A step of a plan. ``skipped`` says why there was nothing to do; else it has ``slices``, and
    ``ranges`` say why each was made, as `ReasonedRange.to_dict` does; those of ``if_changed`` only
    if something that they read changed in the run.
    """

    step: str
    table: str
    definition: str
    slices: tuple[Ends, ...] = ()
    anew: bool = False
    again: str | None = None
    skipped: str | None = None
    ranges: tuple[Mapping[str, Any], ...] = ()
    if_changed: tuple[Ends, ...] = ()

    @classmethod
    def of(cls, step: PlannedStep) -> RecordedStep:
        conditional = frozenset() if step.skipped else step.conditional()
        return cls(
            step.name,
            str(step.model.target),
            step.model.definition_hash,
            () if step.skipped else tuple(folded(step.model, step.slices)),
            step.anew,
            step.again,
            None if step.skipped is None else str(step.skipped),
            tuple(each.to_dict() for each in step.ranges),
            tuple(folded(step.model, [each for each in step.slices if each in conditional])),
        )

    def slices_of(self, model: Model) -> tuple[Slice, ...]:
        """Its slices as the model has them now. Raises PartitionError where it has others."""
        return tuple(unfolded(model, self.slices))

    def idle_of(self, model: Model) -> tuple[Slice, ...]:
        """Its slices that were made only if something changed. Raises PartitionError."""
        return tuple(unfolded(model, self.if_changed))


@dataclass(frozen=True, slots=True)
class RecordedPlan:
    """The request of a run and the steps of its plan."""

    request: RunRequest
    steps: tuple[RecordedStep, ...]

    @classmethod
    def of(cls, plan: Plan) -> RecordedPlan:
        return cls(plan.request, tuple(map(RecordedStep.of, plan.steps)))

    def to_json(self) -> str:
        steps = [{name: getattr(step, name) for name in step.__slots__} for step in self.steps]
        value = {"request": request_as_dict(self.request), "steps": steps}
        return json.dumps(value, ensure_ascii=False, default=str)

    @classmethod
    def parse(cls, text: str) -> RecordedPlan:
        value = json.loads(text)
        steps: list[dict[str, Any]] = [
            {name: tuple(of) if isinstance(of, list) else of for name, of in step.items()}
            for step in value["steps"]
        ]
        return cls(request_of(value["request"]), tuple(RecordedStep(**step) for step in steps))


def folded(model: Model, slices: Sequence[Slice]) -> Iterator[Ends]:
    """Yield the ends of slices that follow each other: of intervals one text for all of them."""
    intervals = [each for each in slices if isinstance(each, Interval)]
    if intervals:
        yield from ([each.text] for each in union(intervals))
        return
    texts = [each.text for each in slices]
    spec = model.partition
    if spec is None or spec.kind not in TIME_KINDS or len(texts) < 2:
        yield from ([text] for text in texts)
        return
    try:
        places = {text: at for at, text in enumerate(between(spec, texts[0], texts[-1]))}
    except PartitionError:  # too many, or not in order
        places = {}
    start = 0
    for at in range(1, len(texts) + 1):
        if at < len(texts) and places.get(texts[at], -1) - places.get(texts[at - 1], -1) == 1:
            continue
        yield [texts[start]] if at - start == 1 else [texts[start], texts[at - 1]]
        start = at


def unfolded(model: Model, ends: Iterable[Ends]) -> Iterator[Slice]:
    """Yield the slices between these ends. Raises PartitionError where the model has others."""
    every = list(ends)
    if model.by_time is not None:
        intervals = (slice_of(text) for (text,) in every)
        yield from model.by_time.batches(
            union(each for each in intervals if isinstance(each, Interval))
        )
        return
    for first, *last in every:
        if not last:
            slice_ = slice_of(first)
            yield slice_
        elif model.partition is None:
            raise PartitionError(f"{model.name} has no slice {first!r} any more")
        else:
            yield from map(Part, between(model.partition, first, last[0]))


_STARTING = timedelta(minutes=1)  # between a request and the record of its run


def as_command(request: RunRequest, started: datetime | None = None) -> str:
    """Return what was asked for, as a command: ``penstock run raw/orders --partition ...``.

    The time of the run is part of it where that is not when the run ``started``.
    """
    words = ["penstock", "run", *request.select]
    for name in ("exclude", "to"):
        for value in getattr(request, name):
            words += [f"--{name}", value]
    if request.range is not None:
        words += _range(request.range)
    if request.partition is not None:
        words += ["--partition", str(request.partition)]
    if started is not None and abs(request.fire_time - started) > _STARTING:
        moment = request.fire_time.astimezone(UTC).isoformat()
        words += ["--fire-time", moment.replace("+00:00", "Z")]
    for name, text in request.args.items():
        words += ["--arg", f"{name}={text}"]
    if request.payload is not None:
        words += ["--payload", json.dumps(dict(request.payload), default=str, ensure_ascii=False)]
    flags = {
        "full-refresh": request.full_refresh,
        "upstream": request.upstream,
        "allow-missing": request.allow_missing,
        "behind": request.late,
        "no-behind": not request.behind,
        "changed": request.changed,
        "force": request.force,
    }
    words += [f"--{name}" for name, is_set in flags.items() if is_set]
    return shlex.join(words)


def _range(asked: SliceRange) -> Iterator[str]:
    for name, moment in (("from", asked.first), ("to", asked.last)):
        if moment is not None:
            yield from (f"--{name}", str(moment))
    if asked.all:
        yield "--all"
