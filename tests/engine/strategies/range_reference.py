"""What a table is after some runs, in plain Python: one row, one slice and one batch at a time.

For every strategy but history, which has its own (`history_reference`). A slice of a model by time
is an interval of UTC, that of a partitioned one a text such as ``2026-03-29`` in its zone, that of
a whole table None.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

BOOM, TOO_MUCH, MOST = 77, 99, 90  # values: the query fails on it, the test; the test's maximum
DAY, HOUR = timedelta(days=1), timedelta(hours=1)

Span = tuple[datetime, datetime]
Slice = Span | str | None


@dataclass(frozen=True)
class Row:
    """A row of the source: ``n`` is its own, ``got`` when it came."""

    n: int
    id: int | None
    at: datetime | None
    got: datetime
    v: int | None
    g: str | None

    def __str__(self) -> str:
        at = None if self.at is None else f"{self.at:%m-%dT%H:%M:%S.%f}"
        return f"{self.n}: id={self.id} at={at} got={self.got:%m-%dT%H:%M} v={self.v} g={self.g}"


@dataclass(frozen=True)
class Form:
    """A model. ``slices``: interval, partition or whole. ``reads``: which rows its query returns
    for a slice: its own by time, those that came in it, or all. ``start``: its first moment.
    """

    name: str
    strategy: str
    slices: str
    script: str
    reads: str = "own"
    value: Callable[[datetime], Any] = lambda at: at
    zone: str = "UTC"
    unit: timedelta = DAY
    start: datetime | None = None
    lookback: int = 0
    batch_size: int | None = None
    not_empty: bool = False  # a slice without rows fails its test
    window: tuple[datetime, int] = (datetime(2026, 3, 27, tzinfo=UTC), 5)


@dataclass(frozen=True)
class Request:
    """A run: of a moment, or of a range of days, both included."""

    now: datetime
    days: tuple[date, date] | None = None
    every: bool = False
    restates: bool = False
    partition: str | None = None

    def __str__(self) -> str:
        days = "" if self.days is None else f" from {self.days[0]} to {self.days[1]}"
        way = " restated" if self.restates else " all" if self.every else ""
        return f"at {self.now:%m-%dT%H:%M}{days}{way} {self.partition or ''}"


@dataclass
class Run:
    """``asked`` tells requests apart; an interrupted one was killed before its end. What one that
    restates finds no more in the source is gone, of a merge too.
    """

    asked: object
    interrupted: bool = False
    restates: bool = False


@dataclass(frozen=True)
class Record:
    """Not ``sure``: the table was rolled back since, and status may say that others changed it."""

    run: Run
    rows: int
    sure: bool = True


@dataclass(frozen=True)
class State:
    """``marks``: whether the last attempt at a unit of time, or a slice, made it."""

    exists: bool = False
    rows: tuple[tuple[str | None, Row], ...] = ()
    records: Mapping[Slice, Record] = field(default_factory=dict)
    marks: Mapping[Slice, bool] = field(default_factory=dict)

    def made(self, unit: Slice) -> bool:
        return self.exists and self.marks.get(unit, False)


# --- which slices


def text_of(form: Form, moment: datetime) -> str:
    """The partition that a moment is in."""
    local = moment.astimezone(ZoneInfo(form.zone))
    return local.strftime("%Y-%m-%d" if form.unit == DAY else "%Y-%m-%dT%H")


def slices_to_make(form: Form, state: State, request: Request) -> list[Slice]:
    return _PLANS[form.slices](form, state, request)


def _whole(form: Form, state: State, request: Request) -> list[Slice]:
    return [None]


def _partitions(form: Form, state: State, request: Request) -> list[Slice]:
    if request.days is None:
        return [request.partition or text_of(form, request.now)]
    zone, (first, last) = ZoneInfo(form.zone), request.days
    moment, found = datetime.combine(first, time(), zone).astimezone(UTC), dict[str, None]()
    end = datetime.combine(last + DAY, time(), zone).astimezone(UTC)
    while moment < end:
        if moment <= request.now and (form.start is None or moment >= form.start):
            found[text_of(form, moment)] = None
        moment += HOUR
    return [each for each in found if request.every or not state.made(each)]


def _intervals(form: Form, state: State, request: Request) -> list[Slice]:
    unit = form.unit
    made = [u for u, good in state.marks.items() if good and state.exists and isinstance(u, tuple)]
    if request.days is not None:
        asked = [datetime.combine(day, time(), UTC) for day in request.days]
        expected = _units(form.start or asked[0], _due_until(form, request.now), unit)
        units = [u for u in expected if asked[0] <= u[0] < asked[1] + DAY]
        if not request.every:
            units = [u for u in units if u not in made]
    else:
        yesterday = datetime.combine(request.now.date() - DAY, time(), UTC)
        begin = form.start or min((start for start, _ in made), default=yesterday)
        expected = _units(begin, _due_until(form, request.now), unit)
        lacking = [u for u in expected if u not in made]
        back = form.lookback * unit
        units = [u for u in expected if any(u[0] <= lack[0] <= u[0] + back for lack in lacking)]
    size = len(units) if request.restates or form.batch_size is None else form.batch_size
    return [(some[0][0], some[-1][1]) for group in _groups(units) for some in _cut(group, size)]


def _due_until(form: Form, now: datetime) -> datetime:
    """The end of the last interval that is due: the model's zone says when, not which."""
    if form.unit == HOUR:
        return now.replace(minute=0, second=0, microsecond=0)
    midnight = datetime.combine(now.astimezone(ZoneInfo(form.zone)).date(), time())
    due = midnight.replace(tzinfo=ZoneInfo(form.zone)).astimezone(UTC)
    return datetime.combine(due.date(), time(), UTC)


