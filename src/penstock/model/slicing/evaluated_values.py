"""Values of evaluated conditions: single ones, spans of them, unknown ones; and functions of them.

A value is NULL (None), a text, a whole number, a date, a moment in UTC, or a truth. Of a column a
slice may have many values: a `Span` has all between two, a `LooseText` a text whose form is not
known, and `UNKNOWN` anything. Conversions are Spark's; what they do not cover is `UNKNOWN`.

Functions that conditions are evaluated with, by the names that `condition_reading` gives them.

Each takes values of the types that it declares, none of them NULL or unknown. A sign says that a
function keeps (``+``) or reverses (``-``) the order of an argument; of any other argument it needs
a single value. What a function does not cover is `UNKNOWN`.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, Final
from zoneinfo import ZoneInfo


class Unknown:
    """Any value, of any type, or NULL."""


UNKNOWN: Final = Unknown()
#: a value as the module describes it; operators of Python do the rest
Value = Any
_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Span:
    """Any value from ``low`` to ``high``, both included, which are of one type."""

    low: Value
    high: Value


@dataclass(frozen=True, slots=True)
class LooseText:
    """A text in an unknown form; ``day`` and ``moment`` are what casts make of it."""

    day: Value
    moment: Value


Truths = frozenset[bool | None]
TRUE: Truths = frozenset({True})
FALSE: Truths = frozenset({False})
NULL: Truths = frozenset({None})
ANY_TRUTH: Truths = frozenset({True, False, None})


def span_of_values(low: Value, high: Value) -> Value:
    """Return all values between two.

    Args:
        low: The least.
        high: The greatest.

    Returns:
        A span, or the value where both are the same.
    """
    return low if low == high else Span(low, high)


def kind_of(value: Value) -> str:
    """Return the type of a value.

    Args:
        value: A single value or a span.

    Returns:
        ``text``, ``int``, ``date``, ``moment`` or ``truth``; ``""`` for anything else.
    """
    value = value.low if isinstance(value, Span) else value
    return next((name for type_, name in _KINDS if isinstance(value, type_)), "")


_KINDS: tuple[tuple[type, str], ...] = (
    (str, "text"),
    (bool, "truth"),
    (frozenset, "truth"),
    (int, "int"),
    (datetime, "moment"),
    (date, "date"),
)
_DATE = re.compile(r"(\d{4})(?:-(\d{1,2})(?:-(\d{1,2})(?:[ T].*)?)?)?")
_MOMENT = re.compile(
    r"\d{4}-\d{2}-\d{2}(?:[ T]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?(?:[+-]\d{2}:\d{2}|Z)?)?"
)
_DIGITS = re.compile(r"0|-?[1-9]\d{0,17}")


@dataclass(frozen=True, slots=True)
class Casts:
    """Convert values between types in the time zone of a session."""

    zone: ZoneInfo

    def to(self, kind: str, value: Value) -> Value:
        """Cast a value.

        Args:
            kind: A type as `kind_of` has it, ``day of moment`` or ``clock``.
            value: Any value; NULL and `UNKNOWN` stay.

        Returns:
            The value in that type; `UNKNOWN` where that is not certain.
        """
        if value is None or isinstance(value, Unknown) or kind_of(value) == kind:
            return value
        if kind == "day of moment":
            return self.to("date", self.to("moment", value))
        if kind == "clock":  # of a text it is what stands there, whatever its zone
            is_text = isinstance(value, LooseText) or kind_of(value) == "text"
            return UNKNOWN if is_text else self.to("moment", value)
        return self._cast(kind, value)

    def _cast(self, kind: str, value: Value) -> Value:
        if isinstance(value, LooseText):
            return {"date": value.day, "moment": value.moment}.get(kind, UNKNOWN)
        if isinstance(value, Span):
            return self._span(kind, value)
        convert = _CASTS.get((kind_of(value), kind))
        return UNKNOWN if convert is None else convert(self, value)

    def _span(self, kind: str, span: Span) -> Value:
        bounds = [self.to(kind, item) for item in (span.low, span.high)]
        if any(isinstance(item, Unknown) for item in bounds) or kind not in _IN_ORDER:
            return UNKNOWN
        low, high = bounds
        if kind_of(span) == "moment" and not self.is_even(span):
            return Span(low - _DAY, high + _DAY) if kind == "date" else UNKNOWN
        return span_of_values(low, high)

    def is_even(self, span: Span) -> bool:
        """Return whether both ends of a span of moments have one offset from UTC.

        Args:
            span: The moments.

        Returns:
            False where clocks change between them.
        """
        low, high = (item.astimezone(self.zone).utcoffset() for item in (span.low, span.high))
        return bool(low == high)

    def wall(self, moment: datetime) -> datetime:
        """Return a moment as the clocks of the zone show it.

        Args:
            moment: A moment in UTC.

        Returns:
            A time without a zone.
        """
        return moment.astimezone(self.zone).replace(tzinfo=None)

    def instant(self, wall: datetime) -> datetime:
        """Return the moment at which clocks of the zone show a time.

        Args:
            wall: A time without a zone.

        Returns:
            A moment in UTC, the earlier one of two.
        """
        return wall.replace(tzinfo=self.zone).astimezone(UTC)

    def midnight(self, day: date) -> datetime:
        """Return the moment at which a day begins.

        Args:
            day: A date.

        Returns:
            A moment in UTC.
        """
        return self.instant(datetime.combine(day, time()))


def _day_of_text(text: str) -> Value:
    """Return the date that Spark reads in a text; `UNKNOWN` for forms beside years to days."""
    match = _DATE.fullmatch(text)
    if match is None:
        return UNKNOWN
    year, month, day = (int(part or 1) for part in match.groups())
    try:
        return date(year, month, day)
    except ValueError:
        return UNKNOWN


def _moment_of_text(casts: Casts, text: str) -> Value:
    if _MOMENT.fullmatch(text) is None:
        return UNKNOWN
    try:
        parsed = datetime.fromisoformat(text)
    except ValueError:
        return UNKNOWN
    return casts.instant(parsed) if parsed.tzinfo is None else parsed.astimezone(UTC)


def _text_of_moment(casts: Casts, moment: datetime) -> str:
    text = casts.wall(moment).isoformat(sep=" ")
    return text.rstrip("0") if "." in text else text


#: types whose values a cast leaves in their order
_IN_ORDER = frozenset({"date", "moment", "text"})
_CASTS: Mapping[tuple[str, str], Callable[[Casts, Value], Value]] = {
    ("text", "date"): lambda _, text: _day_of_text(text),
    ("text", "moment"): _moment_of_text,
    ("text", "int"): lambda _, text: int(text) if _DIGITS.fullmatch(text) else UNKNOWN,
    ("date", "moment"): lambda casts, day: casts.midnight(day),
    ("date", "text"): lambda _, day: day.isoformat(),
    ("moment", "date"): lambda casts, moment: casts.wall(moment).date(),
    ("moment", "text"): _text_of_moment,
}


_UNITS = ("year", "quarter", "month", "week", "day")


@dataclass(frozen=True, slots=True)
class Function:
    """A function over values.

    Attributes:
        apply: Computes it of the casts and its arguments.
        kinds: The types of its arguments, the last one of all that follow.
        signs: Say of the first arguments whether it keeps (``+``) or reverses (``-``) their order.
    """

    apply: Callable[..., Value]
    kinds: tuple[str, ...]
    signs: str = ""

    def call(self, casts: Casts, arguments: list[Value]) -> Value:
        """Compute the function of single values and spans.

        Args:
            casts: Converts between types.
            arguments: Values of the types in ``kinds``.

        Returns:
            Its value; a span of all values for spans; `UNKNOWN` where that is not certain.
        """
        spans = [n for n, item in enumerate(arguments) if isinstance(item, Span)]
        if not spans:
            return self.apply(casts, *arguments)
        if any(n >= len(self.signs) or self.signs[n] not in "+-" for n in spans):
            return UNKNOWN
        bounds = [self.apply(casts, *self._ends(arguments, sign)) for sign in "+-"]
        if any(item is UNKNOWN for item in bounds):
            return UNKNOWN
        return span_of_values(*bounds)

    def _ends(self, arguments: list[Value], sign: str) -> list[Value]:
        """Return the arguments of the least value (``+``), or the greatest."""
        return [
            (item.low if self.signs[n] == sign else item.high) if isinstance(item, Span) else item
            for n, item in enumerate(arguments)
        ]


def _add_months(_: Casts, day: date, number: int) -> date:
    months = day.year * 12 + day.month - 1 + number
    year, month = divmod(months, 12)
    return day.replace(year, month + 1, min(day.day, monthrange(year, month + 1)[1]))


def _truncate_day(_: Casts, day: date, unit: str) -> Value:
    """Return the first day of the year, quarter, month or week of a day."""
    firsts: Mapping[str, Callable[[], date]] = {
        "year": lambda: day.replace(month=1, day=1),
        "quarter": lambda: day.replace(month=(day.month - 1) // 3 * 3 + 1, day=1),
        "month": lambda: day.replace(day=1),
        "week": lambda: day - timedelta(days=day.weekday()),
        "day": lambda: day,
    }
    start_index = firsts.get(unit)
    return UNKNOWN if start_index is None else start_index()


def _truncate_moment(casts: Casts, moment: datetime, unit: str) -> Value:
    wall = casts.wall(moment)
    if unit in _UNITS:
        return casts.midnight(_truncate_day(casts, wall.date(), unit))
    if casts.zone.key != "UTC":  # an hour may come twice
        return UNKNOWN
    shorter: Mapping[str, Callable[[], datetime]] = {
        "hour": lambda: wall.replace(minute=0, second=0, microsecond=0),
        "minute": lambda: wall.replace(second=0, microsecond=0),
        "second": lambda: wall.replace(microsecond=0),
    }
    truncated = shorter.get(unit)
    return UNKNOWN if truncated is None else casts.instant(truncated())


def _as_clock(casts: Casts, moment: datetime) -> Value:
    """Return a time without a zone; where clocks change only midnights are certain."""
    is_midnight = casts.midnight(casts.wall(moment).date()) == moment
    return moment if is_midnight or casts.zone.key == "UTC" else UNKNOWN


_PARTS: Mapping[str, Callable[[date], int]] = {
    "year": lambda day: day.year,
    "quarter": lambda day: (day.month + 2) // 3,
    "month": lambda day: day.month,
    "week": lambda day: day.isocalendar().week,
    "day": lambda day: day.day,
    "dayofyear": lambda day: day.timetuple().tm_yday,
    "dayofweek": lambda day: day.isoweekday() % 7 + 1,
}


def _part_of_day(name: str) -> Function:
    """Return the function of one field of a date; only years are in the order of dates."""
    part = _PARTS[name]
    return Function(lambda _, day: part(day), ("date",), "+" if name == "year" else "")


_FIELD = re.compile(r"%([YmdHMS])(strict)?")


def _format_day(_: Casts, day: date, pattern: str) -> Value:
    """Return a date as a text; ``pattern`` is sqlglot's, whose padded fields are ``strict``."""
    fields = _FIELD.findall(pattern)
    separators = _FIELD.sub("", pattern)
    if any(name not in "Ymd" or (name != "Y") != bool(strict) for name, strict in fields):
        return UNKNOWN
    if not fields or not set(separators) <= set("-/._ "):
        return UNKNOWN
    texts = {"Y": f"{day.year:04d}", "m": f"{day.month:02d}", "d": f"{day.day:02d}"}
    return _FIELD.sub(lambda match: texts[match[1]], pattern)


