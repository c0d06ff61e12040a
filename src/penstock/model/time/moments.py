"""Moments as texts: as people write them, and in the format of a time column.

Formats of texts and numbers in a time column: ``%Y-%m-%d``, ``yyyy-MM-dd`` or ``epoch``.

A format with ``%`` is strftime's, as DuckDB and SQLMesh have it; any other is one of Spark's
patterns, or counts from 1970: ``epoch`` (seconds), ``millis`` or ``micros``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from types import MappingProxyType

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


#: counts since 1970, with how many a second has
COUNTS: Mapping[str, int] = MappingProxyType({"epoch": 1, "millis": 1000, "micros": 1_000_000})
DEFAULT = "%Y-%m-%d"


@dataclass(frozen=True, slots=True)
class _Field:
    """``rank`` orders fields from the coarsest; ``step`` is the shortest that it tells apart."""

    strftime: str
    spark: str
    width: int
    rank: int
    step: timedelta
    write: Callable[[datetime], int]


_FIELDS = (
    _Field("%Y", "yyyy", 4, 0, timedelta(days=365), lambda at: at.year),
    _Field("%m", "MM", 2, 1, timedelta(days=28), lambda at: at.month),
    _Field("%d", "dd", 2, 2, timedelta(days=1), lambda at: at.day),
    _Field("%j", "DDD", 3, 2, timedelta(days=1), lambda at: at.timetuple().tm_yday),
    _Field("%H", "HH", 2, 3, timedelta(hours=1), lambda at: at.hour),
    _Field("%M", "mm", 2, 4, timedelta(minutes=1), lambda at: at.minute),
    _Field("%S", "ss", 2, 5, timedelta(seconds=1), lambda at: at.second),
    _Field("%f", "SSSSSS", 6, 6, timedelta(microseconds=1), lambda at: at.microsecond),
)
_STRFTIME = {each.strftime: each for each in _FIELDS}
_SPARK = {each.spark: each for each in _FIELDS}
_LONG = {"%F": "%Y-%m-%d", "%T": "%H:%M:%S"}
_BY_PERCENT = re.compile(r"(%.?)", re.DOTALL)
_BY_LETTERS = re.compile(r"('(?:[^']|'')*'|([A-Za-z])\2*)")
_YEAR_RANK, _MONTH_RANK, _DAY_RANK = 0, 1, 2


@dataclass(frozen=True, slots=True)
class TimeFormat:
    """``parts`` are fields and the texts between them; a count since 1970 has none.

    ``per_second`` is set for a count.
    """

    text: str
    parts: tuple[_Field | str, ...] = ()
    per_second: int | None = None

    @property
    def fields(self) -> tuple[_Field, ...]:
        return tuple(part for part in self.parts if isinstance(part, _Field))

    @property
    def step(self) -> timedelta:
        """The least time that two of its values are apart."""
        if self.per_second is not None:
            return timedelta(seconds=1) / self.per_second
        return min(part.step for part in self.fields)

    @property
    def sorts(self) -> bool:
        """Return whether its texts are in the order of time: all fields, from the year down."""
        ranks = [part.rank for part in self.fields]
        return ranks == sorted(ranks) and ranks[0] == _YEAR_RANK

    @property
    def is_number(self) -> bool:
        """Return whether its texts may be numbers: nothing but digits, with a year at the front."""
        return self.sorts and len(self.fields) == len(self.parts)

    @property
    def spark(self) -> str:
        """Spark's pattern."""
        return "".join(
            part.spark if isinstance(part, _Field) else _quoted(part) for part in self.parts
        )

    @property
    def regex(self) -> str:
        """Return what its texts match, of the syntax that Spark and Python share."""
        return "".join(
            f"[0-9]{{{part.width}}}" if isinstance(part, _Field) else _escaped(part)
            for part in self.parts
        )

    def write(self, moment: datetime) -> str:
        """The text of ``moment``, which is in UTC."""
        if self.per_second is not None:
            return str((moment - datetime(1970, 1, 1, tzinfo=UTC)) // self.step)
        return "".join(
            f"{part.write(moment):0{part.width}d}" if isinstance(part, _Field) else part
            for part in self.parts
        )

    def read(self, text: str) -> datetime | None:
        """The moment of a text in UTC, the first that it may stand for; None for one that does not
        fit.
        """
        try:
            if self.per_second is not None:
                return datetime(1970, 1, 1, tzinfo=UTC) + int(text) * self.step
            groups = (
                f"([0-9]{{{part.width}}})" if isinstance(part, _Field) else re.escape(part)
                for part in self.parts
            )
            match = re.fullmatch("".join(groups), text)
            if match is None:
                return None
            values = dict(zip((part.strftime for part in self.fields), match.groups(), strict=True))
            known = {name: int(value) for name, value in values.items()}
            first = datetime(known["%Y"], known.get("%m", 1), known.get("%d", 1), tzinfo=UTC)
            return first + timedelta(
                days=known.get("%j", 1) - 1,
                hours=known.get("%H", 0),
                minutes=known.get("%M", 0),
                seconds=known.get("%S", 0),
                microseconds=known.get("%f", 0),
            )
        except (ValueError, OverflowError):
            return None


def read_format(text: str) -> TimeFormat:
    """Raises ValueError that says what of it is not known, or missing."""
    if text.casefold() in COUNTS:
        return TimeFormat(text.casefold(), (), COUNTS[text.casefold()])
    parts = _strftime(text) if "%" in text else _pattern(text)
    ranks = {part.rank for part in parts if isinstance(part, _Field)}
    # The month is not needed where the day is counted from the year's first.
    optional = {_MONTH_RANK} if _STRFTIME["%j"] in parts else set()
    if _YEAR_RANK not in ranks or ranks != set(range(max(ranks) + 1)) - optional:
        raise ValueError(
            "does not tell one time from all others: a year and what follows is needed"
        )
    return TimeFormat(text, tuple(parts))


def _strftime(text: str) -> list[_Field | str]:
    for short, long in _LONG.items():
        text = text.replace(short, long)
    found: list[_Field | str] = []
    for piece in _BY_PERCENT.split(text):
        if piece == "%%":
            found.append("%")
        elif piece.startswith("%"):
            if piece not in _STRFTIME:
                known = ", ".join([*_STRFTIME, *_LONG])
                raise ValueError(f"has `{piece}`, which is not one of {known}")
            found.append(_STRFTIME[piece])
        elif piece:
            found.append(piece)
    return found


def _pattern(text: str) -> list[_Field | str]:
    found: list[_Field | str] = []
    end = 0
    for match in _BY_LETTERS.finditer(text):
        if match.start() > end:
            found.append(text[end : match.start()])
        end = match.end()
        word = match[0]
        if word.startswith("'"):
            found.append(word[1:-1].replace("''", "'") or "'")
        elif word in _SPARK:
            found.append(_SPARK[word])
        else:
            known = ", ".join([*_SPARK, *COUNTS])
            raise ValueError(f"has `{word}`, which is not one of {known}")
    return [*found, text[end:]] if end < len(text) else found


def _quoted(text: str) -> str:
    return "".join("''" if c == "'" else f"'{c}'" if c.isalpha() else c for c in text)


def _escaped(text: str) -> str:
    return "".join(c if c.isalnum() or c in " _" or ord(c) > 127 else f"\\{c}" for c in text)
