"""A time column as its type and format have it: what an interval is in it, and which rows fit.

Dates, times with and without a zone, texts in a format and integers (counts since 1970, or a format
of digits). A column whose values sort as time does is compared as what it is, so that the lake can
choose files by it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from penstock.errors import StepError
from penstock.model.time.interval import Intervals, IntervalUnit
from penstock.model.time.moments import COUNTS, DEFAULT, TimeFormat, read_format
from penstock.model.time.time_range import TimeColumn
from penstock.sql.dialect import to_spark
from penstock.sql.identifiers import did_you_mean, quoted
from penstock.sql.literals import text_literal
from penstock.sql.tokens import unsubstituted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from penstock.destinations.values import Bound, Ranges

_DAY, _HOUR = timedelta(days=1), timedelta(hours=1)
_INSTANT = timedelta(microseconds=1)
_ALWAYS_FIT = ("date", "timestamp")
_INTEGERS = ("tinyint", "smallint", "int", "bigint")


@dataclass(frozen=True, slots=True)
class TimeValues:
    """``value`` is the column, or the expression, in Spark's SQL, and ``kind`` its type.

    ``moment`` is its value as microseconds since 1970, NULL where it has none; ``bound`` what the
    start of an interval is among its values. Where ``bound`` is None they do not sort as time does.
    """

    column: TimeColumn
    value: str
    kind: str
    moment: str
    step: timedelta
    bound: Callable[[datetime], Bound] | None

    @property
    def format(self) -> str:
        return self.column.format or DEFAULT

    @property
    def unused_format(self) -> str | None:
        """A notice of a format that says nothing: SQLMesh's models have one for every column."""
        given = self.column.format
        if given in (None, DEFAULT) or not self.kind.startswith(_ALWAYS_FIT):
            return None
        return (
            f"the format {given} of the time column {self.column.name} is not used: it is "
            f"{self.kind.upper()}"
        )

    @property
    def is_bad(self) -> str:
        """The condition of rows that have no time."""
        return f"{self.value} IS NULL OR {self._misfits}"

    @property
    def _misfits(self) -> str:
        if self.kind.startswith(_ALWAYS_FIT):
            return "false"
        return f"({self.value} IS NOT NULL AND {self.moment} IS NULL)"

    def counts(self, inside: str) -> dict[str, str]:
        """Aggregates over rows, by their names: those that lack a time, that do not fit (with one
        value of them), that are not ``inside``, and the first and last moments of these.
        """
        outside = f"({self.value} IS NOT NULL AND NOT ({inside}))"
        moment = f"CASE WHEN {outside} THEN {self.moment} END"
        misfit = f"CASE WHEN {self._misfits} THEN CAST({self.value} AS STRING) END"
        return {
            "lacking": f"count_if({self.value} IS NULL)",
            "misfits": f"count_if({self._misfits})",
            "misfit": f"max({misfit})",
            "outside": f"count_if({outside})",
            "first": f"min({moment})",
            "last": f"max({moment})",
        }

    def partition_keys(self, unit: IntervalUnit) -> tuple[str, ...]:
        """The keys of a lake that have one value, or few, in an interval of ``unit``; none where
        there are none.
        """
        if self.column.by_expression:
            return ()
        name = self.column.name
        if self.kind.startswith("timestamp") or (self.kind == "date" and unit.shortest > _DAY):
            known = ("year", "month", "day", "hour")
            at = known.index(unit.name) if unit.name in known else len(known) - 1
            return tuple(f"{each}({name})" for each in known[: at + 1])
        return (name,) if self.step >= _HOUR else ()

    def ranges(self, intervals: Intervals) -> Ranges:
        """The rows of these intervals."""
        from penstock.destinations.values import Ranges

        by_itself = self.bound is not None
        bound = self.bound or _micros
        bounds = tuple((bound(each.start), self._after(each.end, bound)) for each in intervals)
        if by_itself and not self.column.by_expression:
            return Ranges(bounds, column=self.column.name)
        return Ranges(bounds, by=self.value if by_itself else self.moment)

    def _after(self, end: datetime, bound: Callable[[datetime], Bound]) -> Bound:
        """The first value after an interval. One that stands for a time which begins in the
        interval belongs to it: at 13:00 the date of a day that is not over.
        """
        value = bound(end)
        if bound(end - _INSTANT) != value:
            return value
        while bound(end) == value:
            end += self.step
        return bound(end)