def _parse_day(casts: Casts, text: str, pattern: str) -> Value:
    """Return the date of a text; of one that does not fit nothing is known."""
    if pattern.replace("strict", "") not in {"%Y%m%d", "%Y-%m-%d", "%Y/%m/%d"}:
        return UNKNOWN
    separator = pattern.replace("strict", "")[2]
    separator = "" if separator == "%" else separator
    try:
        day = date.fromisoformat(text.replace(separator, "-") if separator else text)
    except ValueError:
        return UNKNOWN
    return day if _format_day(casts, day, pattern) == text else UNKNOWN


def _substring(_: Casts, text: Value, start: int, length: int | None = None) -> Value:
    """Return a part of a text as Spark counts it: from 1, or from the end if negative."""
    start_index = len(text) + start if start < 0 else max(start - 1, 0)
    end_index = len(text) if length is None else start_index + max(length, 0)
    return text[max(start_index, 0) : max(end_index, 0)]


def _prefix(_: Casts, text: str, length: int) -> str:
    return text[: max(length, 0)]


def _is_like(_: Casts, text: str, pattern: str) -> Value:
    if "\\" in pattern:
        return UNKNOWN
    wild = {"%": ".*", "_": "."}
    regex = "".join(wild.get(item) or re.escape(item) for item in pattern)
    return re.fullmatch(regex, text, re.DOTALL) is not None


