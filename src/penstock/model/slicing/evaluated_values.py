"""Values of evaluated conditions: single ones, spans of them, and those that nobody knows.

A value is NULL (None), a text, a whole number, a date, a moment in UTC, or a truth. Of a column a
slice may have many values: a `Span` has all between two, a `LooseText` a text whose form is not
known, and `UNKNOWN` anything. Conversions are Spark's; what they do not cover is `UNKNOWN`.
"""

from __future__ import annotations

import re
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


def _number_of_text(_: Casts, text: str) -> Value:
    return int(text) if _DIGITS.fullmatch(text) else UNKNOWN


#: types whose values a cast leaves in their order
_IN_ORDER = frozenset({"date", "moment", "text"})
_CASTS: Mapping[tuple[str, str], Callable[[Casts, Value], Value]] = {
    ("text", "date"): lambda _, text: _day_of_text(text),
    ("text", "moment"): _moment_of_text,
    ("text", "int"): _number_of_text,
    ("date", "moment"): lambda casts, day: casts.midnight(day),
    ("date", "text"): lambda _, day: day.isoformat(),
    ("moment", "date"): lambda casts, moment: casts.wall(moment).date(),
    ("moment", "text"): _text_of_moment,
}
