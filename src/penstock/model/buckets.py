"""Calendar buckets in wall-clock time: how days, hours, weeks and months follow each other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta


@dataclass(frozen=True, slots=True)
class TimeKind:
    """``floor`` gives the start of the bucket that holds a naive local time; ``step`` the next."""

    name: str
    unit: str
    format: str
    floor: Callable[[datetime], datetime]
    step: Callable[[datetime], datetime]


def _midnight(moment: datetime) -> datetime:
    return moment.replace(hour=0, minute=0, second=0, microsecond=0)


def _hour(moment: datetime) -> datetime:
    return moment.replace(minute=0, second=0, microsecond=0)


def _monday(moment: datetime) -> datetime:
    return _midnight(moment) - timedelta(days=moment.weekday())


def _month(moment: datetime) -> datetime:
    return _midnight(moment).replace(day=1)


def _next_month(start: datetime) -> datetime:
    return _month(start + timedelta(days=32))


TIME_KINDS = {
    kind.name: kind
    for kind in (
        TimeKind("daily", "day", "%Y-%m-%d", _midnight, lambda start: start + timedelta(days=1)),
        TimeKind("hourly", "hour", "%Y-%m-%dT%H", _hour, lambda start: start + timedelta(hours=1)),
        TimeKind("weekly", "week", "%G-W%V", _monday, lambda start: start + timedelta(weeks=1)),
        TimeKind("monthly", "month", "%Y-%m", _month, _next_month),
    )
}


def render(moment: datetime, pattern: str) -> str:
    """``strftime`` with years of four digits everywhere (C libraries differ below 1000)."""
    padded = pattern.replace("%%", "\0")
    padded = padded.replace("%Y", f"{moment.year:04d}").replace(
        "%G", f"{moment.isocalendar().year:04d}"
    )
    return moment.strftime(padded.replace("\0", "%%"))


def parse(value: str, pattern: str) -> datetime:
    """The naive time that ``value`` names; a week stands for its Monday.

    Raises ``ValueError`` when ``value`` does not fit ``pattern``.
    """
    by_week = any(token in pattern for token in ("%V", "%U", "%W"))
    has_day = any(token in pattern for token in ("%u", "%w", "%a", "%A"))
    if by_week and not has_day:
        return datetime.strptime(f"{value} 1", f"{pattern} %w")  # noqa: DTZ007 - wall time on purpose
    return datetime.strptime(value, pattern)  # noqa: DTZ007 - wall time on purpose