def _case_of(change: Callable[[str], str]) -> Callable[[Casts, str], Value]:
    """Return a function that changes the case of a text: Java's other letters are not Python's."""
    return lambda _, text: change(text) if text.isascii() else UNKNOWN


def _fitting(number: int) -> Value:
    """Return a number, if an INT holds it: beyond that Spark's settings decide."""
    return number if abs(number) < _BEYOND_INT else UNKNOWN


_BEYOND_INT = 2**31
_TEXT, _OF_DATE = ("text",), ("date",)
FUNCTIONS: Mapping[str, Function] = {
    "add_days": Function(
        lambda _, day, number: day + timedelta(days=number), ("date", "int"), "++"
    ),
    "add_months": Function(_add_months, ("date", "int"), "+"),
    "add_time": Function(
        lambda _, moment, seconds: moment + timedelta(seconds=seconds), ("moment", "int"), "+"
    ),
    "date_diff": Function(lambda _, end, start: (end - start).days, _OF_DATE, "+-"),
    "trunc_date": Function(_truncate_day, ("date", "text"), "+"),
    "trunc_moment": Function(_truncate_moment, ("moment", "text"), "+"),
    "last_day": Function(
        lambda _, day: day.replace(day=monthrange(day.year, day.month)[1]), _OF_DATE, "+"
    ),
    **{f"part_{name}": _part_of_day(name) for name in _PARTS},
    "hour": Function(lambda casts, moment: casts.wall(moment).hour, ("moment",)),
    "format_date": Function(_format_day, ("day of moment", "text")),
    "parse_date": Function(_parse_day, ("text", "text")),
    "as_date": Function(lambda _, day: day, _OF_DATE, "+"),
    "as_moment": Function(lambda _, moment: moment, ("moment",), "+"),
    "as_clock": Function(_as_clock, ("clock",), "+"),
    "as_text": Function(lambda _, text: text, _TEXT, "+"),
    "as_int": Function(lambda _, number: number, ("int",), "+"),
    "substring": Function(_substring, ("text", "int", "int")),
    "left": Function(_prefix, ("text", "int"), "+"),
    "right": Function(
        lambda _, text, length: text[-length:] if length > 0 else "", ("text", "int")
    ),
    "concat": Function(lambda _, *texts: "".join(texts), _TEXT),
    "replace": Function(lambda _, text, old, new: text.replace(old, new) if old else text, _TEXT),
    "upper": Function(_case_of(str.upper), _TEXT),
    "lower": Function(_case_of(str.lower), _TEXT),
    "trim": Function(lambda _, text: text.strip(" "), _TEXT),
    "length": Function(lambda _, text: len(text), _TEXT),
    "like": Function(_is_like, _TEXT),
    "starts_with": Function(lambda _, text, rhs: text.startswith(rhs), _TEXT),
    "ends_with": Function(lambda _, text, rhs: text.endswith(rhs), _TEXT),
    "contains": Function(lambda _, text, rhs: rhs in text, _TEXT),
    "add": Function(lambda _, lhs, rhs: _fitting(lhs + rhs), ("int",), "++"),
    "subtract": Function(lambda _, lhs, rhs: _fitting(lhs - rhs), ("int",), "+-"),
    "multiply": Function(lambda _, lhs, rhs: _fitting(lhs * rhs), ("int",)),
    "remainder": Function(
        lambda _, lhs, rhs: lhs % rhs if lhs >= 0 and rhs > 0 else UNKNOWN, ("int",)
    ),
    "negative": Function(lambda _, number: -number, ("int",), "-"),
}