def time_values(df: DataFrame, column: TimeColumn, unit: IntervalUnit, dialect: str) -> TimeValues:
    """The time column of rows. Raises StepError for one that they lack, whose type or format cannot
    be a time, and one that cannot tell the units of the model apart.
    """
    value = _value(df, column, dialect)
    kind = dict(df.selectExpr(unsubstituted(f"{value} AS t")).dtypes)["t"]
    return of_kind(column, value, kind, unit)


def of_kind(column: TimeColumn, value: str, kind: str, unit: IntervalUnit) -> TimeValues:
    """The time column by its value in Spark's SQL and its type. Raises StepError."""
    family = next((read for name, read in _FAMILIES.items() if kind.startswith(name)), None)
    if family is None:
        raise StepError(
            f"the time column {column.name} is {kind.upper()}, which is not a time",
            hint="it can be a DATE, a TIMESTAMP, a text or an integer: cast it in the query",
        )
    found = family(column, value, kind)
    if found.step > unit.shortest:
        raise StepError(
            f"the time column {column.name} ({_said(found)}) cannot tell the intervals of a model "
            f"by {unit} apart",
            hint="give the column more of the time, or the model a coarser interval_unit",
        )
    return found


def _said(values: TimeValues) -> str:
    return values.column.format or (DEFAULT if values.kind == "string" else values.kind.upper())


def _value(df: DataFrame, column: TimeColumn, dialect: str) -> str:
    if column.by_expression:
        return to_spark(column.name, dialect, expression=True)
    known = next((name for name in df.columns if name.casefold() == column.name.casefold()), None)
    if known is None:
        raise StepError(
            f"the query has no column {column.name!r}, which is its time column",
            hint=did_you_mean(column.name, df.columns, "columns"),
        )
    return quoted(known)


def _date(column: TimeColumn, value: str, kind: str) -> TimeValues:
    moment = f"CAST(unix_date({value}) AS BIGINT) * 86400000000"
    return TimeValues(column, value, kind, moment, _DAY, lambda at: at.date())


def _zoned(column: TimeColumn, value: str, kind: str) -> TimeValues:
    step = timedelta(microseconds=1)
    return TimeValues(column, value, kind, f"unix_micros({value})", step, lambda at: at)


def _zoneless(column: TimeColumn, value: str, kind: str) -> TimeValues:
    """The wall time of UTC."""
    moment = f"unix_micros(CAST(concat(CAST({value} AS STRING), 'Z') AS TIMESTAMP))"
    step = timedelta(microseconds=1)
    return TimeValues(column, value, kind, moment, step, lambda at: at.replace(tzinfo=None))


def _text(column: TimeColumn, value: str, kind: str) -> TimeValues:
    form = read_format(column.format or DEFAULT)
    if form.per_second is not None:
        raise StepError(
            f"the time column {column.name} is a text, and {form.text} counts by integers",
            hint=f"cast it to BIGINT in the query, or give a format such as '{DEFAULT}'",
        )
    bound = form.write if form.sorts else None
    return TimeValues(column, value, kind, _parsed(value, form), form.step, bound)


def _integer(column: TimeColumn, value: str, kind: str) -> TimeValues:
    form = None if column.format is None else read_format(column.format)
    if form is None or (form.per_second is None and not form.is_number):
        said = "no format" if form is None else f"the format {form.text}"
        raise StepError(
            f"the time column {column.name} is {kind.upper()}, and has {said} that integers have",
            hint=f"write time_column ({column.name}, '%Y%m%d'), or {', '.join(COUNTS)} for counts",
        )
    if form.per_second is None:
        moment = _parsed(f"CAST({value} AS STRING)", form)
    else:
        moment = f"CAST({value} AS BIGINT) * {1_000_000 // form.per_second}L"
    return TimeValues(column, value, kind, moment, form.step, lambda at: int(form.write(at)))


def _parsed(text: str, form: TimeFormat) -> str:
    """The microseconds of a text in UTC, whatever the session's zone; NULL for one that does not
    fit.
    """
    pattern = text_literal(f"{form.spark} XXX")
    fits = f"{text} RLIKE {text_literal(f'^(?:{form.regex})$')}"
    parsed = f"unix_micros(try_to_timestamp(concat({text}, ' +00:00'), {pattern}))"
    return f"CASE WHEN {fits} THEN {parsed} END"


def _micros(moment: datetime) -> int:
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


# By the beginning of a type's name in Spark.
_FAMILIES: Mapping[str, Callable[[TimeColumn, str, str], TimeValues]] = {
    "date": _date,
    "timestamp_ntz": _zoneless,
    "timestamp": _zoned,
    "string": _text,
    "varchar": _text,
    "char": _text,
    **dict.fromkeys(_INTEGERS, _integer),
}
