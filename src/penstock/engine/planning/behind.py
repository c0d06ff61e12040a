"""Find the slices that were made from input which has changed since. Pure.

What a slice read is compared with what its input is: the snapshot at which it read the input's lake
with the snapshots in which the slices that it needs last got other rows. When they were made says
nothing. A slice whose record does not say what it read is not known to be behind, and is not; and
rows that were written again as they were have not changed.

A whole table that a sliced model reads is meant as it was when the slice was made: it puts nobody
behind. Where the query reads it by the bounds of its slice, rows that came or went within them
since are late.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from itertools import accumulate
from typing import ClassVar, Protocol

from penstock.model.definition.model import Model
from penstock.model.slicing.needs import Edge
from penstock.model.slicing.table_reads import TableRead
from penstock.model.time.interval import Interval
from penstock.model.time.needs import Rule
from penstock.model.time.slice import WHOLE, Slice, span_of, spans_of, zone_of
from penstock.states import SliceState

_INSTANT = timedelta(microseconds=1)
Read = Mapping[str, int]  # the snapshot at which tables of each lake were read


@dataclass(frozen=True, slots=True)
class Behind:
    """A slice of an input that got other rows in ``snapshot``, after it was read at ``read``."""

    model: str
    slice: Slice
    snapshot: int
    read: int
    state: ClassVar[SliceState] = SliceState.BEHIND

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
class Late:
    """Rows of a table changed within the bounds of a slice after it was read: ``files`` with some,
    and ``rows`` that the catalog holds. Not ``certain``: by the bounds of files, that span others.
    """

    table: str
    files: int
    rows: int
    certain: bool
    state: ClassVar[SliceState] = SliceState.LATE

    def __str__(self) -> str:
        """As people read it: ``late rows in raw.events: 1 file``."""
        parts = [(self.files, "file"), (self.rows, "row")]
        what = " and ".join(f"{n:,} {word}{'' if n == 1 else 's'}" for n, word in parts if n)
        if self.certain:
            return f"late rows in {self.table}: {what}"
        return f"perhaps late rows in {self.table}: {what}, by bounds that span several slices"


@dataclass(frozen=True, slots=True)
class CannotTell:
    """It is not known whether rows of a table are late: that does not put a slice behind."""

    table: str
    why: str
    state: ClassVar[SliceState] = SliceState.MATERIALIZED

    def __str__(self) -> str:
        return f"cannot tell whether {self.table} has changed: {self.why}"


Cause = Behind | Late | CannotTell


@dataclass(frozen=True, slots=True)
class RowsTouched:
    """A file, or a row that the catalog holds, with the snapshots in which rows of it changed.

    ``low`` and ``high`` bound the moments of its rows, None where not known; ``values`` looks them
    up, each with the last snapshot of it, and returns None where that is too dear.
    """

    snapshots: tuple[int, ...]
    low: datetime | None
    high: datetime | None
    values: Callable[[], Mapping[datetime, int] | None] = lambda: None
    is_row: bool = False

    def is_in(self, first: datetime, end: datetime, read: int) -> bool | None:
        """Return whether rows that changed after ``read`` are of these moments; None: perhaps."""
        low, high = self.low, self.high
        if low is None or high is None or high < first or low >= end:
            return False
        if first <= low and high < end and self.snapshots[0] > read:
            return True
        values = self.values()
        if values is None:
            return None
        return any(first <= each < end and at > read for each, at in values.items())


@dataclass(frozen=True, slots=True)
class TableChanges:
    """The snapshots in which rows of a table ``changed``, in order, and, by the columns that the
    reader compares with the bounds of its slice, where. ``back`` are its rollbacks, each with the
    snapshot that it went back to, ``anew`` the snapshot in which it was made anew, ``altered`` the
    last in which its columns may have been. Nothing is known of what was before ``known_since``,
    and of what is no ``is_table``: a view that no model makes.
    """

    read: TableRead
    changed: tuple[int, ...] = ()
    touched: Mapping[str, tuple[RowsTouched, ...]] = field(default_factory=dict)
    back: Mapping[int, int] = field(default_factory=dict)
    anew: int = -1
    known_since: int = -1
    altered: int = -1
    is_table: bool = True

    @property
    def newest(self) -> int:
        """The last snapshot in which anything became of it; -1 for none."""
        return max((*self.changed, *self.back, self.known_since), default=-1)

    @property
    def name(self) -> str:
        return self.read.table.qualified

    def causes(self, made: Mapping[Slice, int]) -> Iterator[tuple[Slice, Cause]]:
        """Yield what puts slices behind, by when they read the table."""
        changed = [at for at in self.changed if at not in self.back]
        lines = {column: _Bounds.of(of) for column, of in self.touched.items()}
        for slice_, read in made.items():
            later = [at for at in changed if at > read]
            later += [at for at, to in self.back.items() if at > read > to]
            if read < self.known_since:
                yield slice_, CannotTell(self.name, "its snapshots have expired since")
            elif later and not self.read.windows:
                yield slice_, Behind(self.name, WHOLE, max(later), read)
            elif later and (self.anew > read or any(at in self.back for at in later)):
                why = "it was rolled back since" if self.anew <= read else "it was made anew since"
                yield slice_, CannotTell(self.name, why)
            elif later and (cause := self._late(lines, slice_, read)) is not None:
                yield slice_, cause

    def _late(self, lines: Mapping[str, _Bounds], slice_: Slice, read: int) -> Cause | None:
        certain: list[RowsTouched] = []
        perhaps: list[RowsTouched] = []
        for column, first, end in self.read.moments(slice_):
            line = lines.get(column, _Bounds())
            if line.unknown > read:
                return CannotTell(self.name, f"files have no bounds of {column}")
            for each in line.within(first, end):
                if (
                    each.snapshots[-1] > read
                    and (is_in := each.is_in(first, end, read)) is not False
                ):
                    (perhaps if is_in is None else certain).append(each)
        found = certain or perhaps
        if not found:
            return None
        rows = sum(each.is_row for each in found)
        return Late(self.name, len(found) - rows, rows, bool(certain))


@dataclass(frozen=True, slots=True)
class _Bounds:
    """Hold what was touched in the order of time; ``highs`` is the last moment of all up to each.

    ``unknown`` is the last snapshot of what has no bounds.
    """

    of_time: Sequence[tuple[datetime, datetime, RowsTouched]] = ()
    highs: Sequence[datetime] = ()
    unknown: int = -1

    @classmethod
    def of(cls, touched: Iterable[RowsTouched]) -> _Bounds:
        every = list(touched)
        known = [(t.low, t.high, t) for t in every if t.low is not None and t.high is not None]
        known.sort(key=lambda each: each[0])
        without = (t.snapshots[-1] for t in every if t.low is None or t.high is None)
        highs = list(accumulate((high for _, high, _ in known), max))
        return cls(known, highs, max(without, default=-1))

    def within(self, first: datetime, end: datetime) -> Iterator[RowsTouched]:
        for low, high, each in self.of_time[bisect_left(self.highs, first) :]:
            if low >= end:
                return
            if high >= first:
                yield each


@dataclass(frozen=True, slots=True)
class Inputs:
    """All that one model reads. ``late`` is the state of slices with late rows: `LATE` where a run
    leaves them, else `BEHIND`. ``views`` are those that models make: the name of each, its lake and
    the snapshot that made it what it is. ``files`` say what became of the files of slices, by their
    texts as they are recorded.
    """

    every: tuple[Input, ...] = ()
    tables: tuple[TableChanges, ...] = ()
    late: SliceState = SliceState.LATE
    views: tuple[tuple[str, str, int], ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.every or self.tables or self.files or self.views)

    def behind(self, made: Mapping[Slice, Read]) -> Mapping[Slice, Cause]:
        """Return why slices are behind, of those that were ``made``, by what they read."""
        found: dict[Slice, Cause] = {}
        for each in self.every:
            late = _left(each.edge.upstream.target.lake, made, found, each.newest)
            if late:
                found |= _RULES[each.edge.need.rule](each, late)
        for name, lake, made_in in self.views:
            late = _left(lake, made, found, made_in)
            found |= {each: Behind(name, WHOLE, made_in, read) for each, read in late.items()}
        for table in self.tables:
            if table.read.only_asked:
                continue
            for slice_, why in table.causes(_left(table.read.table.lake, made, {}, table.newest)):
                known = found.get(slice_)
                if known is None or why.state.urgency < known.state.urgency:
                    found[slice_] = why
        return found

    def moved(self, slice_: Slice, read: Read) -> str | None:
        """Return what of all that a slice read is not what it read: the first that got other rows,
        whole tables among them, or of which that is not known.
        """
        for each in self.every:
            name, at = each.edge.upstream.name, read.get(each.edge.upstream.target.lake)
            if at is None:
                return f"{name}: not known when it was read"
            if each.edge.need.rule is Rule.TABLE and each.newest > at:
                return f"{name}: snapshot {each.newest}, read {at}"
        for name, lake, made_in in self.views:
            if made_in > read.get(lake, -1):
                return f"{name}: a view that is another since"
        for table in self.tables:
            at = read.get(table.read.table.lake)
            if at is None or not table.is_table or table.altered > at:
                return f"{table.name}: not known to be as it was read"
            for _, why in table.causes({slice_: at}):
                return str(why)
        found = self.behind({slice_: read}).get(slice_)
        return None if found is None else str(found)

    def state(self, cause: Cause) -> SliceState:
        """Return the state of a slice that was made, and would be behind for this."""
        return self.late if cause.state == SliceState.LATE else cause.state


class HasChanges(Protocol):
    """Records of the slices of a model, with what changed them."""

    def changes(self, model: Model) -> Sequence[Changed]: ...

    @property
    def newest(self) -> int: ...


def inputs_of(
    edges: Sequence[Edge],
    known: Mapping[str, HasChanges],
    tables: Sequence[TableChanges] = (),
    late: SliceState = SliceState.BEHIND,
    views: Sequence[Model] = (),
) -> Inputs:
    """Return what a model reads; ``known`` are the records of the models that it does, those of
    the ``views`` among them.
    """
    inputs = [
        Input(edge, partial(above.changes, edge.upstream), above.newest)
        for edge in edges
        if (above := known.get(edge.upstream.name)) is not None
    ]
    queries = tuple(
        (view.name, view.target.lake, max(each.snapshot for each in changes))
        for view in views
        if (made := known.get(view.name)) is not None and (changes := made.changes(view))
    )
    return Inputs(tuple(inputs), tuple(tables), late, queries)


def _left(
    lake: str, made: Mapping[Slice, Read], found: Mapping[Slice, Cause], newest: int
) -> dict[Slice, int]:
    """Return when slices read a lake, of those that did before ``newest`` and are not known."""
    read = {slice_: at for slice_, of in made.items() if (at := of.get(lake)) is not None}
    return {slice_: at for slice_, at in read.items() if at < newest and slice_ not in found}


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
            until = own.start if own is not None and edge.is_self else None
            change = timeline.first_after(read, window, until, edge.keeps(slice_))
            if change is not None:
                found.setdefault(slice_, _behind(edge, change, read))
    return found


@dataclass(frozen=True, slots=True)
class _Timeline:
    """Changes in the order of time; ``ends`` are where their slices end. ``newest`` is the last
    snapshot of all up to each, and ``newest_from`` of all from each on.
    """

    changes: Sequence[tuple[Interval, Changed]] = ()
    ends: Sequence[datetime] = ()
    newest: Sequence[int] = ()
    newest_from: Sequence[int] = ()

    @classmethod
    def of(cls, changes: Iterable[Changed], edge: Edge) -> _Timeline:
        spec = edge.upstream.partition
        span = spans_of(spec)
        spans = [(s, each) for each in changes if (s := span(each.slice)) is not None]
        spans.sort(key=lambda pair: pair[0])
        snapshots = [change.snapshot for _, change in spans]
        newest_from = list(accumulate(reversed(snapshots), max))[::-1]
        ends = [span.end for span, _ in spans]
        return cls(spans, ends, list(accumulate(snapshots, max)), newest_from)

    def first_after(
        self, read: int, window: Interval, until: datetime | None, keeps: Callable[[Slice], bool]
    ) -> Changed | None:
        """Return the first change in a window that came after a snapshot, of the slices that the
        reader ``keeps``; ``until``: of slices that end by then.
        """
        first = bisect_left(self.ends, window.start + _INSTANT)
        if first == 0:  # of what comes before, nothing is newer
            first = bisect_right(self.newest, read)
        for position in range(first, len(self.changes)):
            span, change = self.changes[position]
            if span.start >= window.end or self.newest_from[position] <= read:
                return None
            is_earlier = until is None or span.end <= until
            if change.snapshot > read and is_earlier and keeps(change.slice):
                return change
        return None


def _by_text(of: Input, made: Mapping[Slice, int]) -> dict[Slice, Behind]:
    by_text = {each.slice.text: each for each in of.changes()}
    changed = ((slice_, read, by_text.get(slice_.text)) for slice_, read in made.items())
    return {
        slice_: _behind(of.edge, change, read)
        for slice_, read, change in changed
        if change is not None and change.snapshot > read
    }


def _any(of: Input, made: Mapping[Slice, int]) -> dict[Slice, Behind]:
    """Any slice that changed puts a reader of the whole table behind, if its query keeps that."""
    found: dict[Slice, Behind] = {}
    changes = sorted(of.changes(), key=lambda each: each.snapshot)
    for slice_, read in made.items():
        keeps = of.edge.keeps(slice_)
        newer = (change for change in changes if change.snapshot > read)
        late = next((change for change in newer if keeps(change.slice)), None)
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
