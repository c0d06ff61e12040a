"""Choose the intervals of a model that a run makes, by what was made before. Pure.

What runs did is painted over a line of time, the oldest first: the last word on each moment counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import takewhile
from types import MappingProxyType

from penstock.engine.planning.ranges import (
    SliceRange,
    Tally,
    idle,
    said,
)
from penstock.engine.planning.slice_reason import UP_TO_DATE, Skip, SkipKind
from penstock.engine.state.records import SliceRecord
from penstock.errors import ArgumentError
from penstock.model.definition.graph import Graph
from penstock.model.definition.model import Model
from penstock.model.definition.warnings import START_HINT, begins
from penstock.model.time.interval import Interval, Intervals, intersect, interval_of, minus, union
from penstock.model.time.moments import read_moment, read_range
from penstock.model.time.partition import MAX_SLICES, Moment
from penstock.model.time.time_range import TimeRange
from penstock.states import SliceState

_INSTANT = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Event:
    """``at``, a text that sorts, an interval came into a state.

    ``since`` is the snapshot of other writers behind it, ``of`` the text of the slice, or attempt,
    that it is a part of. ``changed`` is the snapshot in which it last got other rows, ``read`` the
    snapshots of lakes that it was made from, where that is known; ``behind`` why it is, and
    ``is_late`` that this is because of late rows.
    """

    at: str
    interval: Interval
    state: SliceState
    since: int | None = None
    of: str = ""
    changed: int | None = None
    read: Mapping[str, int] | None = None
    behind: str | None = None
    is_late: bool = False


@dataclass(frozen=True, slots=True)
class IntervalHistory:
    """``events`` that do not overlap: the last one of each moment, in the order of time.

    ``runs`` are those that recorded its slices, by their texts. ``remakes``: what another writer
    changed is to be made.
    """

    events: tuple[Event, ...] = ()
    runs: Mapping[str, str] = field(default_factory=dict)
    remakes: bool = True

    @classmethod
    def of(
        cls,
        events: Iterable[Event],
        *,
        runs: Mapping[str, str] = MappingProxyType({}),
        remakes: bool = True,
    ) -> IntervalHistory:
        known: list[Event] = []
        for event in sorted(events, key=lambda each: each.at):
            known = [
                replace(other, interval=left)
                for other in known
                for left in minus((other.interval,), (event.interval,))
            ]
            known.append(event)
        return cls(tuple(sorted(known, key=lambda each: each.interval)), runs, remakes)

    def of_states(self, *states: SliceState) -> Intervals:
        return self.where(lambda state: state in states)

    def where(self, is_wanted: Callable[[SliceState], bool]) -> Intervals:
        """Return what has a state of a kind.

        Args:
            is_wanted: Tells whether a state is of the kind.

        Returns:
            The intervals, those that touch joined.
        """
        return union(event.interval for event in self.events if is_wanted(event.state))

    @property
    def made(self) -> Intervals:
        return self.where(lambda state: state.is_as_recorded)

    @property
    def recorded(self) -> Intervals:
        """Return what no run has to make."""
        return self.where(lambda state: not state.is_due(can_rebuild=self.remakes))

    def before(self, moment: datetime) -> Intervals:
        """Return what was made before a moment and not since."""
        return minus(self.made, self.since(moment))

    def since(self, moment: datetime) -> Intervals:
        """Return what was made at a moment or later."""
        # Late: a plan without models by time knows no events, and loads no tables.
        from penstock.engine.state.tables import to_text

        text = to_text(moment)
        made = (each for each in self.events if each.state.is_as_recorded and each.at >= text)
        return union(each.interval for each in made)


@dataclass(frozen=True, slots=True)
class Due:
    """The intervals to make; ``idle`` says why there are none. ``lacking``: they are made because
    they are missing or have failed, not because a user asked for them.
    """

    intervals: Intervals
    tally: Tally
    idle: Skip | None = None
    lacking: bool = False


@dataclass(frozen=True, slots=True)
class ModelIntervals:
    """The intervals of one model at one moment, with what is known of them.

    ``start`` is that of the models it reads, for a model that has none of its own. ``why_kept``
    says why no run rebuilds its stale intervals.
    """

    by_time: TimeRange
    painted: IntervalHistory
    now: datetime
    start: datetime | None = None
    why_kept: str | None = None

    def due(self, again: Intervals = ()) -> Due:
        """All that are missing or have failed, what ``lookback`` does again, and ``again``."""
        recorded, begun = self._recorded, self.painted.where(_has_begun)
        start = self.start
        if start is None and begun:  # it continues from where it once began
            start = begun[0].start
        expected = self.by_time.expected(self.now, start=start)
        missing = self.by_time.missing(recorded, self.now, start=start)
        missing = union(missing, again)
        tally = self._tally(expected, missing)
        if missing:
            return Due(missing, tally, lacking=not again)
        first = self.by_time.start(self.now)
        if not expected and first is not None and first > self.now:
            early = f"nothing is due before {_said(first)}, where it starts"
            return Due((), tally, Skip(SkipKind.IDLE, early))
        if any(state.exists and state is not SliceState.MATERIALIZED for state in tally.states):
            return Due((), tally, idle(tally, self.why_kept))
        return Due((), tally, Skip(SkipKind.IDLE, UP_TO_DATE, said(tally)))

    def of(self, request: SliceRange) -> Due:
        """Return those of a range; its dates are whole days. Raises ArgumentError."""
        asked = self._asked(request)
        expected = self.by_time.expected(self.now, start=asked.start)
        within = intersect((asked,), expected)
        chosen = within
        if not request.all:
            lacking = self.by_time.whole(minus(within, self._recorded))
            chosen = intersect(lacking, within)
        outside = minus((asked,), expected)
        early = [each for each in outside if not expected or each.start < expected[0].start]
        later = [each for each in outside if each not in early]
        begun = sum(1 for _ in takewhile(self._is_past, self.by_time.units(later)))
        tally = replace(
            self._tally(within, chosen),
            early=self.count(early),
            later=self.count(later) - begun,
            current=begun,
        )
        return Due(
            chosen, tally, None if chosen else idle(tally, self.why_kept), lacking=not request.all
        )

    def _is_past(self, unit: Interval) -> bool:
        return unit.start <= self.now

    def materialized(self, request: SliceRange | None) -> Intervals:
        """Return what is up to date, of a range where one is asked for."""
        made = self.painted.of_states(SliceState.MATERIALIZED)
        return made if request is None else intersect(made, (self._asked(request),))

    def states_of(self, request: SliceRange) -> tuple[Event, ...]:
        """Return what is known of a range, and what of it is missing, in the order of time."""
        asked = self._asked(request)
        within = intersect((asked,), self.by_time.expected(self.now, start=asked.start))
        known = [
            replace(event, interval=part)
            for event in self.painted.events
            for part in intersect((event.interval,), within)
        ]
        lacking = minus(within, (event.interval for event in known))
        found = [*known, *(Event("", each, SliceState.MISSING) for each in lacking)]
        return tuple(sorted(found, key=lambda event: event.interval))

    def count(self, intervals: Iterable[Interval]) -> int:
        """Return how many units these are. Raises ArgumentError for too many."""
        number = 0
        for interval in intervals:
            if (interval.end - interval.start) / self.by_time.unit.shortest > 10 * MAX_SLICES:
                raise ArgumentError(
                    f"{interval} has more than {10 * MAX_SLICES:,} intervals of the model",
                    hint="ask for a shorter range, or give the model a later start",
                )
            number += sum(1 for _ in self.by_time.units((interval,)))
        return number

    def out_of_order(self, interval: Interval) -> str | None:
        """Return why an interval cannot be made where each follows upon those before: some are
        missing, or it begins before the last unit that was made, which alone may be made again.
        """
        made = self._recorded
        missing = self.by_time.missing(made, self.now, start=self.start)
        if missing and missing[0].start < interval.start:
            return (
                f"a history is made in the order of time, and {missing[0]} is missing before "
                f"{interval}: leave out --from"
            )
        if made and interval.start < self.by_time.unit.floor(made[-1].end - _INSTANT):
            return (
                f"a history is made in the order of time, and {interval} comes before the end of "
                f"{made[-1]}, which exists: ask for later intervals, or start over with "
                "--full-refresh, for which its kind says disable_restatement false"
            )
        return None

    @property
    def _recorded(self) -> Intervals:
        return self.painted.recorded

    def _asked(self, request: SliceRange) -> Interval:
        start = self.by_time.start(self.now) or self.start
        (whole,) = self.by_time.whole((asked_moments(request, self.now, start),))
        return whole

    def _tally(self, expected: Intervals, chosen: Intervals) -> Tally:
        states = dict.fromkeys(each.state for each in self.painted.events)
        found = {state: intersect(expected, self.painted.of_states(state)) for state in states}
        counts = {state: self.count(intervals) for state, intervals in found.items()}
        counts[SliceState.MISSING] = self.count(minus(expected, union(*found.values())))
        return Tally({s: n for s, n in counts.items() if n}, self.count(chosen))


def _has_begun(state: SliceState) -> bool:
    return state.exists or state is SliceState.RUNNING


def without_start(lines: Mapping[str, ModelIntervals]) -> Iterator[str]:
    """Notices of models that nothing tells where to begin, in the run that makes them first."""
    for name, line in lines.items():
        expected = line.by_time.expected(line.now, start=line.start)
        if expected and not (line.by_time.cadence.start or line.start or line.painted.events):
            yield f"{name} {begins(expected[0].start)}; {START_HINT}"


@dataclass(frozen=True, slots=True)
class Replaced:
    """What a new record of an interval does to those before it: ``gone`` are their slices, and
    ``left`` what remains of records that it overlaps in part.
    """

    gone: tuple[str, ...] = ()
    left: tuple[SliceRecord, ...] = ()


def replaced(records: Iterable[SliceRecord], interval: Interval) -> Replaced:
    """A record of the whole table, which has no interval, goes too."""
    gone: list[str] = []
    left: list[SliceRecord] = []
    for record in records:
        own = interval_of(record.slice)
        if own is None or own.overlap(interval) is not None:
            gone.append(record.slice)
            rest = () if own is None else minus((own,), (interval,))
            left += [replace(record, slice=each.text, fingerprint=None) for each in rest]
    return Replaced(tuple(gone), tuple(left))


def parts_made(
    records: Iterable[SliceRecord], interval: Interval
) -> tuple[tuple[Interval, int | None], ...]:
    """Return the parts of an interval that different snapshots made as they are, each with its own,
    in the order of time; None where nothing is recorded, or needed none.
    """
    by_snapshot: dict[int | None, list[Interval]] = {}
    for record in records:
        own = interval_of(record.slice)
        part = None if own is None else own.overlap(interval)
        if part is not None:
            by_snapshot.setdefault(record.last_made_in, []).append(part)
    known = union(*by_snapshot.values())
    by_snapshot.setdefault(None, []).extend(minus((interval,), known))
    parts = [(part, made_in) for made_in, of in by_snapshot.items() for part in union(of)]
    return tuple(sorted(parts, key=lambda each: each[0]))


def asked_moments(request: SliceRange, now: datetime, start: datetime | None = None) -> Interval:
    """The moments of a range, from ``start`` where it says no first. Raises ArgumentError."""
    first, last = (_text(moment) for moment in (request.first, request.last))
    if first is None:
        if start is None:
            raise ArgumentError(
                "the range has no beginning: the model has no start",
                hint="give it: --from 2026-01-01, or give the model a start",
            )
        first = start.isoformat()
    return read_range(first, last or now.isoformat(), now)


def start_above(
    model: Model, models: Mapping[str, Model], graph: Graph, now: datetime
) -> datetime | None:
    """The most recent start of the models above (kinds.md, ``start``); None where none has one."""
    above = (models[name] for name in graph.upstream(model.name) if name in models)
    starts = (each.cadence.start for each in above)
    return max((read_moment(start, now) for start in starts if start), default=None)


def _text(moment: Moment | None) -> str | None:
    return moment if moment is None or isinstance(moment, str) else moment.isoformat()


def _said(moment: datetime) -> str:
    return str(Interval(moment, moment + timedelta(days=1))) if not moment.hour else str(moment)
