"""Find the slices that were made from input which has changed since. Pure.

What a slice read is compared with what its input is: the snapshot at which it read the input's lake
with the snapshots in which the slices that it needs last got other rows. When they were made says
nothing. A slice whose record does not say what it read is not known to be behind, and is not; and
rows that were written again as they were have not changed.

A whole table that a sliced model reads is meant as it was when the slice was made: it puts nobody
behind.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from penstock.model.slicing.needs import Edge
from penstock.model.time.interval import Interval
from penstock.model.time.needs import Rule
from penstock.model.time.slice import WHOLE, Slice, span_of, zone_of

_INSTANT = timedelta(microseconds=1)
Read = Mapping[str, int]  # the snapshot at which tables of each lake were read


@dataclass(frozen=True, slots=True)
class Behind:
    """A slice of an input that got other rows in ``snapshot``, after it was read at ``read``."""

    model: str
    slice: Slice
    snapshot: int
    read: int

    def __str__(self) -> str:
        """As people read it: ``raw/orders 2026-01-02: snapshot 41, read 37``."""
        slice_ = "" if self.slice == WHOLE else f" {self.slice}"
        return f"{self.model}{slice_}: snapshot {self.snapshot}, read {self.read}"


@dataclass(frozen=True, slots=True)
class Changed:
    """A slice of an input, and the snapshot in which it last got other rows."""

    slice: Slice
    snapshot: int


@dataclass(frozen=True, slots=True)
class Input:
    """An edge with what became of the input; ``newest`` is the last snapshot of ``changes``."""

    edge: Edge
    changes: Callable[[], Sequence[Changed]]
    newest: int


@dataclass(frozen=True, slots=True)
class Inputs:
    """All that one model reads."""

    every: tuple[Input, ...] = ()

    def behind(self, made: Mapping[Slice, Read]) -> Mapping[Slice, Behind]:
        """Return why slices are behind, of those that were ``made``, by what they read."""
        found: dict[Slice, Behind] = {}
        for each in self.every:
            lake = each.edge.upstream.target.lake
            left = {s: at for s, of in made.items() if (at := of.get(lake)) is not None}
            late = {s: at for s, at in left.items() if at < each.newest and s not in found}
            if late:
                found |= _RULES[each.edge.need.rule](each, late)
        return found


def _by_moments(of: Input, made: Mapping[Slice, int]) -> dict[Slice, Behind]:
    edge, changes = of.edge, of.changes()
    if edge.is_equal:
        return _by_text(of, made)
    spec, zone = edge.reader.partition, zone_of(edge.reader.partition)
    timeline = _Timeline.of(changes, edge)
    found: dict[Slice, Behind] = {}
    for slice_, read in made.items():
        own = span_of(slice_, spec)
        for window in () if own is None else edge.need.moments(own, zone):
            for span, change in timeline.within(window):
                itself = edge.is_self and own is not None and span.end > own.start
                if change.snapshot > read and not itself:
                    found.setdefault(slice_, _behind(edge, change, read))
    return found


@dataclass(frozen=True, slots=True)
class _Timeline:
    """Changes in the order of time; ``ends`` are where their slices end."""

    changes: Sequence[tuple[Interval, Changed]] = ()
    ends: Sequence[datetime] = ()

    @classmethod
    def of(cls, changes: Iterable[Changed], edge: Edge) -> _Timeline:
        spec = edge.upstream.partition
        spans = [(s, each) for each in changes if (s := span_of(each.slice, spec)) is not None]
        spans.sort(key=lambda pair: pair[0])
        return cls(spans, [span.end for span, _ in spans])

    def within(self, window: Interval) -> Iterator[tuple[Interval, Changed]]:
        first = bisect_left(self.ends, window.start + _INSTANT)
        for span, change in self.changes[first:]:
            if span.start >= window.end:
                return
            yield span, change


def _by_text(of: Input, made: Mapping[Slice, int]) -> dict[Slice, Behind]:
    by_text = {each.slice.text: each for each in of.changes()}
    changed = ((slice_, read, by_text.get(slice_.text)) for slice_, read in made.items())
    return {
        slice_: _behind(of.edge, change, read)
        for slice_, read, change in changed
        if change is not None and change.snapshot > read
    }


def _any(of: Input, made: Mapping[Slice, int]) -> dict[Slice, Behind]:
    """Any slice that changed puts a reader of the whole table behind."""
    found: dict[Slice, Behind] = {}
    changes = sorted(of.changes(), key=lambda each: each.snapshot)
    for slice_, read in made.items():
        late = next((each for each in changes if each.snapshot > read), None)
        if late is not None:
            found[slice_] = _behind(of.edge, late, read)
    return found


def _nothing(_: Input, __: Mapping[Slice, int]) -> dict[Slice, Behind]:
    return {}


def _behind(edge: Edge, change: Changed, read: int) -> Behind:
    return Behind(edge.upstream.name, change.slice, change.snapshot, read)


_RULES: Mapping[Rule, Callable[[Input, Mapping[Slice, int]], dict[Slice, Behind]]] = {
    Rule.MOMENTS: _by_moments,
    Rule.SAME: _by_text,
    Rule.ALL: _any,
    Rule.TABLE: _nothing,
    Rule.NONE: _nothing,
}
