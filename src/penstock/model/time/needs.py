"""State which slices of an input a slice of its reader needs. Values; nothing is looked up.

A window says it in moments: from a bound of the reader's slice, moved by a shift, to another. The
moments of a window are instants in UTC. A shift by days or months is counted on the calendar and
the clock of the reader's zone, as SQL's dates are, so that a day may have 23 to 25 hours; one by
hours or less is counted in instants.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import Enum
from zoneinfo import ZoneInfo

from penstock.errors import Location
from penstock.model.time.interval import Interval

_SECOND, _MICRO = timedelta(seconds=1), timedelta(microseconds=1)
_FIRST = datetime.min.replace(tzinfo=UTC)
_LAST = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Shift:
    """A length of time with a direction: negative is earlier."""

    months: int = 0
    days: int = 0
    rest: timedelta = timedelta()

    def __bool__(self) -> bool:
        return bool(self.months or self.days or self.rest)

    def __neg__(self) -> Shift:
        return Shift(-self.months, -self.days, -self.rest)

    @property
    def least(self) -> timedelta:
        """A length that it is never less than, whatever the calendar and the zone."""
        days = self.months * (28 if self.months > 0 else 31) + self.days - 1
        return timedelta(days=days) + self.rest

    @property
    def most(self) -> timedelta:
        """A length that it is never more than."""
        return -(-self).least

    def __str__(self) -> str:
        """As for people: ``-7 days``."""
        parts = [(self.months, "month"), (self.days, "day")]
        parts += [(self.rest // _SECOND, "second"), (self.rest % _SECOND // _MICRO, "microsecond")]
        said = [f"{n:+d} {unit}{'' if abs(n) == 1 else 's'}" for n, unit in parts if n]
        return " ".join(said)

    def of(self, moment: datetime, zone: ZoneInfo) -> datetime:
        """Move a moment in UTC; a day of a month that lacks it becomes the month's last."""
        if self.months or self.days:
            wall = moment.astimezone(zone).replace(tzinfo=None)
            wall = _months_later(wall, self.months) + timedelta(days=self.days)
            moment = wall.replace(tzinfo=zone).astimezone(UTC)
        return moment + self.rest


def _months_later(wall: datetime, months: int) -> datetime:
    if not months:
        return wall
    year, month = divmod(wall.year * 12 + wall.month - 1 + months, 12)
    first = wall.replace(year=year, month=month + 1, day=1)
    following = (first.replace(day=28) + timedelta(days=4)).replace(day=1)
    last = (following - timedelta(days=1)).day
    return first.replace(day=min(wall.day, last))


@dataclass(frozen=True, slots=True)
class Bound:
    """The start of the reader's slice, or where it ``is_end`` its end, moved by a shift."""

    is_end: bool = False
    shift: Shift = Shift()

    def of(self, slice_: Interval, zone: ZoneInfo) -> datetime:
        return self.shift.of(slice_.end if self.is_end else slice_.start, zone)

    def __str__(self) -> str:
        said = f" {self.shift}" if self.shift else ""
        return f"{'end' if self.is_end else 'start'}{said}"


@dataclass(frozen=True, slots=True)
class Window:
    """The moments from ``first`` until ``last``; without one from the beginning, or to the end, of
    time.
    """

    first: Bound | None = Bound()
    last: Bound | None = Bound(is_end=True)

    def of(self, slice_: Interval, zone: ZoneInfo) -> Interval | None:
        """Return the moments for one slice of the reader; None where there are none."""
        try:
            start = _FIRST if self.first is None else self.first.of(slice_, zone)
            end = _LAST if self.last is None else self.last.of(slice_, zone)
        except (OverflowError, ValueError):  # beyond the years of datetime
            return None
        return Interval(start, end) if start < end else None

    def __str__(self) -> str:
        first = "the beginning" if self.first is None else self.first
        return f"{first} to {'any later one' if self.last is None else self.last}"


COMMON = Window()
EARLIER = Window(None, Bound())
EVERYTHING = Window(None, None)


class Rule(Enum):
    """Say what of an input one slice of a reader needs."""

    SAME = "the slice of the same value"
    MOMENTS = "the slices with moments in common"
    ALL = "every slice"
    TABLE = "the table as it is when it is read"
    NONE = "nothing: it never waits for it"


