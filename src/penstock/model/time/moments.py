"""Moments as people write them: a date, a time, milliseconds since 1970, or ``1 year ago``."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta

from penstock.errors import ArgumentError
from penstock.model.time.interval import Interval
from penstock.model.time.partition import Moment

HINT = "write '2024-01-31', '2024-01-31 06:00:00', milliseconds or '1 year ago'"
_AGO = re.compile(r"(\d+|an?|one) (year|month|week|day|hour|minute)s? ago", re.IGNORECASE)
_MILLIS = re.compile(r"-?\d{9,}")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAY, _YEAR = timedelta(days=1), timedelta(days=365 * 40)
_STEPS = {
    "week": timedelta(weeks=1),
    "day": _DAY,
    "hour": timedelta(hours=1),
    "minute": timedelta(minutes=1),
}


def read_moment(text: str, now: datetime) -> datetime:
    """The moment, in UTC; what has no time zone is in UTC, a date is its first moment.

    Raises ValueError.
    """
    said = text.strip()
    named = _NAMED.get(said.casefold())
    if named is not None:
        return named(now)
    ago = _AGO.fullmatch(said)
    if ago is not None:
        return _ago(now, int(ago[1]) if ago[1].isdigit() else 1, ago[2].lower())
    if _MILLIS.fullmatch(said):
        try:
            return _EPOCH + timedelta(milliseconds=int(said))
        except OverflowError:
            raise ValueError(f"{said} milliseconds are beyond the years of time") from None
    moment = datetime.fromisoformat(said)
    return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)


def fixed_moment(text: str) -> datetime | None:
    """The moment; None for one that depends on the day it is read. Raises ValueError."""
    early, late = (read_moment(text, now) for now in (_EPOCH + _YEAR, _EPOCH + 2 * _YEAR))
    return early if early == late else None


def read_end(text: str, now: datetime) -> datetime:
    """As an end, which is exclusive: a date is all of its day. Raises ValueError."""
    moment = read_moment(text, now)
    return moment + _DAY if is_date(text) else moment


def is_date(text: str) -> bool:
    try:
        date.fromisoformat(text.strip())
    except ValueError:
        return text.strip().casefold() in {"yesterday", "today"}
    return not _MILLIS.fullmatch(text.strip())


def read_range(first: str, last: str, now: datetime) -> Interval:
    """The moments from ``first`` to ``last``, of which a date is all of its day; where they are one
    moment, that.

    Raises ArgumentError for a text that is not a moment, and for a range that ends before it
    begins.
    """
    start, end = (
        _argument(text, now, read) for text, read in ((first, read_moment), (last, read_end))
    )
    if start == end == _argument(last, now, read_moment):
        end += timedelta(microseconds=1)
    if start >= end:
        raise ArgumentError(
            f"the range is empty: {last} is before {first}", hint="give the earlier one first"
        )
    return Interval(start, end)


def is_moment(value: Moment, now: datetime) -> bool:
    try:
        return not isinstance(value, str) or read_moment(value, now) is not None
    except (ValueError, OverflowError):
        return False


def _argument(text: str, now: datetime, read: Callable[[str, datetime], datetime]) -> datetime:
    try:
        return read(text, now)
    except (ValueError, OverflowError):
        raise ArgumentError(f"{text!r} is not a moment", hint=HINT) from None


def _ago(now: datetime, count: int, unit: str) -> datetime:
    """Years and months ago at the last day of a shorter month. Raises ValueError."""
    if unit in _STEPS:
        try:
            return now - count * _STEPS[unit]
        except OverflowError:
            raise ValueError(f"{count} {unit}s ago there were no years") from None
    months = now.year * 12 + now.month - 1 - count * (12 if unit == "year" else 1)
    first = now.replace(year=months // 12, month=months % 12 + 1, day=1)
    length = (first + timedelta(days=31)).replace(day=1) - first
    return first.replace(day=min(now.day, length.days))


def _midnight(moment: datetime) -> datetime:
    return moment.replace(hour=0, minute=0, second=0, microsecond=0)


_NAMED: Mapping[str, Callable[[datetime], datetime]] = {
    "now": lambda now: now,
    "today": _midnight,
    "yesterday": lambda now: _midnight(now) - _DAY,
}
