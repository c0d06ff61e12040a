"""Values as DuckDB writes them as text: in the catalog's inlined rows, as defaults, in options.

Dates and times become counts from 1970-01-01 without a zone or in UTC, because Python's own types
end where DuckDB's do not: years before 1 and after 9999. Infinity is the number that Parquet files
have for it. PostgreSQL's text of the same types is read too, as it had them in format 0.3.
Each function raises ValueError for text that is not of its type.

Options hold intervals as users write them: ``7 days``, ``1 week 2 days``, ``04:05:06``.

Lists, structs and maps as DuckDB writes them as text in a catalog that has no such types.

There are three forms, and nothing in the catalog says which one a value has:

* `CAST`, the text of ``CAST(value AS VARCHAR)``: ``{'a': x, 'b': ['it\\'s', NULL], 'c': {k=1}}``.
  Text is quoted where it must be, with backslashes before quotes and backslashes.
* `SQL_STRUCTS`, by 1.5 for structs that are at most inside structs: fields as SQL literals,
  ``{'a': 'it''s', 'b': CAST('2024-01-01' AS DATE)}``, values in lists and maps as in `CAST`.
* `SQL_LISTS`, by 1.4 on PostgreSQL: lists hold literals, too, ``['it''s', '2024-01-01'::DATE]``.

DuckDB itself reads all of them as `CAST`: it loses the quotes of ``'it''s'`` and fails on dates
(seen with 1.4.4 and 1.5.5). This module reads every form back as the inserted value.
"""

from __future__ import annotations

import calendar
import datetime as dt
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.lakes.format.schema import Column

_DAY = 86_400
_DATE = re.compile(r"(\d{4,})-(\d\d)-(\d\d)(?: \(?(BC)\)?)?")
_MOMENT = re.compile(
    r"(\d{4,})-(\d\d)-(\d\d)(?: \((BC)\))?"
    r"(?:[ T](\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?)?"
    r"(?:(Z)|([+-])(\d\d)(?::?(\d\d))?(?::?(\d\d))?)?"
    r"(?: (BC))?"
)
_UNIT = re.compile(r"([+-]?\d+) (year|month|mon|day|microsecond)s?")
_CLOCK = re.compile(r"([+-]?)(\d+):(\d\d):(\d\d)(?:\.(\d{1,6}))?")
_ESCAPED = re.compile(rb"\\x([0-9a-fA-F]{2})")
# The counts that stand for "infinity", negated for "-infinity".
DATE_LIMIT = 2**31 - 1
MOMENT_LIMIT = 2**63 - 1
_INFINITE = {"infinity": 1, "inf": 1, "-infinity": -1, "-inf": -1}


def days(text: str) -> int:
    """A date as days since 1970-01-01: ``2024-02-03``, ``0044-03-15 (BC)``, ``infinity``."""
    if text in _INFINITE:
        return _INFINITE[text] * DATE_LIMIT
    match = _DATE.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a date")
    return _days(*match.groups())


def micros(text: str) -> int:
    """A timestamp, with or without an offset, as microseconds since 1970."""
    return _count(text, 6)


def nanos(text: str) -> int:
    """A timestamp as nanoseconds since 1970."""
    return _count(text, 9)


def interval(text: str) -> dict[str, int]:
    """``1 year 2 months -3 days 04:05:06.789`` as months, days and microseconds."""
    counts = {"year": 0, "month": 0, "mon": 0, "day": 0, "microsecond": 0}
    rest = text
    while (match := _UNIT.match(rest)) is not None:
        counts[match[2]] += int(match[1])
        rest = rest[match.end() :].lstrip()
    micros = counts["microsecond"]
    if rest:
        micros += _clock(rest, text)
    elif rest == text:
        raise ValueError(f"{text!r} is not an interval")
    months = 12 * counts["year"] + counts["month"] + counts["mon"]
    return {"months": months, "days": counts["day"], "micros": micros}


def blob(text: str) -> bytes:
    r"""Bytes from printable text with ``\x00`` for all others."""
    return _ESCAPED.sub(lambda match: bytes.fromhex(match[1].decode()), text.encode("ascii"))


def boolean(text: str) -> bool:
    return _BOOLEANS[text.lower()]


_BOOLEANS = {"true": True, "t": True, "1": True, "false": False, "f": False, "0": False}


def scaled(count: int, limit: int, factor: int) -> int:
    """A count of days or microseconds in a finer unit; infinity, at ``limit``, stays that."""
    if abs(count) == limit:
        return MOMENT_LIMIT if count > 0 else -MOMENT_LIMIT
    return count * factor