def _units(start: datetime, end: datetime, unit: timedelta) -> list[Span]:
    found: list[Span] = []
    while start + unit <= end:
        found.append((start, start + unit))
        start += unit
    return found


def _groups(units: Iterable[Span]) -> Iterator[list[Span]]:
    """Units in order, without a gap between those of a group."""
    group: list[Span] = []
    for unit in units:
        if group and group[-1][1] != unit[0]:
            yield group
            group = []
        group.append(unit)
    if group:
        yield group


def _cut(group: Sequence[Span], size: int) -> Iterator[Sequence[Span]]:
    for first in range(0, len(group), size):
        yield group[first : first + size]


_PLANS: Mapping[str, Callable[[Form, State, Request], list[Slice]]] = {
    "whole": _whole,
    "partition": _partitions,
    "interval": _intervals,
}


def units_of(form: Form, slice_: Slice) -> list[Slice]:
    """What marks are kept of: the units of an interval, else the slice itself."""
    return list(_units(*slice_, form.unit)) if isinstance(slice_, tuple) else [slice_]


# --- what becomes of one


def tried(form: Form, state: State, slices: Iterable[Slice], *, good: bool) -> State:
    marks = {unit: good for each in slices for unit in units_of(form, each)}
    return replace(state, marks={**(state.marks if state.exists else {}), **marks})


def attempt(form: Form, state: State, source: Sequence[Row], slice_: Slice, run: Run) -> State:
    """One batch: as it was where it fails, but for its marks."""
    known = state.records.get(slice_)
    appended = form.strategy == "append" and known is not None and known.run.interrupted
    if known is not None and appended and known.run.asked == run.asked:
        records = {**state.records, slice_: Record(run, known.rows)}
        return tried(form, replace(state, records=records), [slice_], good=True)
    rows = [row for row in source if _is_read(form, row, slice_)]
    if _is_refused(form, rows):
        return tried(form, state, [slice_], good=False)
    after = _rule(form, run)(state.rows, rows, slice_)
    parts = units_of(form, slice_) if form.strategy == "time_range" else [slice_]
    good = [part for part in parts if _passes(form, candidate(form, after, part))]
    for part in good:
        state = _published(form, state, rows, part, run)
    return tried(form, state, [part for part in parts if part not in good], good=False)


def _published(form: Form, state: State, rows: Sequence[Row], slice_: Slice, run: Run) -> State:
    after = _rule(form, run)(state.rows, rows, slice_)
    records = _with(state.records if state.exists else {}, slice_, run)
    made = counted(form, State(True, after, records, state.marks if state.exists else {}))
    return tried(form, made, [slice_], good=True)


def counted(form: Form, state: State) -> State:
    """With the number of rows that each record has."""
    records = {
        key: replace(record, rows=len(candidate(form, state.rows, key)))
        for key, record in state.records.items()
    }
    return replace(state, records=records)


def _is_read(form: Form, row: Row, slice_: Slice) -> bool:
    if slice_ is None or form.reads == "all":
        return True
    moment = row.got if form.reads == "got" else row.at
    if moment is None:
        return False
    return _is_in(form, moment, slice_)


def _is_in(form: Form, moment: datetime, slice_: Slice) -> bool:
    if isinstance(slice_, tuple):
        return slice_[0] <= moment < slice_[1]
    return text_of(form, moment) == slice_


