"""Find the slices of inputs that slices of a reader need and that are not there. Pure.

An edge says what is needed (`model.slicing.needs`), the states of slices what is there. A slice
that has failed is not there, whatever an earlier run left of it; one without rows is. One that is
not over is needed only by a slice within it: the days of a month are, once they are over.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import NamedTuple

from penstock.engine.planning.intervals import IntervalHistory, ModelIntervals
from penstock.engine.planning.ranges import SliceStates
from penstock.model.definition.model import Model
from penstock.model.slicing.needs import Edge, Sliced, edge_by_kinds, sliced
from penstock.model.time import partition
from penstock.model.time.interval import Interval, Intervals, intersect, minus, split, union
from penstock.model.time.needs import Rule
from penstock.model.time.partition import PartitionSpec
from penstock.model.time.slice import WHOLE, Part, Slice, span_of, spans_of, zone_of
from penstock.model.values.strategy import Output
from penstock.states import SliceState

_INSTANT = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Lack:
    """A slice of a model that a reader needs and that is not there, with its state."""

    model: str
    slice: Slice
    state: str

    def __str__(self) -> str:
        """As people read it: ``raw/customers 2026-09-21 failed``."""
        return f"{_called(self.model, self.slice)} {self.state}"


class NeededSlice(NamedTuple):
    """The state of a slice that a reader needs, and the first such reader."""

    state: SliceState
    reader: str


def _called(model: str, slice_: Slice) -> str:
    return model if slice_ == WHOLE else f"{model} {slice_}"


@dataclass(frozen=True, slots=True)
class There:
    """The slices of a model that are there: of one by time its line, of others by their texts."""

    model: Model
    states: SliceStates = field(default_factory=SliceStates)
    line: ModelIntervals | None = None

    def state(self, text: str) -> SliceState:
        return self.states.state(text)


@dataclass(frozen=True, slots=True)
class _Missing:
    """A slice that is not there, and its moments."""

    span: Interval
    slice: Slice
    state: SliceState


def lacking(
    edge: Edge,
    slices: Sequence[Slice],
    there: There,
    now: datetime,
    planned: Collection[Slice] = (),
) -> Mapping[Slice, tuple[Lack, ...]]:
    """Return what each slice of the reader lacks of one input, in the order of time; none where it
    lacks nothing. ``planned`` are slices of the input that are made before.
    """
    is_made, name = _made_by(planned), edge.upstream.name
    lacks = {
        slice_: tuple(Lack(name, each.slice, each.state) for each in missing)
        for slice_, missing in _RULES[edge.need.rule](edge, slices, there, now, is_made)
    }
    return {slice_: of for slice_, of in lacks.items() if of}


def first_lacking(
    edge: Edge,
    slices: Sequence[Slice],
    there: There,
    now: datetime,
    planned: Collection[Slice] = (),
) -> Mapping[Slice, Lack]:
    """Return the first of what each slice lacks, as `lacking`."""
    found = _RULES[edge.need.rule](edge, slices, there, now, _made_by(planned))
    firsts = ((slice_, next(iter(missing), None)) for slice_, missing in found)
    name = edge.upstream.name
    return {s: Lack(name, each.slice, each.state) for s, each in firsts if each is not None}


def lacked(
    edge: Edge,
    slices: Sequence[Slice],
    there: There,
    now: datetime,
    planned: Collection[Slice] = (),
) -> dict[Slice, NeededSlice]:
    """Return the slices of an input that any slice of the reader lacks."""
    if edge.need.rule is Rule.MOMENTS and not edge.is_self:
        slices = _widest_slices(edge, slices, now)
    slices_to_make: dict[Slice, NeededSlice] = {}
    for slice_, lacks in _RULES[edge.need.rule](edge, slices, there, now, _made_by(planned)):
        reader = _called(edge.reader.name, slice_)
        for lack in lacks:
            slices_to_make.setdefault(lack.slice, NeededSlice(lack.state, reader))
    return slices_to_make


def _widest_slices(edge: Edge, slices: Sequence[Slice], now: datetime) -> Sequence[Slice]:
    """Return slices that lack all that any of them does: where they need everything up to some
    moment, the last of them, and those that are not over. An input that does not say where it
    starts is needed from the first of them on.
    """
    if edge.selection or any(window.first is not None for window in edge.need.windows):
        return slices
    span_of_slice = spans_of(edge.reader.partition)
    spans = [(span, each) for each in slices if (span := span_of_slice(each)) is not None]
    if len(spans) < 2:
        return slices
    latest = max(spans, key=lambda pair: pair[0].end)
    earliest = min(spans, key=lambda pair: pair[0].start)
    outermost = (earliest[1], latest[1])
    return [slice_ for span, slice_ in spans if span.end > now or slice_ in outermost]


def _made_by(planned: Collection[Slice]) -> Callable[[Slice], bool]:
    """Return whether slices contain one: a batch of intervals makes each of them."""
    if not planned:
        return lambda _: False
    texts = {each.text for each in planned}
    spans = union(each for each in planned if isinstance(each, Interval))

    def is_made(slice_: Slice) -> bool:
        if isinstance(slice_, Interval):
            return any(each.contains(slice_) for each in spans)
        return slice_.text in texts

    return is_made


_IsMade = Callable[[Slice], bool]
_Found = Iterator[tuple[Slice, Iterable[_Missing]]]


def _by_moments(
    edge: Edge, slices: Sequence[Slice], there: There, now: datetime, is_made: _IsMade
) -> _Found:
    if edge.is_equal:  # what is there needs no look at the calendar
        slices = [slice_ for slice_ in slices if not there.state(slice_.text).exists]
    zone = zone_of(edge.reader.partition)
    span_of_slice = spans_of(edge.reader.partition)
    spans = [(slice_, span_of_slice(slice_)) for slice_ in slices]
    wanted = [(s, span, edge.need.awaited(span, zone)) for s, span in spans if span is not None]
    moments = union(each for _, _, windows in wanted for each in windows)
    if edge.is_self and starts(there) is None:  # it begins with its first slice
        known = _known(there)
        moments = intersect(moments, (Interval(known.start, _LAST),) if known else ())
    least = min((span.start for _, span, _ in wanted), default=now)
    missing = [each for each in _missing(there, moments, least) if not is_made(each.slice)]
    missing.sort(key=lambda each: each.span)
    if not missing:
        return
    ends = [each.span.end for each in missing]
    for slice_, span, windows in wanted:
        until = span.start if edge.is_self else None
        found = [_within(missing, ends, window, (span, until, now)) for window in windows]
        yield slice_, _kept(edge, slice_, found[0] if len(found) == 1 else _merged(found))


def _kept(edge: Edge, slice_: Slice, missing: Iterable[_Missing]) -> Iterable[_Missing]:
    """Return those slices of an input that a slice of the reader needs."""
    if edge.selection is None:
        return missing
    keeps = edge.keeps(slice_)
    return (absent for absent in missing if keeps(absent.slice))


def _within(
    missing: Sequence[_Missing],
    ends: Sequence[datetime],
    window: Interval,
    own: tuple[Interval, datetime | None, datetime],
) -> Iterator[_Missing]:
    """Yield what is missing of a window, in the order of time, as far as it has to be there for a
    slice; of its own table only what ends before it begins.
    """
    span, until, now = own
    for position in range(bisect_left(ends, window.start + _INSTANT), len(missing)):
        each = missing[position]
        if each.span.start >= window.end:
            return
        if (until is None or each.span.end <= until) and _is_due(each.span, span, now):
            yield each


def _merged(found: Iterable[Iterable[_Missing]]) -> Iterator[_Missing]:
    """Yield what several windows lack, each once, in the order of time."""
    each_once = {each.slice: each for of in found for each in of}
    yield from sorted(each_once.values(), key=lambda each: each.span)


def _is_due(span: Interval, own: Interval, now: datetime) -> bool:
    """Return whether a slice of an input has to be there: one that is not over only for a slice of
    the reader within it.
    """
    return span.end <= now or span.contains(own)


def _missing(there: There, moments: Intervals, least: datetime | None = None) -> list[_Missing]:
    """Return the slices of an input that are not there, of some moments, in the order of time. An
    input has slices from ``least`` on in any case, unless it starts later.
    """
    if not moments:
        return []
    if there.line is not None:
        return list(_intervals_missing(there.line, moments))
    spec = there.model.partition
    assert spec is not None, "it has slices by time"
    found: dict[str, _Missing] = {}
    for each in moments:
        within = _begun(there, each, least)
        for value, span in () if within is None else _slices_in(spec, within):
            if not there.state(value).exists:
                found[value] = _Missing(span, Part(value), there.state(value))
    return list(found.values())


def _begun(there: There, moments: Interval, least: datetime | None) -> Interval | None:
    """Return the moments since an input begins: at its start, else as early as is asked for; of
    what is asked for from the beginning of time, at its first slice.
    """
    first = starts(there)
    if first is None and moments.start == _NEVER.start:
        known = _known(there)
        begins = [at for at in (known.start if known else None, least) if at is not None]
        first = min(begins, default=moments.end)
    start = moments.start if first is None else max(first, moments.start)
    return Interval(start, moments.end) if start < moments.end else None


@lru_cache(maxsize=256)
def _slices_in(spec: PartitionSpec, within: Interval) -> tuple[tuple[str, Interval], ...]:
    """Return the slices that have a moment of a stretch of time."""
    zone = zone_of(spec)
    bounds = (within.start, within.end - _INSTANT)
    first, last = (at.astimezone(zone).replace(tzinfo=None) for at in bounds)
    found: list[tuple[str, Interval]] = []
    for value in partition.values_between(spec, first, last):
        span = span_of(Part(value), spec)
        if span is not None:
            found.append((value, span))
    return tuple(found)


def _intervals_missing(line: ModelIntervals, moments: Intervals) -> Iterator[_Missing]:
    """Yield the units of a model by time that were not made, and have begun."""
    by_time, unit = line.by_time, line.by_time.unit
    made = line.painted.where(lambda state: state.exists)
    known = made or line.painted.recorded
    start = by_time.start(line.now) or line.start or (known[0].start if known else None)
    if start is None:
        expected = by_time.expected(line.now)
        start = expected[0].start if expected else unit.floor(line.now)
    current = unit.next(unit.floor(line.now))
    if start >= current:
        return
    for gap in minus(intersect(moments, (Interval(start, current),)), made):
        for piece in split(gap, unit):
            whole = unit.at(piece.start)
            yield _Missing(whole, whole, _state_at(line.painted, whole))


def _state_at(painted: IntervalHistory, interval: Interval) -> SliceState:
    states = {e.state for e in painted.events if e.interval.overlap(interval) is not None}
    attempts = (state for state in states if state.is_attempt)
    return min(attempts, key=_attempt_order, default=SliceState.MISSING)


def _attempt_order(state: SliceState) -> tuple[bool, int]:
    return state is not SliceState.RUNNING, state.urgency


def _by_value(
    _: Edge, slices: Sequence[Slice], there: There, __: datetime, is_made: _IsMade
) -> _Found:
    """Look for the same slices, by their texts."""
    for slice_ in slices:
        state = there.state(slice_.text)
        if not state.exists and not is_made(slice_):
            yield slice_, [_Missing(_NEVER, slice_, state)]


def _every(
    edge: Edge, slices: Sequence[Slice], there: There, __: datetime, is_made: _IsMade
) -> _Found:
    """Look for what keeps a table from being whole: slices that failed, and, of one that says
    where it starts, holes before its last one.
    """
    missing = [each for each in _holes(there) if not is_made(each.slice)]
    if missing:
        yield from ((slice_, _kept(edge, slice_, missing)) for slice_ in slices)


def _holes(there: There) -> Iterator[_Missing]:
    model = there.model
    if sliced(model) is not Sliced.MOMENTS:
        for text, state in sorted(there.states.items()):
            if state.blocks_readers and (text or _is_held(model)):
                yield _Missing(_NEVER, Part(text) if text else WHOLE, state)
        return
    known, start = _known(there), starts(there)
    if known is None:
        return
    first = known.start if start is None else start
    if first < known.end:
        for each in _missing(there, (Interval(first, known.end),)):
            if each.state.blocks_readers or start is not None:
                yield each


def _known(there: There) -> Interval | None:
    """Return from the start of the first slice that is known to the end of the last; None where
    none is.
    """
    if there.line is not None:
        spans = [event.interval for event in there.line.painted.events]
    else:
        known = map(spans_of(there.model.partition), map(Part, there.states))
        spans = [each for each in known if each is not None]
    if not spans:
        return None
    return Interval(min(e.start for e in spans), max(e.end for e in spans))


def starts(there: There) -> datetime | None:
    """Return where an input says that it begins."""
    if there.line is not None:
        return there.line.by_time.start(there.line.now)
    start = None if there.model.partition is None else partition.start_of(there.model.partition)
    return None if start is None else start.astimezone(UTC)


def _as_it_is(
    _: Edge, slices: Sequence[Slice], there: There, __: datetime, is_made: _IsMade
) -> _Found:
    state = there.state(WHOLE.text)
    is_held = sliced(there.model) is Sliced.NOT and state.blocks_readers and _is_held(there.model)
    if is_held and not is_made(WHOLE):
        yield from ((slice_, [_Missing(_NEVER, WHOLE, state)]) for slice_ in slices)


def _is_held(model: Model) -> bool:
    """Return whether a failed run of a whole table leaves out what its readers count on."""
    return model.strategy.keeps_versions


def _nothing(*_: object) -> _Found:
    yield from ()


_LAST = datetime.max.replace(tzinfo=UTC)
_NEVER = Interval(datetime.min.replace(tzinfo=UTC), datetime.min.replace(tzinfo=UTC) + _INSTANT)
_RULES: Mapping[Rule, Callable[[Edge, Sequence[Slice], There, datetime, _IsMade], _Found]] = {
    Rule.MOMENTS: _by_moments,
    Rule.SAME: _by_value,
    Rule.ALL: _every,
    Rule.TABLE: _as_it_is,
    Rule.NONE: _nothing,
}


def edge_to(reader: Model, upstream: Model, edges: Mapping[str, Edge]) -> Edge | None:
    """Return the edge by which what a model makes reaches a reader of it: the one that is known, or
    by their kinds where it makes a view or files. None where others lie between them.
    """
    edge = edges.get(upstream.name)
    if edge is not None:
        return edge
    beside = upstream.strategy.output is Output.VIEW or upstream.files_written
    return edge_by_kinds(reader, upstream) if beside else None


def touching(
    edge: Edge, of: Collection[Slice], *, whole: bool = False, before: bool = False
) -> Callable[[Slice], bool]:
    """Return whether a slice of the reader reads any of these slices of an input. With ``whole``
    also a slice that reads the table as it is; ``before``: those that have to be there before it.
    """
    rule = edge.need.rule
    if not of or rule is Rule.NONE or (rule is Rule.TABLE and not whole):
        return lambda _: False
    texts, spec = {each.text for each in of}, edge.reader.partition
    if rule is Rule.SAME:
        return lambda slice_: slice_.text in texts
    spans = list(map(spans_of(edge.upstream.partition), of))
    known = union(span for span in spans if span is not None)
    if rule is not Rule.MOMENTS or len(known) == 0 or None in spans:
        return lambda slice_: edge.selection is None or any(map(edge.keeps(slice_), of))
    zone, ends, span = zone_of(spec), [each.end for each in known], spans_of(spec)
    is_outside = edge.need.outside(Interval(known[0].start, known[-1].end))

    def has_moments_of(window: Interval) -> bool:
        at = bisect_right(ends, window.start)  # the first that ends after it begins
        return at < len(known) and known[at].start < window.end

    def needs(slice_: Slice) -> bool:
        own = span(slice_)
        if own is None or is_outside(own):
            return own is None
        windows = (edge.need.awaited if before else edge.need.moments)(own, zone)
        if edge.is_self:
            windows = tuple(w for each in windows for w in minus((each,), (own,)))
        if not any(map(has_moments_of, windows)):
            return False
        return edge.selection is None or any(
            keeps(needed)
            for keeps in (edge.keeps(slice_),)
            for needed, moments in zip(of, spans, strict=True)
            if moments and any(moments.overlap(window) is not None for window in windows)
        )

    return needs


def missing_to(edge: Edge, of: Collection[Slice], now: datetime) -> Callable[[Slice], bool]:
    """Return whether a slice of the reader cannot be made without these slices of an input, which
    failed or are still being made.
    """
    if edge.need.rule is not Rule.MOMENTS:
        return touching(edge, of, whole=True, before=True)
    span, own_span = spans_of(edge.upstream.partition), spans_of(edge.reader.partition)
    current = {each: at for each in of if (at := span(each)) is not None and at.end > now}
    needs = touching(edge, [e for e in of if e not in current], whole=True, before=True)
    if not current:
        return needs
    has_current = touching(edge, current, whole=True, before=True)

    def is_needed(slice_: Slice) -> bool:
        if needs(slice_) or not has_current(slice_):
            return needs(slice_)
        own = own_span(slice_)
        return own is None or any(_is_due(at, own, now) for at in current.values())

    return is_needed
