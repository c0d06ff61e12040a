"""Tell which slices of an input a slice of its reader needs, by evaluating conditions. Pure.

Windows (`needs`) say it of most queries. Where a condition says more, it is evaluated over the
values that its column has in a slice of the input (`evaluation`): the slice is needed if the
condition may be true of any of them. Nothing here depends on rows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

from penstock.model.definition.model import Model
from penstock.model.script.arguments import PARTITION, PARTITION_END, PARTITION_START
from penstock.model.slicing.condition_reading import Condition
from penstock.model.slicing.evaluated_values import (
    Casts,
    LooseText,
    Span,
    Value,
    span_of_values,
)
from penstock.model.slicing.evaluation import Expression, Program, Run, as_truths
from penstock.model.slicing.moments import Grain
from penstock.model.time.interval import Interval
from penstock.model.time.needs import EVERYTHING, Window
from penstock.model.time.partition import PartitionSpec
from penstock.model.time.slice import Part, Slice, span_of, zone_of
from penstock.model.time.time_macros import TYPES, value_of

_DAY, _INSTANT = timedelta(days=1), timedelta(microseconds=1)
#: days of a slice that are looked at one by one
_MOST_DAYS = 400
Keeps = Callable[[Slice], bool]


@dataclass(frozen=True, slots=True)
class SliceColumn:
    """A column of an input by which conditions choose its slices, as `ColumnWindows` has it.

    ``is_managed``: it is Penstock's own, with the text of the slice. ``is_time``: it is the time
    column of a model by time.
    """

    grain: Grain
    is_day: bool = False
    is_managed: bool = False
    is_time: bool = False


@dataclass(frozen=True, slots=True)
class SlicesRead:
    """One way on which a reader uses an input: ``windows`` of moments, and conditions, each with
    the column of the input that it is about. All of them hold for what is read.
    """

    windows: tuple[Window, ...]
    conditions: tuple[tuple[Condition, SliceColumn], ...] = ()

    @property
    def text(self) -> str:
        """Return the conditions for people."""
        return " AND ".join(dict.fromkeys(each.text for each, _ in self.conditions))


@dataclass(frozen=True, slots=True)
class Selection:
    """Choose the slices of an input that the slices of a reader need: those of any use. ``zone`` is
    the time zone of the session.
    """

    reader: Model
    upstream: Model
    uses: tuple[SlicesRead, ...]
    zone: str = "UTC"
    _programs: dict[Expression, Program] = field(default_factory=dict, compare=False, repr=False)

    def __str__(self) -> str:
        return " or ".join(dict.fromkeys(use.text for use in self.uses if use.text))

    def keeps(self, slice_: Slice) -> Keeps:
        """Return whether a slice of the reader needs one of the input."""
        own = span_of(slice_, self.reader.partition)
        keepers = [self._keeps(use, slice_, own) for use in self.uses]
        if len(keepers) == 1:
            return keepers[0]
        return lambda other: any(keeps(other) for keeps in keepers)

    def _keeps(self, use: SlicesRead, slice_: Slice, own: Interval | None) -> Keeps:
        is_bounded = own is not None and use.windows != (EVERYTHING,)
        moments = self._moments(use, own) if own is not None and is_bounded else []
        spec, zone = self.upstream.partition, self.zone
        conditions = [
            (program.run, program.constants(_slice_values(program, slice_, own)), column)
            for program, column in map(self._prepared, use.conditions)
        ]

        def keeps(other: Slice) -> bool:
            if is_bounded and not _meets(span_of(other, spec), moments):
                return False
            return all(
                _may_hold(run, constants, values_of(column, other, spec, zone))
                for run, constants, column in conditions
            )

        return keeps

    def _moments(self, use: SlicesRead, own: Interval) -> list[Interval]:
        zone = zone_of(self.reader.partition)
        found = (window.of(own, zone) for window in use.windows)
        return [each for each in found if each is not None]

    def _prepared(self, use: tuple[Condition, SliceColumn]) -> tuple[Program, SliceColumn]:
        condition, column = use
        program = self._programs.get(condition.expression)
        if program is None:
            program = Program.of(condition.expression, Casts(ZoneInfo(self.zone)))
            self._programs[condition.expression] = program
        return program, column


def _meets(span: Interval | None, moments: Iterable[Interval]) -> bool:
    if span is None:
        return True
    return any(span.start < each.end and each.start < span.end for each in moments)


def _may_hold(run: Run, constants: Sequence[Value], values: tuple[Value, ...] | None) -> bool:
    """Return whether a condition may be true of one of some values; None are unknown ones."""
    return values is None or any(True in as_truths(run(each, constants)) for each in values)


def _slice_values(program: Program, slice_: Slice, own: Interval | None) -> dict[str, Value]:
    """Return the values of the arguments that an expression has of a slice. Those of other types
    are left out, and so not known.
    """
    names = {name for part in program.parts for name in _names(part)}
    bounds = {} if own is None else {PARTITION_START: own.start, PARTITION_END: own.end}
    values: dict[str, Value] = {PARTITION: slice_.text, **bounds}
    for name in names & TYPES.keys() if own is not None else ():
        value = value_of(name, own, None)
        if isinstance(value, datetime) and value.tzinfo is None:
            value = program.casts.instant(value)
        if not isinstance(value, float):
            values[name] = value
    return values


def _names(expression: Expression) -> Iterator[str]:
    """Yield the arguments of a slice that an expression names."""
    if expression[0] == "slice":
        yield str(expression[1])
    for each in expression[1:]:
        if isinstance(each, tuple):
            yield from _names(each)


# --- the values of a column


@lru_cache(maxsize=65536)
def values_of(
    column: SliceColumn, slice_: Slice, spec: PartitionSpec | None, zone: str
) -> tuple[Value, ...] | None:
    """Return the values that a column may have in a slice of its table, whatever its type is; None
    where that is not known. A column may be NULL unless it is Penstock's own.
    """
    casts, grain, span = Casts(ZoneInfo(zone)), column.grain, span_of(slice_, spec)
    if grain in {Grain.TEXT, Grain.VALUE}:
        is_text = isinstance(slice_, Part)
        return _of_text(slice_.text, column.is_managed, casts) if is_text else None
    if span is None or (grain is Grain.MIXED and not column.is_day):
        return None
    try:
        if grain is Grain.INSTANT:
            return tuple(dict.fromkeys(_of_moments(span, column.is_time, casts)))
        return tuple(dict.fromkeys(_of_days(span, column.is_day, zone_of(spec), casts)))
    except OverflowError:
        return None


def _of_text(text: str, is_managed: bool, casts: Casts) -> tuple[Value, ...] | None:
    """Return what a column may be that equals the text of a slice: that, or what it is as a date or
    a time. Of numbers and truths, whose texts vary, nothing is known.
    """
    day = casts.to("date", text)
    if not isinstance(day, date):
        is_word = text[:1].isalpha() and text.lower() not in _OTHER_TYPES
        return (text, None) if is_managed or is_word else None
    if is_managed or _YEAR_TO_DAY.fullmatch(text):
        return (text, day, casts.midnight(day), None)
    return None


_YEAR_TO_DAY = re.compile(r"\d{4}-\d{2}(-\d{2})?")
#: texts that are equal to truths and numbers
_OTHER_TYPES = frozenset(
    {"t", "true", "y", "yes", "f", "false", "n", "no", "nan", "inf", "infinity"}
)


def _of_days(span: Interval, is_day: bool, zone: ZoneInfo, casts: Casts) -> Iterator[Value]:
    """Yield what a column may be whose date is one of a slice's: in other zones than UTC also the
    days beside these.
    """
    margin = timedelta() if {casts.zone.key, zone.key} == {"UTC"} else _DAY
    first = span.start.astimezone(zone).date() - margin
    last = (span.end - _INSTANT).astimezone(zone).date() + margin
    for day, final in _pieces(first, last):
        start, end = casts.midnight(day), casts.midnight(final + _DAY)
        yield span_of_values(day, final)
        if is_day:
            yield span_of_values(day.isoformat(), final.isoformat())
            yield span_of_values(start, casts.midnight(final))
        else:
            yield Span(start, end - _INSTANT)
            yield LooseText(span_of_values(day, final), Span(start - _DAY, end + _DAY))
    yield None


def _of_moments(span: Interval, is_time: bool, casts: Casts) -> Iterator[Value]:
    """Yield what a column may be whose moment is one of a slice's: a time day by day, a date, or a
    text. A time column has dates, times without a zone and texts of UTC.
    """
    start, last = span.start, span.end - _INSTANT
    yield from _by_days(start, last, casts)
    if is_time:
        for day, final in _pieces(start.astimezone(UTC).date(), last.astimezone(UTC).date()):
            yield span_of_values(day, final)
            yield span_of_values(day.isoformat(), final.isoformat())
        if casts.zone.key != "UTC":
            walls = [casts.instant(moment.replace(tzinfo=None)) for moment in (start, last)]
            yield from _by_days(min(walls) - _HOUR, max(walls) + _HOUR, casts)
    else:
        first, final = casts.wall(start).date(), casts.wall(last).date()
        for day, until in _pieces(first, final):
            if day != until or start <= casts.midnight(day) <= last:
                yield span_of_values(day, until)
        margin = timedelta() if casts.zone.key == "UTC" else _DAY
        for low, high in _stretches(start, last, casts):
            day, until = casts.wall(low).date() - margin, casts.wall(high).date() + margin
            yield LooseText(span_of_values(day, until), span_of_values(low, high))
    yield None


_HOUR = timedelta(hours=1)


def _by_days(start: datetime, last: datetime, casts: Casts) -> Iterator[Value]:
    """Yield the values of a stretch of time, day by day."""
    yield from (span_of_values(*each) for each in _stretches(start, last, casts))


def _stretches(
    start: datetime, last: datetime, casts: Casts
) -> Iterator[tuple[datetime, datetime]]:
    """Yield a stretch of time in pieces that do not pass midnight, or as a whole if it is long."""
    for day, final in _pieces(casts.wall(start).date(), casts.wall(last).date()):
        end = casts.midnight(final + _DAY) - _INSTANT
        yield max(casts.midnight(day), start), min(end, last)


def _pieces(first: date, last: date) -> list[tuple[date, date]]:
    """Return the days from one to another, each by itself; all together if they are many."""
    number = (last - first).days + 1
    if number > _MOST_DAYS:
        return [(first, last)]
    return [(first + n * _DAY, first + n * _DAY) for n in range(number)]
