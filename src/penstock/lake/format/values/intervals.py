"""DuckDB's intervals as text, as options hold them: ``7 days``, ``1 week 2 days``, ``04:05:06``."""

from __future__ import annotations

import calendar
import datetime as dt
import re
from collections.abc import Mapping
from dataclasses import dataclass

_PART = re.compile(
    r"\s*(?:(?P<clock>[+-]?\d+:\d{1,2}(?::\d{1,2}(?:\.\d{1,6})?)?)"
    r"|(?P<count>[+-]?\d+(?:\.\d+)?)\s*(?P<unit>[A-Za-z]*))"
)
_SECOND = 1_000_000

# Months, days or microseconds of one unit, by DuckDB's own spellings (measured on 1.5.5).
_MONTHS: Mapping[str, int] = {
    **dict.fromkeys(("month", "months", "mon", "mons"), 1),
    **dict.fromkeys(("quarter", "quarters"), 3),
    **dict.fromkeys(("year", "years", "yr", "yrs", "y"), 12),
    **dict.fromkeys(("decade", "decades"), 120),
    **dict.fromkeys(("century", "centuries"), 1200),
}
_DAYS: Mapping[str, int] = {
    **dict.fromkeys(("day", "days", "d"), 1),
    **dict.fromkeys(("week", "weeks", "w"), 7),
}
_MICROSECONDS: Mapping[str, int] = {
    **dict.fromkeys(("microsecond", "microseconds", "us", "usec", "usecs"), 1),
    **dict.fromkeys(("millisecond", "milliseconds", "ms", "msec", "msecs"), 1000),
    **dict.fromkeys(("", "second", "seconds", "sec", "secs", "s"), _SECOND),
    **dict.fromkeys(("minute", "minutes", "min", "mins", "m"), 60 * _SECOND),
    **dict.fromkeys(("hour", "hours", "hr", "hrs", "h"), 3600 * _SECOND),
}


@dataclass(frozen=True, slots=True)
class Interval:
    months: int = 0
    days: int = 0
    microseconds: int = 0

    def before(self, moment: dt.datetime) -> dt.datetime:
        """``moment`` less this: months first, the day cut to what its month has, as DuckDB does."""
        month = moment.year * 12 + moment.month - 1 - self.months
        year, zero_month = divmod(month, 12)
        day = min(moment.day, calendar.monthrange(year, zero_month + 1)[1])
        moved = moment.replace(year=year, month=zero_month + 1, day=day)
        return moved - dt.timedelta(days=self.days, microseconds=self.microseconds)

    def text(self) -> str:
        """DuckDB's text of it."""
        parts = [
            f"{count} {unit}{'' if abs(count) == 1 else 's'}"
            for count, unit in ((self.months, "month"), (self.days, "day"))
            if count
        ]
        if self.microseconds or not parts:
            parts.append(_clock_text(self.microseconds))
        return " ".join(parts)


def parse_interval(text: str) -> Interval | None:
    """What DuckDB casts ``text`` to; ``None`` for what it refuses. A bare number is seconds."""
    months = days = microseconds = 0
    at, rest = 0, text.rstrip()
    if rest.endswith(" ago"):
        found = parse_interval(rest[:-4])
        return None if found is None else _negative(found)
    while at < len(rest):
        match = _PART.match(rest, at)
        if match is None:
            return None
        at = match.end()
        if match["clock"]:
            microseconds += _clock(match["clock"])
            continue
        part = _part(match["count"], match["unit"].lower())
        if part is None:
            return None
        months, days = months + part.months, days + part.days
        microseconds += part.microseconds
    return Interval(months, days, microseconds) if at else None


def _negative(one: Interval) -> Interval:
    return Interval(-one.months, -one.days, -one.microseconds)


def _part(count: str, unit: str) -> Interval | None:
    if unit in _MONTHS:
        return None if "." in count else Interval(months=int(count) * _MONTHS[unit])
    if unit in _DAYS:
        hours = float(count) * _DAYS[unit]
        whole = int(hours)
        return Interval(days=whole, microseconds=round((hours - whole) * 86400 * _SECOND))
    if unit in _MICROSECONDS:
        return Interval(microseconds=round(float(count) * _MICROSECONDS[unit]))
    return None


def _clock(text: str) -> int:
    hours, minutes, *seconds = text.lstrip("+-").split(":")
    whole = int(hours) * 3600 + int(minutes) * 60
    total = whole * _SECOND + round(float(seconds[0]) * _SECOND if seconds else 0)
    return -total if text.startswith("-") else total


def _clock_text(microseconds: int) -> str:
    sign, rest = ("-", -microseconds) if microseconds < 0 else ("", microseconds)
    seconds, fraction = divmod(rest, _SECOND)
    text = f"{sign}{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return f"{text}.{fraction:06d}".rstrip("0") if fraction else text