@dataclass(frozen=True, slots=True)
class Need:
    """``windows`` say the moments of the rule MOMENTS. ``said`` is what the model says of it, as
    written; ``by_query``: the query says it, and not the kinds of the two models. A whole table
    that it reads by the bounds of the slice in every place has late rows. ``in_doubt``: the query
    does not say it in a way that is understood, so every slice is needed. ``condition`` is the one
    of the query that is evaluated over the slices of the input, as written.
    """

    rule: Rule
    windows: tuple[Window, ...] = (COMMON,)
    said: str = ""
    by_query: bool = False
    in_doubt: bool = False
    condition: str = ""

    def __str__(self) -> str:
        what = self.rule.value
        if self.in_doubt:
            return f"{Rule.ALL.value}{_UP_TO[self.rule]} (its query does not bound it by its slice)"
        if self.rule is Rule.MOMENTS and self.windows != (COMMON,):
            what = f"the slices from {' and from '.join(map(str, self.windows))} of its own"
        if self.condition:
            among = what if self.rule is Rule.MOMENTS and EVERYTHING not in self.windows else ""
            what = f"{among or 'the slices'} that meet {self.condition}"
        if self.has_late_rows:
            return f"{what}, and rows within its bounds that come late"
        why = f"needs {self.said}" if self.said else "its query" if self.by_query else None
        return what if why is None else f"{what} ({why})"

    @property
    def has_late_rows(self) -> bool:
        return self.rule is Rule.TABLE and self.by_query

    def moments(self, slice_: Interval, zone: ZoneInfo) -> tuple[Interval, ...]:
        """Return the moments that a slice of the reader needs, each window's own."""
        found = (window.of(slice_, zone) for window in self.windows)
        return tuple(each for each in found if each is not None)

    def awaited(self, slice_: Interval, zone: ZoneInfo) -> tuple[Interval, ...]:
        """Return the moments whose slices have to be there before a slice of the reader is made.

        Without a last moment those up to its own end: later slices come later, and put it behind.
        """
        windows = tuple(
            Window(window.first, Bound(is_end=True)) if window.last is None else window
            for window in self.windows
        )
        return replace(self, windows=windows).moments(slice_, zone)

    def outside(self, moments: Interval) -> Callable[[Interval], bool]:
        """Return what tells at once, of slices of the reader far from some moments, that they need
        none of these; it does not of all that need none.
        """
        try:
            lasts = [each.last for each in self.windows if each.last is not None]
            endless = len(lasts) < len(self.windows)
            before = None if endless else moments.start - max(e.shift.most for e in lasts)
            firsts = [each.first for each in self.windows if each.first is not None]
            everything = len(firsts) < len(self.windows)
            after = None if everything else moments.end - min(e.shift.least for e in firsts)
        except (OverflowError, ValueError):  # beyond the years of datetime; or without windows
            return lambda _: False
        return lambda own: (
            (before is not None and own.end <= before) or (after is not None and own.start >= after)
        )


_UP_TO = {Rule.MOMENTS: ", up to its own end before it is made", Rule.ALL: ""}
FORMS = "lag=7d, same, all or none"


@dataclass(frozen=True, slots=True)
class NeedLine:
    """Hold what a header says of an input, as written: its name or asset, ``text``, its place."""

    asset: str
    text: str
    location: Location

    @property
    def need(self) -> Need:
        found = read_need(self.text)
        assert found is not None, "read when the line was"
        return found


_LAG = re.compile(r"(?P<count>\d+)(?P<unit>[smhdw])")
_LAGS: Mapping[str, Callable[[int], Shift]] = {
    "s": lambda n: Shift(rest=timedelta(seconds=n)),
    "m": lambda n: Shift(rest=timedelta(minutes=n)),
    "h": lambda n: Shift(rest=timedelta(hours=n)),
    "d": lambda n: Shift(days=n),
    "w": lambda n: Shift(days=7 * n),
}
_WORDS = {"same": Rule.SAME, "all": Rule.ALL, "none": Rule.NONE}


def read_need(text: str) -> Need | None:
    """Read what a model says of an input: ``lag=7d``, ``same``, ``all`` or ``none``; None for other
    texts.

    A lag is a length of time before the reader's slice, in whatever units the input is sliced.
    """
    if text in _WORDS:
        return Need(_WORDS[text], said=text)
    lag = _LAG.fullmatch(text.removeprefix("lag="))
    if lag is None or not text.startswith("lag="):
        return None
    try:
        shift = _LAGS[lag["unit"]](int(lag["count"]))
    except OverflowError:
        return None
    window = Window(Bound(shift=-shift))
    return Need(Rule.MOMENTS, (window,), said=text)
