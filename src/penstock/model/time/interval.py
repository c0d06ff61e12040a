"""Time intervals ``[start, end)`` in UTC, sets of them, and the units that divide time into them.

A set is a tuple of intervals in order that neither overlap nor touch: two sets of the same moments
are equal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from types import MappingProxyType

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True, order=True)
class Interval:
    """The moments from ``start`` to just before ``end``. Both are in UTC, and ``start < end``."""

    start: datetime
    end: datetime

    def __post_init__(self) -> None:
        for moment in (self.start, self.end):
            if moment.tzinfo is not UTC:
                raise ValueError(f"{moment} is not in UTC")
        if self.start >= self.end:
            raise ValueError(f"an interval ends after its start, but {self.end} is not")

    @classmethod
    def parse(cls, text: str) -> Interval:
        """The interval that `text` wrote. Raises ValueError for anything else."""
        start, end = (datetime.fromisoformat(part) for part in text.split("/"))
        return cls(start.astimezone(UTC), end.astimezone(UTC))

    @property
    def text(self) -> str:
        """For state: ``2026-01-01T00:00:00Z/2026-01-02T00:00:00Z``, which sorts by time."""
        return f"{_iso(self.start)}/{_iso(self.end)}"

    @property
    def last(self) -> datetime:
        """The last moment of it, as times of microseconds have one."""
        return self.end - timedelta(microseconds=1)

    def __str__(self) -> str:
        """For people: ``2026-01-01``, ``2026-01-01 to 2026-01-31`` (both included), or for less
        than days its start and end, ``2026-01-01T05:00Z to 2026-01-01T06:00Z``.
        """
        if not (_is_midnight(self.start) and _is_midnight(self.end)):
            return f"{_short(self.start)} to {_short(self.end)}"
        first, last = self.start.date(), self.last.date()
        return str(first) if first == last else f"{first} to {last}"

    def contains(self, other: Interval) -> bool:
        return self.start <= other.start and other.end <= self.end

    def overlap(self, other: Interval) -> Interval | None:
        """Return what both have in common."""
        start, end = max(self.start, other.start), min(self.end, other.end)
        return Interval(start, end) if start < end else None


def interval_of(text: str) -> Interval | None:
    """The interval that a text for state is; None for other texts, such as a partition's value."""
    if "/" not in text:  # quicker than an error, for the many texts that are values
        return None
    try:
        return Interval.parse(text)
    except ValueError:
        return None


Intervals = tuple[Interval, ...]


def union(*sets: Iterable[Interval]) -> Intervals:
    """The moments of any of them: the set that intervals in any order make."""
    found: list[Interval] = []
    for interval in sorted(each for intervals in sets for each in intervals):
        if found and interval.start <= found[-1].end:
            found[-1] = Interval(found[-1].start, max(found[-1].end, interval.end))
        else:
            found.append(interval)
    return tuple(found)


def intersect(left: Iterable[Interval], right: Iterable[Interval]) -> Intervals:
    """The moments of both."""
    first, second = union(left), union(right)
    found: list[Interval] = []
    i = j = 0
    while i < len(first) and j < len(second):
        common = first[i].overlap(second[j])
        if common is not None:
            found.append(common)
        if first[i].end <= second[j].end:
            i += 1
        else:
            j += 1
    return tuple(found)


def minus(left: Iterable[Interval], right: Iterable[Interval]) -> Intervals:
    """The moments of ``left`` that are not in ``right``."""
    taken = union(right)
    found: list[Interval] = []
    at = 0
    for interval in union(left):
        start = interval.start
        while at < len(taken) and taken[at].end <= start:
            at += 1
        for other in taken[at:]:
            if other.start >= interval.end:
                break
            if start < other.start:
                found.append(Interval(start, other.start))
            start = max(start, other.end)
        if start < interval.end:
            found.append(Interval(start, interval.end))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class IntervalUnit:
    """A division of time in UTC: ``name`` is as models write it (kinds.md, ``interval_unit``).

    ``shortest`` is the least length of its intervals.
    """

    name: str
    shortest: timedelta
    _floor: Callable[[datetime], datetime] = field(repr=False, compare=False)
    _shift: Callable[[datetime, int], datetime] = field(repr=False, compare=False)

    def __str__(self) -> str:
        return self.name

    def floor(self, moment: datetime) -> datetime:
        """The start of the interval that holds ``moment``, which is in UTC."""
        return self._floor(moment)

    def ceil(self, moment: datetime) -> datetime:
        """``moment`` where an interval starts there, else the start of the next."""
        start = self._floor(moment)
        return start if start == moment else self.next(start)

    def next(self, start: datetime, count: int = 1) -> datetime:
        """The start of the interval ``count`` later than the one that starts at ``start``; sooner
        where it is negative. Raises OverflowError or ValueError beyond the years of datetime.
        """
        return self._shift(start, count)

    def at(self, moment: datetime) -> Interval:
        start = self._floor(moment)
        return Interval(start, self.next(start))


def split(interval: Interval, unit: IntervalUnit) -> Iterator[Interval]:
    """The parts of ``interval`` by ``unit``; the first and last may be less than a whole one."""
    start = interval.start
    while start < interval.end:
        end = min(unit.next(unit.floor(start)), interval.end)
        yield Interval(start, end)
        start = end


def _fixed(name: str, length: timedelta) -> IntervalUnit:
    return IntervalUnit(
        name,
        length,
        lambda moment: moment - (moment - _EPOCH) % length,
        lambda start, count: start + count * length,
    )


def _month(moment: datetime) -> datetime:
    return moment.replace(day=1, hour=0, minute=0, second=0, microsecond=0)


def _months_later(start: datetime, count: int) -> datetime:
    year, month = divmod(start.year * 12 + start.month - 1 + count, 12)
    return start.replace(year=year, month=month + 1)


# From the coarsest to the finest.
_ALL = (
    IntervalUnit(
        "year",
        timedelta(days=365),
        lambda moment: _month(moment).replace(month=1),
        lambda start, count: start.replace(year=start.year + count),
    ),
    IntervalUnit("month", timedelta(days=28), _month, _months_later),
    _fixed("day", _DAY),
    _fixed("hour", timedelta(hours=1)),
    _fixed("half_hour", timedelta(minutes=30)),
    _fixed("quarter_hour", timedelta(minutes=15)),
    _fixed("five_minute", timedelta(minutes=5)),
)
UNITS: Mapping[str, IntervalUnit] = MappingProxyType({unit.name: unit for unit in _ALL})


def unit_within(gap: timedelta) -> IntervalUnit:
    """The largest unit that is not longer than ``gap``: that of a model which runs so often.

    Raises ValueError below five minutes.
    """
    for unit in _ALL:
        if unit.shortest <= gap:
            return unit
    raise ValueError(f"{gap} is less than five minutes")


def _is_midnight(moment: datetime) -> bool:
    return not (moment.hour or moment.minute or moment.second or moment.microsecond)


def _iso(moment: datetime) -> str:
    return moment.replace(tzinfo=None).isoformat() + "Z"


def _short(moment: datetime) -> str:
    """To the minute, where nothing is less."""
    exact = moment.second or moment.microsecond
    return (
        _iso(moment) if exact else moment.replace(tzinfo=None).isoformat(timespec="minutes") + "Z"
    )