def _count(text: str, digits: int) -> int:
    if text in _INFINITE:
        return _INFINITE[text] * MOMENT_LIMIT
    match = _MOMENT.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a timestamp")
    year, month, day, before, hour, minute, second, fraction, _, sign, *offset, after = (
        match.groups()
    )
    whole = _days(year, month, day, before or after) * _DAY
    if hour is not None:
        whole += int(hour) * 3600 + int(minute) * 60 + int(second)
    if sign is not None:
        hours, minutes, seconds = (int(part or 0) for part in offset)
        whole -= (hours * 3600 + minutes * 60 + seconds) * (-1 if sign == "-" else 1)
    part = (fraction or "").ljust(digits, "0")
    if part[digits:].strip("0"):
        raise ValueError(f"{text!r} is finer than 10^-{digits} seconds")
    count: int = whole * 10**digits + int(part[:digits])
    return count


def _clock(text: str, whole: str) -> int:
    match = _CLOCK.fullmatch(text)
    if match is None:
        raise ValueError(f"{whole!r} is not an interval")
    sign, hours, minutes, seconds, fraction = match.groups()
    count = (int(hours) * 3600 + int(minutes) * 60 + int(seconds)) * 1_000_000
    count += int((fraction or "").ljust(6, "0"))
    return -count if sign == "-" else count


def _days(year: str, month: str, day: str, era: str | None) -> int:
    """Days since 1970-01-01 in the Gregorian calendar, extended to all years."""
    y, m, d = int(year), int(month), int(day)
    if not (1 <= m <= 12 and 1 <= d <= 31 and y > 0):
        raise ValueError(f"there is no day {year}-{month}-{day}")
    if era is not None:
        y = 1 - y
    y -= m <= 2  # years begin in March, so that the leap day is their last
    cycle, in_cycle = divmod(y, 400)
    in_year = (153 * (m - 3 if m > 2 else m + 9) + 2) // 5 + d - 1
    in_cycle_days = in_cycle * 365 + in_cycle // 4 - in_cycle // 100 + in_year
    day_number: int = cycle * 146_097 + in_cycle_days - 719_468
    return day_number


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
            sign = "-" if self.microseconds < 0 else ""
            seconds, fraction = divmod(abs(self.microseconds), _SECOND)
            clock = f"{sign}{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
            parts.append(f"{clock}.{fraction:06d}".rstrip("0") if fraction else clock)
        return " ".join(parts)


def parse_interval(text: str) -> Interval | None:
    """The interval that DuckDB casts ``text`` to, or ``None``. A number alone is seconds."""
    months = days = microseconds = 0
    at, rest = 0, text.rstrip()
    if rest.endswith(" ago"):
        parsed = parse_interval(rest[:-4])
        return parsed and Interval(-parsed.months, -parsed.days, -parsed.microseconds)
    while at < len(rest):
        match = _PART.match(rest, at)
        if match is None:
            return None
        at = match.end()
        if match["clock"]:
            microseconds += _clock_microseconds(match["clock"])
            continue
        if not match["unit"] and match["count"] != rest.strip():
            return None  # as of a date: only a number alone is seconds
        part = _part(match["count"], match["unit"].lower())
        if part is None:
            return None
        months, days = months + part.months, days + part.days
        microseconds += part.microseconds
    return Interval(months, days, microseconds) if at else None


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


def _clock_microseconds(text: str) -> int:
    hours, minutes, *seconds = text.lstrip("+-").split(":")
    whole = int(hours) * 3600 + int(minutes) * 60
    total = whole * _SECOND + round(float(seconds[0]) * _SECOND if seconds else 0)
    return -total if text.startswith("-") else total


# A leaf is its text; a list or struct a list of its parts, a map one of pairs.
Tree = Any


@dataclass(frozen=True, slots=True)
class Form:
    """Text forms: structs and lists hold SQL literals (as long as they hold nothing but those)."""

    structs: bool = False
    lists: bool = False


CAST = Form()
SQL_STRUCTS = Form(structs=True)
SQL_LISTS = Form(structs=True, lists=True)


def parse(text: str, column: Column, forms: Sequence[Form]) -> Tree:
    """The parts of a nested value by its type, in the first of ``forms`` that fits.

    Raises ValueError when none does.
    """
    for form in forms:
        try:
            return _Reader(text, form).whole(column)
        except _Mismatch:
            continue
    raise ValueError(f"{text[:100]!r} is not a valid {column.type} as DuckDB writes it")


class _Mismatch(Exception):
    """The text is not of the form."""


