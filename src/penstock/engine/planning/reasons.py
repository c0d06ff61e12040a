"""Say why a run makes each slice of a plan: ranges of slices, each with one reason. Pure.

What is known of a slice decides first (it is missing, has failed, is
behind); of one that is materialized, why it is made all the same. Slices that follow each other and
have the same reason are one range.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import groupby
from types import MappingProxyType

from penstock.engine.planning.intervals import IntervalHistory
from penstock.engine.planning.plan import Known, Plan, PlannedStep, Seen, count_of
from penstock.engine.planning.ranges import REBUILD, SliceStates, by_others
from penstock.engine.planning.restatement_scope import why_not
from penstock.engine.planning.slice_reason import HELD, PLANNED, Reason, ReasonedRange
from penstock.engine.planning.slices import RunRequest
from penstock.engine.results import StaleSlices
from penstock.errors import LakeError, PartitionError
from penstock.model.definition.model import Model
from penstock.model.time.interval import Interval, intersect, minus
from penstock.model.time.partition import TIME_KINDS, PartitionSpec, between
from penstock.model.time.slice import WHOLE, Part, Slice
from penstock.states import SliceState

_OF_STATE: Mapping[SliceState, Reason] = {
    SliceState.MISSING: Reason.MISSING,
    SliceState.OTHER_KIND: Reason.MISSING,
    SliceState.WAITING: Reason.MISSING,
    SliceState.RUNNING: Reason.MISSING,
    SliceState.FAILED: Reason.FAILED,
    SliceState.SKIPPED: Reason.FAILED,
    SliceState.BEHIND: Reason.BEHIND,
    SliceState.LATE: Reason.LATE,
    SliceState.STALE: Reason.CHANGED,
    SliceState.CHANGED_OUTSIDE: Reason.CHANGED,
    SliceState.UNFINISHED: Reason.NOT_OVER,
}
_OF_DEFINITION = "its definition"
_WHY: Mapping[SliceState, str] = {
    SliceState.SKIPPED: "its input failed",
    SliceState.WAITING: "it waited for its input",
    SliceState.RUNNING: "another run is making it",
    SliceState.STALE: _OF_DEFINITION,
}
IF_CHANGED = "if its input changes in this run"
_FIXED = frozenset({*_WHY.values(), IF_CHANGED})
#: the runs that hold slices of a model, by its name and the texts of slices
Held = Callable[[Model, Sequence[str]], Mapping[str, str]]


@dataclass(frozen=True, slots=True)
class _Piece:
    """A slice, or a part of one that has one state."""

    slice: Slice
    reason: Reason
    why: str | None
    state: str
    until: str | None
    reader: str | None

    @property
    def kind(self) -> tuple[Reason, str, str | None, bool]:
        """The kind that pieces of one range share. Texts that differ from slice to slice, such as
        the snapshots of inputs, are no other kind.
        """
        fixed_reason = self.why if self.why in _FIXED else None
        return self.reason, self.state, fixed_reason, self.reader is not None


def with_reasons(
    plan: Plan,
    known: Known,
    held: Held = lambda _, __: {},
    snapshots: Mapping[str, tuple[int, str]] = MappingProxyType({}),
) -> Plan:
    """Return the plan with the ranges of its steps, and with what it was made from: ``known``, and
    ``snapshots`` of the lakes.
    """
    made = [step for step in plan.steps if step.slices and not step.skipped]
    by_time = [step.model for step in made if step.model.by_time is not None]
    states = known.slices([step.model for step in made if step.model.by_time is None])
    painted = known.intervals(by_time) if by_time else {}
    reasons = _Reasons(plan.request, states, painted, held)
    runs = {name: of.runs for of_kind in (states, painted) for name, of in of_kind.items()}
    steps = tuple(_reasoned(step, reasons) for step in plan.steps)
    return replace(plan, steps=steps, seen=Seen(snapshots, runs))


def stale_slices(models: Sequence[Model], known: Known) -> dict[str, tuple[Slice, ...]]:
    """Return the slices that other definitions made, by the names of models that have any."""
    timed = [model for model in models if model.by_time is not None]
    states = known.slices([model for model in models if model.by_time is None])
    painted = known.intervals(timed) if timed else {}
    found: dict[str, tuple[Slice, ...]] = {}
    for model in models:
        if model.by_time is not None:
            line = painted.get(model.name)
            slices: tuple[Slice, ...] = () if line is None else line.of_states(SliceState.STALE)
        else:
            of = states.get(model.name, SliceStates())
            stale = of.items() if SliceState.STALE in of.kinds else ()
            slices = tuple(_slice(text) for text, state in stale if state is SliceState.STALE)
        if slices:
            found[model.name] = slices
    return found


def left_stale(steps: Sequence[PlannedStep], known: Known) -> tuple[StaleSlices, ...]:
    """Return the slices of other definitions that a plan leaves and a run could rebuild; none of a
    catalog that cannot be read: a run says so.
    """
    by_name = {step.name: step for step in steps if step.model.slicing}
    stale: Mapping[str, Sequence[Slice]] = {}
    with suppress(LakeError):
        stale = stale_slices([step.model for step in by_name.values()], known)
    found: list[StaleSlices] = []
    for name, slices in stale.items():
        step = by_name[name]
        planned = () if step.skipped else step.slices
        left: Sequence[Slice] = [each for each in slices if each not in planned]
        if step.model.by_time is not None:
            intervals = (each for each in slices if isinstance(each, Interval))
            left = minus(intervals, (each for each in planned if isinstance(each, Interval)))
        number = count_of(step.model, left)
        if number and not why_not(step.model):
            found.append(StaleSlices(name, number, REBUILD))
    return tuple(found)


def settings_changed(model: Model, known: Known) -> tuple[str, ...] | None:
    """Return which settings of Spark are others than those that stale slices were made under; None
    where some have another definition, or rows of an earlier run.
    """
    if model.by_time is not None:
        line = known.intervals([model])[model.name]
        causes = {event.behind for event in line.events if event.state == SliceState.STALE}
    else:
        of = known.slices([model])[model.name]
        causes = {of.causes.get(text) for text, state in of.items() if state == SliceState.STALE}
    said = sorted(cause for cause in causes if cause is not None)
    return tuple(said) if said and None not in causes else None


def _slice(text: str) -> Slice:
    return Part(text) if text else WHOLE


@dataclass(frozen=True, slots=True)
class _Reasons:
    """Derive reasons from what is known of the slices of a plan, by the names of models."""

    request: RunRequest
    states: Mapping[str, SliceStates] = field(default_factory=dict)
    painted: Mapping[str, IntervalHistory] = field(default_factory=dict)
    held: Held = lambda _, __: {}

    def pieces(self, step: PlannedStep) -> Iterator[_Piece]:
        held = self.held(step.model, [each.text for each in step.slices])
        for slice_ in step.slices:
            waits, holder = step.work(slice_).waits_for, held.get(slice_.text)
            state = SliceState.WAITING if waits else HELD if holder else PLANNED
            for part, reason, why in self._parts(step, slice_):
                for piece, reader in _by_readers(step, part):
                    yield _Piece(piece, reason, why, state, waits or holder, reader)

    def _parts(
        self, step: PlannedStep, slice_: Slice
    ) -> Iterator[tuple[Slice, Reason, str | None]]:
        if not isinstance(slice_, Interval):
            states = self.states.get(step.name, SliceStates())
            state = SliceState.LATE if slice_.text in states.late else states.state(slice_.text)
            yield slice_, *self._reason(step, slice_, state, states.causes.get(slice_.text))
            return
        painted = self.painted.get(step.name, IntervalHistory())
        known: list[tuple[Interval, SliceState, str | None]] = []
        for event in painted.events:
            state = SliceState.LATE if event.is_late else event.state
            cause = event.behind or (None if event.since is None else by_others(event.since))
            within = intersect((event.interval,), (slice_,))
            known += ((part, state, cause) for part in within)
        lacking = minus((slice_,), (part for part, _, _ in known))
        known += ((part, SliceState.MISSING, None) for part in lacking)
        for part, state, cause in sorted(known, key=lambda each: each[0]):
            yield part, *self._reason(step, slice_, state, cause)

    def _reason(
        self, step: PlannedStep, slice_: Slice, state: SliceState, cause: str | None
    ) -> tuple[Reason, str | None]:
        reason = _OF_STATE.get(state)
        if self.request.full_refresh:
            return Reason.FORCED, "--full-refresh"
        work = step.work(slice_)
        if work.cause and state in (SliceState.MATERIALIZED, SliceState.UNFINISHED):
            return work.cause
        if reason is not None and not (step.again and reason is Reason.CHANGED):
            return reason, cause or _WHY.get(state)
        if step.again:
            return Reason.RESTATED, step.again
        if work.condition is not None:
            return Reason.BEHIND, IF_CHANGED
        return self._made_anyhow(step)

    def _made_anyhow(self, step: PlannedStep) -> tuple[Reason, str | None]:
        """Return why a slice is made that lacks nothing."""
        request, model = self.request, step.model
        is_all = request.range is not None and request.range.all
        if is_all or request.force:
            return Reason.FORCED, "--force" if request.force else "--all"
        if request.partition is not None and step.slices != (WHOLE,):
            return Reason.FORCED, "asked for by itself"
        if model.by_time is not None and model.by_time.lookback:
            return Reason.LATE, "lookback"
        if model.partition is not None:
            return Reason.NOT_OVER, None
        if request.range is not None:
            return Reason.BEHIND, "slices that it reads are made"
        return Reason.FORCED, "made in each run"


def _by_readers(step: PlannedStep, part: Slice) -> Iterator[tuple[Slice, str | None]]:
    """Yield a slice with the reader that it is made for; an interval in parts, by their readers."""
    if not isinstance(part, Interval) or not step.for_readers:
        yield part, step.for_readers[part].reader if part in step.for_readers else None
        return
    remaining: tuple[Interval, ...] = (part,)
    pieces: dict[Interval, str | None] = {}
    for slice_, needed in step.for_readers.items():
        if isinstance(slice_, Interval):
            pieces |= dict.fromkeys(intersect(remaining, (slice_,)), needed.reader)
            remaining = minus(remaining, (slice_,))
    yield from sorted((pieces | dict.fromkeys(remaining)).items())


def _reasoned(step: PlannedStep, reasons: _Reasons) -> PlannedStep:
    if not step.slices or step.skipped:
        return step
    model, found = step.model, list[ReasonedRange]()
    for _, pieces in groupby(reasons.pieces(step), key=lambda each: each.kind):
        for run in _runs(list(pieces), model.partition):
            found.append(_range(run, model))
    return replace(step, ranges=tuple(found))


def _runs(pieces: Sequence[_Piece], spec: PartitionSpec | None) -> Iterator[Sequence[_Piece]]:
    """Cut pieces where one does not follow upon the one before."""
    follows = _follows_of([each.slice for each in pieces], spec)
    start = 0
    for at in range(1, len(pieces)):
        if not follows(pieces[at - 1].slice, pieces[at].slice):
            yield pieces[start:at]
            start = at
    yield pieces[start:]


def _follows_of(
    slices: Sequence[Slice], spec: PartitionSpec | None
) -> Callable[[Slice, Slice], bool]:
    first, last = slices[0], slices[-1]
    if isinstance(first, Interval):
        return lambda a, b: isinstance(a, Interval) and isinstance(b, Interval) and a.end == b.start
    if not isinstance(first, Part) or not isinstance(last, Part) or spec is None:
        return lambda _, __: True
    if spec.kind not in TIME_KINDS:  # values have no order
        return lambda _, __: True
    places = _places(spec, first.value, last.value)
    return lambda a, b: places.get(b.text, 0) - places.get(a.text, 0) == 1


@lru_cache(maxsize=256)
def _places(spec: PartitionSpec, first: str, last: str) -> Mapping[str, int]:
    """Return the place of each slice in the order of time; of too many none."""
    try:
        return {value: at for at, value in enumerate(between(spec, first, last))}
    except PartitionError:
        return {}


def _range(pieces: Sequence[_Piece], model: Model) -> ReasonedRange:
    first, last = pieces[0], pieces[-1]
    return ReasonedRange(
        first.slice,
        last.slice,
        _count(pieces, model),
        first.reason,
        _first_of([each.why for each in pieces]),
        first.state,
        _first_of([each.until for each in pieces]),
        _first_of([piece.reader for piece in pieces]),
    )


def _count(pieces: Sequence[_Piece], model: Model) -> int:
    if model.by_time is None:
        return len(pieces)
    intervals = (each.slice for each in pieces if isinstance(each.slice, Interval))
    return sum(1 for _ in model.by_time.units(model.by_time.whole(intervals)))


def _first_of(texts: Sequence[str | None]) -> str | None:
    """Return the first text, and how many others there are."""
    known = list(dict.fromkeys(text for text in texts if text is not None))
    if not known:
        return None
    return known[0] if len(known) == 1 else f"{known[0]}, and {len(known) - 1:,} more"