def _is_refused(form: Form, rows: Sequence[Row]) -> bool:
    """The query fails, rows have no time, or keys are NULL or double."""
    ids = [row.id for row in rows]
    return (
        any(row.v == BOOM for row in rows)
        or (form.strategy == "time_range" and any(row.at is None for row in rows))
        or (form.strategy == "merge" and (None in ids or len(set(ids)) < len(ids)))
    )


def candidate(form: Form, rows: Iterable[tuple[str | None, Row]], slice_: Slice) -> list[Row]:
    """The rows that tests look at."""
    if form.strategy == "time_range" and isinstance(slice_, tuple):
        return [row for _, row in rows if row.at is not None and _is_in(form, row.at, slice_)]
    tag = slice_ if isinstance(slice_, str) else None
    return [row for own, row in rows if own == tag]


def rows_read(form: Form, rows: Iterable[tuple[str | None, Row]], slice_: Slice) -> list[Row]:
    """The rows that a slice has: of an interval those that its query returns."""
    found = candidate(form, rows, slice_)
    if not isinstance(slice_, tuple):
        return found
    return [row for row in found if _is_read(form, row, slice_)]


def _passes(form: Form, rows: Sequence[Row]) -> bool:
    too_much = any(row.v is not None and row.v > MOST for row in rows)
    return not too_much and not (form.not_empty and not rows)


def _with(records: Mapping[Slice, Record], slice_: Slice, run: Run) -> dict[Slice, Record]:
    """The records with a new one: of those of intervals that it overlaps the rest is left."""
    found: dict[Slice, Record] = {}
    for key, record in records.items():
        if isinstance(key, tuple) and isinstance(slice_, tuple):
            parts = ((key[0], min(key[1], slice_[0])), (max(key[0], slice_[1]), key[1]))
            found |= {(first, last): record for first, last in parts if first < last}
        elif key != slice_:
            found[key] = record
    return {**found, slice_: Record(run, 0)}


Rows = tuple[tuple[str | None, Row], ...]


def _tagged(rows: Iterable[Row], slice_: Slice) -> Rows:
    tag = slice_ if isinstance(slice_, str) else None
    return tuple((tag, row) for row in rows)


def _replace(before: Rows, rows: Sequence[Row], slice_: Slice) -> Rows:
    others = tuple(each for each in before if slice_ is not None and each[0] != slice_)
    return others + _tagged(rows, slice_)


def _append(before: Rows, rows: Sequence[Row], slice_: Slice) -> Rows:
    return before + _tagged(rows, slice_)


def _merge(before: Rows, rows: Sequence[Row], slice_: Slice) -> Rows:
    new = _tagged(rows, slice_)
    keys = {(tag, row.id) for tag, row in new}
    return tuple(each for each in before if (each[0], each[1].id) not in keys) + new


def _by_partition(before: Rows, rows: Sequence[Row], slice_: Slice) -> Rows:
    values = {row.g for row in rows}
    return tuple(each for each in before if each[1].g not in values) + _tagged(rows, slice_)


def _time_range(before: Rows, rows: Sequence[Row], slice_: Slice) -> Rows:
    assert isinstance(slice_, tuple)
    start, end = slice_

    def inside(row: Row) -> bool:
        return row.at is not None and start <= row.at < end

    kept = tuple(each for each in before if not inside(each[1]))
    return kept + _tagged([row for row in rows if inside(row)], slice_)


def _rule(form: Form, run: Run) -> Callable[[Rows, Sequence[Row], Slice], Rows]:
    merged_anew = run.restates and form.strategy == "merge"
    return _RULES["replace" if merged_anew else form.strategy]


_RULES: Mapping[str, Callable[[Rows, Sequence[Row], Slice], Rows]] = {
    "replace": _replace,
    "append": _append,
    "merge": _merge,
    "partitions": _by_partition,
    "time_range": _time_range,
}


def states_of_run(
    form: Form, state: State, source: Sequence[Row], slices: Sequence[Slice], run: Run
) -> tuple[list[Slice], list[State]]:
    """What is tried in turn, and what there is before the run and after each of these.

    A range of time whose query fails is tried by halves.
    """
    left, pieces, found = list(slices), list[Slice](), [state]
    while left:
        piece = left.pop(0)
        pieces.append(piece)
        found.append(attempt(form, found[-1], source, piece, run))
        units = units_of(form, piece)
        rows = [row for row in source if _is_read(form, row, piece)]
        if form.strategy == "time_range" and len(units) > 1 and any(r.v == BOOM for r in rows):
            assert isinstance(piece, tuple)
            middle = units[len(units) // 2]
            assert isinstance(middle, tuple)
            left[:0] = [(piece[0], middle[0]), (middle[0], piece[1])]
    return pieces, found
