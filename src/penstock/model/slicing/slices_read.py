"""Tell which slices of an input a slice of its reader needs, by evaluating conditions. Pure.

Windows (`needs`) say it of most queries. Where a condition says more, it is evaluated over the
values that its column has in a slice of the input (`evaluation`): the slice is needed if the
condition may be true of any of them. Nothing here depends on rows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

from penstock.model.definition.model import Model
from penstock.model.script.arguments import PARTITION, PARTITION_END, PARTITION_START
from penstock.model.slicing.condition_reading import Condition
from penstock.model.slicing.evaluated_values import Casts, LooseText, Span, Value, span_of_values
from penstock.model.slicing.evaluation import Expression, Program, as_truths
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
    """One way on which a reader uses an input; all of it holds for what is read.

    Attributes:
        windows: The moments of the slices, in one of which they are.
        conditions: Conditions, each with the column of the input that it is about.
    """

    windows: tuple[Window, ...]
    conditions: tuple[tuple[Condition, SliceColumn], ...] = ()

    @property
    def text(self) -> str:
        """Return the conditions for people."""
        return " AND ".join(dict.fromkeys(item.text for item, _ in self.conditions))


@dataclass(frozen=True, slots=True)
class Selection:
    """Choose the slices of an input that the slices of a reader need: those of any use.

    Attributes:
        reader: The model that reads.
        upstream: The input.
        uses: How the reader uses the input.
        zone: The time zone of the session.
    """

    reader: Model
    upstream: Model
    uses: tuple[SlicesRead, ...]
    zone: str = "UTC"
    _programs: dict[Expression, Program] = field(default_factory=dict, compare=False, repr=False)

    @property
    def parts(self) -> tuple[tuple[SlicesRead, ...], str]:
        """Return what it is made of beside the models."""
        return self.uses, self.zone

    def __str__(self) -> str:
        """Return the conditions for people."""
        return " or ".join(dict.fromkeys(use.text for use in self.uses if use.text))

    def keeps(self, slice_: Slice) -> Keeps:
        """Return what tells whether a slice of the reader needs one of the input.

        Args:
            slice_: A slice of the reader.

        Returns:
            A function of a slice of the input.
        """
        own_span = span_of(slice_, self.reader.partition)
        keepers = [self._keeps(use, slice_, own_span) for use in self.uses]
        if len(keepers) == 1:
            return keepers[0]
        return lambda input_slice: any(keeps(input_slice) for keeps in keepers)

    def _keeps(self, use: SlicesRead, slice_: Slice, own_span: Interval | None) -> Keeps:
        is_bounded = own_span is not None and use.windows != (EVERYTHING,)
        moments: list[Interval] = []
        if own_span is not None and is_bounded:
            own_zone = zone_of(self.reader.partition)
            spans = (window.of(own_span, own_zone) for window in use.windows)
            moments = [span for span in spans if span is not None]
        spec, zone = self.upstream.partition, self.zone
        conditions = [
            (program.run, program.constants(_slice_values(program, slice_, own_span)), column)
            for program, column in map(self._prepared, use.conditions)
        ]

        def keeps(input_slice: Slice) -> bool:
            if is_bounded and not _meets(span_of(input_slice, spec), moments):
                return False
            for run, constants, column in conditions:
                values = values_of(column, input_slice, spec, zone)  # None are unknown ones
                if values is not None and not any(
                    True in as_truths(run(item, constants)) for item in values
                ):
                    return False
            return True

        return keeps

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
    return any(span.start < item.end and item.start < span.end for item in moments)


def _slice_values(program: Program, slice_: Slice, own_span: Interval | None) -> dict[str, Value]:
    """Return the values of the arguments that an expression has of a slice.

    Those of other types are left out, and so not known.
    """
    names = {name for part in program.parts for name in _names(part)}
    bounds = (
        {} if own_span is None else {PARTITION_START: own_span.start, PARTITION_END: own_span.end}
    )
    values: dict[str, Value] = {PARTITION: slice_.text, **bounds}
    for name in names & TYPES.keys() if own_span is not None else ():
        value = value_of(name, own_span, None)
        if isinstance(value, datetime) and value.tzinfo is None:
            value = program.casts.instant(value)
        if not isinstance(value, float):
            values[name] = value
    return values


def _names(expression: Expression) -> Iterator[str]:
    """Yield the arguments of a slice that an expression names."""
    if expression[0] == "slice":
        yield str(expression[1])
    for item in expression[1:]:
        if isinstance(item, tuple):
            yield from _names(item)


# --- the values of a column


@lru_cache(maxsize=65536)
def values_of(
    column: SliceColumn, slice_: Slice, spec: PartitionSpec | None, zone: str
) -> tuple[Value, ...] | None:
    """Return the values that a column may have in a slice of its table, whatever its type is.

    Args:
        column: The column.
        slice_: A slice of the table that has the column.
        spec: The ``partitioned`` line of the table; None if its slices are intervals.
        zone: The time zone of the session.

    Returns:
        Values and spans, and NULL unless the column is Penstock's own; None where nothing is known.
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
    """Return what a column may be that equals the text of a slice.

    That is the text, or what it is as a date or a time. Of numbers and truths, whose texts vary,
    nothing is known.
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
    """Yield what a column may be whose date is one of a slice's.

    In other zones than UTC the days beside these are among them.
    """
    margin = timedelta() if {casts.zone.key, zone.key} == {"UTC"} else _DAY
    first_day = span.start.astimezone(zone).date() - margin
    latest = (span.end - _INSTANT).astimezone(zone).date() + margin
    for day, final in _pieces(first_day, latest):
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
    """Yield what a column may be whose moment is one of a slice's.

    That is a time, day by day, a date, or a text. A time column has dates, times without a zone
    and texts of UTC.
    """
    start, latest = span.start, span.end - _INSTANT
    yield from _by_days(start, latest, casts)
    if is_time:
        for day, final in _pieces(start.astimezone(UTC).date(), latest.astimezone(UTC).date()):
            yield span_of_values(day, final)
            yield span_of_values(day.isoformat(), final.isoformat())
        if casts.zone.key != "UTC":
            walls = [casts.instant(moment.replace(tzinfo=None)) for moment in (start, latest)]
            yield from _by_days(min(walls) - _HOUR, max(walls) + _HOUR, casts)
    else:
        first_day, final = casts.wall(start).date(), casts.wall(latest).date()
        for day, until in _pieces(first_day, final):
            if day != until or start <= casts.midnight(day) <= latest:
                yield span_of_values(day, until)
        margin = timedelta() if casts.zone.key == "UTC" else _DAY
        for low, high in _stretches(start, latest, casts):
            day, until = casts.wall(low).date() - margin, casts.wall(high).date() + margin
            yield LooseText(span_of_values(day, until), span_of_values(low, high))
    yield None


_HOUR = timedelta(hours=1)


def _by_days(start: datetime, latest: datetime, casts: Casts) -> Iterator[Value]:
    """Yield the values of a stretch of time, day by day."""
    yield from (span_of_values(*item) for item in _stretches(start, latest, casts))


def _stretches(
    start: datetime, latest: datetime, casts: Casts
) -> Iterator[tuple[datetime, datetime]]:
    """Yield a stretch of time in pieces that do not pass midnight, or as a whole if it is long."""
    for day, final in _pieces(casts.wall(start).date(), casts.wall(latest).date()):
        end = casts.midnight(final + _DAY) - _INSTANT
        yield max(casts.midnight(day), start), min(end, latest)


def _pieces(first_day: date, latest: date) -> list[tuple[date, date]]:
    """Return the days from one to another, each by itself; all together if they are many."""
    number = (latest - first_day).days + 1
    if number > _MOST_DAYS:
        return [(first_day, latest)]
    return [(first_day + n * _DAY, first_day + n * _DAY) for n in range(number)]