_QUOTED = re.compile(r"'((?:[^'\\]|\\['\\])*)'")
_BACKSLASHED = re.compile(r"\\(['\\])")
_LITERAL = re.compile(r"'((?:[^']|'')*)'(?:::[A-Z_ ]+)?")
_CAST = re.compile(r"CAST\('((?:[^']|'')*)' AS [A-Z_ ]+\)")
_CONCAT = re.compile(r"CONCAT\(((?:'(?:[^']|'')*'|chr\(0\)|, )+)\)")
_PIECE = re.compile(r"'((?:[^']|'')*)'|chr\(0\)")
_BARE = re.compile(r"[^'\"(){}\[\],:=\s]+")

# What SQL writes without quotes.
_BARE_TYPES = re.compile(r"boolean|u?int\d+|float\d+|decimal\(.*")


class _Reader:
    """A text, and the position up to which it was read."""

    def __init__(self, text: str, form: Form) -> None:
        self._text = text
        self._form = form
        self._at = 0

    def whole(self, column: Column) -> Tree:
        tree = self._value(column, self._form != CAST, "")
        if self._at != len(self._text):
            raise _Mismatch
        return tree

    def _value(self, column: Column, sql: bool, ends: str) -> Tree:
        """A value that is followed by one of ``ends``, or by the end of the text."""
        if self._is_null(ends):
            return None
        nested = _NESTED.get(column.type)
        if nested is not None:
            return nested(self, column, sql)
        return self._literal(column) if sql else self._cast(ends)

    def _is_null(self, ends: str) -> bool:
        after = self._at + 4
        if not self._text.startswith("NULL", self._at):
            return False
        if after < len(self._text) and self._text[after] not in ends:
            return False
        self._at = after
        return True

    def _list(self, column: Column, sql: bool) -> Tree:
        self._expect("[")
        element = column.children[0]
        items: list[Tree] = []
        while not self._skip("]"):
            if items:
                self._expect(", ")
            items.append(self._value(element, sql and self._form.lists, ",]"))
        return items

    def _struct(self, column: Column, sql: bool) -> Tree:
        self._expect("{")
        items: list[Tree] = []
        for field in column.children:
            if items:
                self._expect(", ")
            self._key(field.name)
            items.append(self._value(field, sql and self._form.structs, ",}"))
        self._expect("}")
        return items

    def _map(self, column: Column, sql: bool) -> Tree:  # noqa: ARG002 - maps have one form only
        self._expect("{")
        key, value = column.children
        items: list[Tree] = []
        while not self._skip("}"):
            if items:
                self._expect(", ")
            known = self._value(key, False, "=")
            self._expect("=")
            items.append((known, self._value(value, False, ",}")))
        return items

    def _key(self, name: str) -> None:
        """A field's name: escaped as the form has it, or (by 1.4) not at all."""
        backslashed = name.replace("\\", "\\\\").replace("'", "\\'")
        for shown in (backslashed, name.replace("'", "''"), name):
            if self._skip(f"'{shown}': "):
                return
        raise _Mismatch

    def _cast(self, ends: str) -> str:
        match = _QUOTED.match(self._text, self._at)
        if match is not None:
            self._at = match.end()
            return _BACKSLASHED.sub(r"\1", match[1])
        end = self._at
        while end < len(self._text) and self._text[end] not in ends:
            end += 1
        text = self._text[self._at : end]
        if not text or text[0] == "'":
            raise _Mismatch
        self._at = end
        return text

    def _literal(self, column: Column) -> str:
        for pattern in (_LITERAL, _CAST):
            if (match := pattern.match(self._text, self._at)) is not None:
                self._at = match.end()
                return match[1].replace("''", "'")
        if (match := _CONCAT.match(self._text, self._at)) is not None:
            self._at = match.end()
            pieces = _PIECE.finditer(match[1])
            return "".join("\0" if p[1] is None else p[1].replace("''", "'") for p in pieces)
        match = _BARE.match(self._text, self._at)
        if match is None or not _BARE_TYPES.fullmatch(column.type):
            raise _Mismatch
        self._at = match.end()
        return match[0]

    def _skip(self, text: str) -> bool:
        if self._text.startswith(text, self._at):
            self._at += len(text)
            return True
        return False

    def _expect(self, text: str) -> None:
        if not self._skip(text):
            raise _Mismatch


_NESTED: Mapping[str, Callable[[_Reader, Column, bool], Tree]] = {
    "list": _Reader._list,
    "struct": _Reader._struct,
    "map": _Reader._map,
}
