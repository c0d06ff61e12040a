"""Dates and times as Python values, converted to the types of a table; see `literal_rows`."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Mapping
from typing import Any

from penstock.lake.format.schema import Column
from penstock.lake.format.values import duck_text

Convert = Callable[[Any], Any]

_EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - of timestamps without a zone
_EPOCH_UTC = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MICRO = dt.timedelta(microseconds=1)
TIME = re.compile(r"\d\d:\d\d:\d\d(\.\d{1,6})?")
TIME_NS = re.compile(r"\d\d:\d\d:\d\d(\.\d{1,9})?")
TIMETZ = re.compile(r"\d\d:\d\d:\d\d(\.\d{1,6})?[+-]\d\d(:\d\d(:\d\d)?)?")
_ZONED = re.compile(r"\d\d:\d\d.*(Z|[+-]\d\d(:?\d\d)?)$")


def date(_: Column) -> Convert:
    def convert(value: Any) -> int:
        if isinstance(value, dt.date) and not isinstance(value, dt.datetime):
            return (value - _EPOCH.date()).days
        return duck_text.days(_is_text(value, "give a date, or its text"))

    return convert


def _is_text(value: Any, say: str) -> str:
    if not isinstance(value, str):
        raise TypeError(say)
    return value.strip()


def moment(unit: int, *, nanos: bool = False) -> Callable[[Column], Convert]:
    """Without a zone, as a count; ``unit`` is in that count, of what the type holds."""
    scale = 1000 if nanos else 1

    def convert(value: Any) -> int:
        if isinstance(value, dt.datetime):
            if value.tzinfo is not None:
                raise ValueError("the column has no time zone: take it away first")
            count = _micros(value, _EPOCH, finer=nanos) * scale
            count += int(getattr(value, "nanosecond", 0))
        elif isinstance(value, dt.date):
            count = (value - _EPOCH.date()).days * 86_400_000_000 * scale
        else:
            text = _is_text(value, "give a datetime, or its text")
            if _ZONED.search(text):
                raise ValueError("the column has no time zone: take it away first")
            count = (duck_text.nanos if nanos else duck_text.micros)(text)
        if not -(2**63) <= count < 2**63:
            raise ValueError("nanoseconds reach from 1677 to 2262")
        if count % unit and abs(count) != duck_text.MOMENT_LIMIT:
            raise ValueError("it is finer than the type")
        return count

    return lambda _: convert


def _micros(value: dt.datetime, epoch: dt.datetime, *, finer: bool = False) -> int:
    """Return the microseconds since ``epoch``; pandas' Timestamp has nanoseconds as well."""
    if not finer and getattr(value, "nanosecond", None):
        raise ValueError("it holds nanoseconds: round it, as by .floor('us')")
    return (value - epoch) // _MICRO


def timestamptz(_: Column) -> Convert:
    def convert(value: Any) -> int:
        if isinstance(value, dt.datetime):
            if value.tzinfo is None:
                raise ValueError("it has no time zone: give it one")
            return _micros(value, _EPOCH_UTC)
        text = _is_text(value, "give a datetime with a time zone, or its text")
        if not _ZONED.search(text) and "infinity" not in text:
            raise ValueError("it has no time zone: end it with +00")
        return duck_text.micros(text)

    return convert


def time(pattern: re.Pattern[str]) -> Callable[[Column], Convert]:
    def convert(value: Any) -> str:
        text = value.isoformat() if isinstance(value, dt.time) else value
        text = _is_text(text, "give a time, or its text")
        if pattern.fullmatch(text) is None:
            raise ValueError("write it as 12:34:56.789, with +02 where the type has a zone")
        clock, point, rest = text.partition(".")
        if not point:
            return text.removesuffix(":00") if text.count(":") == 3 else text  # +02:00
        fraction = re.match(r"\d+", rest)
        assert fraction is not None, "the pattern has digits there"
        zone = rest[fraction.end() :].removesuffix(":00")
        digits = fraction[0].rstrip("0")
        return f"{clock}{'.' if digits else ''}{digits}{zone}"

    return lambda _: convert


def interval(_: Column) -> Convert:
    def convert(value: Any) -> dict[str, int]:
        if isinstance(value, dt.timedelta):
            if getattr(value, "nanoseconds", None):  # of pandas' Timedelta
                raise ValueError("it holds nanoseconds: round it, as by .floor('us')")
            micros = (value - dt.timedelta(days=value.days)) // _MICRO
            return {"months": 0, "days": value.days, "micros": micros}
        if isinstance(value, Mapping):
            return {key: int(value.get(key, 0)) for key in ("months", "days", "micros")}
        text = _is_text(value, "give a timedelta, or its text")
        parsed = duck_text.parse_interval(text)
        if parsed is None:
            raise ValueError(f"{text!r} is not an interval")
        return {"months": parsed.months, "days": parsed.days, "micros": parsed.microseconds}

    return convert
