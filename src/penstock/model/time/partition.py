"""Partitions: the slice of a run, its value and its bounds.

Source of the rules: seeds/partitioned-pipelines.md and annotations.md, "Partition values".
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

from penstock.errors import PartitionError
from penstock.sql.identifiers import nearest


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


TIME_KINDS = {
    kind.name: kind
    for kind in (
        TimeKind("daily", "day", "%Y-%m-%d", _midnight, lambda start: start + timedelta(days=1)),
        TimeKind("hourly", "hour", "%Y-%m-%dT%H", _hour, lambda start: start + timedelta(hours=1)),
        TimeKind("weekly", "week", "%G-W%V", _monday, lambda start: start + timedelta(weeks=1)),
        TimeKind(
            "monthly", "month", "%Y-%m", _month, lambda start: _month(start + timedelta(days=32))
        ),
    )
}


def bucket_text(moment: datetime, pattern: str) -> str:
    """``strftime`` with years of four digits everywhere (C libraries differ below 1000)."""
    padded = pattern.replace("%%", "\0")
    padded = padded.replace("%Y", f"{moment.year:04d}").replace(
        "%G", f"{moment.isocalendar().year:04d}"
    )
    return moment.strftime(padded.replace("\0", "%%"))


def read_bucket(value: str, pattern: str) -> datetime:
    """The naive time that ``value`` names; a week stands for its Monday.

    Raises ``ValueError`` when ``value`` does not fit ``pattern``.
    """
    by_week = any(token in pattern for token in ("%V", "%U", "%W"))
    has_day = any(token in pattern for token in ("%u", "%w", "%a", "%A"))
    if by_week and not has_day:
        return datetime.strptime(f"{value} 1", f"{pattern} %w")  # noqa: DTZ007 - wall time on purpose
    return datetime.strptime(value, pattern)  # noqa: DTZ007 - wall time on purpose


Moment = str | date | datetime  # a text is a value, or a date or datetime as ISO 8601 has it
KINDS = (*TIME_KINDS, "dynamic")
MAX_SLICES = 100_000
_KEY = re.compile(r"\$(\.[^.\[\]*?@()'\"\s]+)+")
_START = re.compile(r"\d{4}-\d{2}-\d{2}")


@dataclass(frozen=True, slots=True)
class PartitionSpec:
    """The ``partitioned`` line as written; :func:`check_spec` says whether it makes sense."""

    kind: str
    tz: str | None = None
    format: str | None = None
    start: str | None = None
    key: str | None = None

    @property
    def pattern(self) -> str | None:
        """The ``strftime`` format of the values; ``None`` for ``dynamic``."""
        kind = TIME_KINDS.get(self.kind)
        return None if kind is None else self.format or kind.format

    @property
    def slicing(self) -> str:
        """Return what a slice is, as a ``partitioned`` line without what makes no difference to
        that: ``start``, and options that only repeat a default. Equal texts mean equal slices.
        """
        kind = TIME_KINDS.get(self.kind)
        options = {
            "tz": None if self.tz == "UTC" else self.tz,
            "format": None if kind is None or self.format == kind.format else self.format,
            "key": self.key,
        }
        written = [f'{name}="{value}"' for name, value in options.items() if value]
        return " ".join([self.kind, *written])

    def to_dict(self) -> dict[str, Any]:
        options = ("tz", "format", "start", "key")
        found = {name: getattr(self, name) for name in options}
        return {"kind": self.kind} | {name: value for name, value in found.items() if value}


def check_spec(spec: PartitionSpec) -> None:
    """Raise :class:`PartitionError` when an option cannot work (bad tz, start, format or key)."""
    kind = TIME_KINDS.get(spec.kind)
    if kind is None:
        _check_dynamic(spec)
        return
    _zone(spec)
    _start(spec)
    _check_format(spec, kind)


def bucket_at(spec: PartitionSpec, moment: datetime) -> datetime:
    """The start, in wall time, of the slice that holds ``moment``.

    A moment without a time zone is wall time in the partition's own.
    """
    kind = _time_kind(spec)
    local = moment if moment.tzinfo is None else moment.astimezone(_zone(spec))
    bucket = kind.floor(local.replace(tzinfo=None, fold=0))
    if not _exists(kind, _zone(spec), bucket):
        raise _skipped(spec, kind, render(spec, bucket))
    return bucket


def bucket_of(spec: PartitionSpec, value: str) -> datetime:
    """The start, in wall time, of the slice ``value``, which must be written canonically."""
    return _bucket(spec, _time_kind(spec), value)


def render(spec: PartitionSpec, bucket: datetime) -> str:
    """The value of the slice that starts at ``bucket`` (wall time)."""
    return bucket_text(bucket, spec.pattern or "")


def span(spec: PartitionSpec, bucket: datetime) -> tuple[datetime, datetime]:
    """First instant of the slice that starts at ``bucket``, and first instant after it.

    An hour that a clock change repeats is one slice of two hours.
    """
    zone = _zone(spec)
    return bucket.replace(tzinfo=zone), _time_kind(spec).step(bucket).replace(tzinfo=zone)


def bucket_around(spec: PartitionSpec, first: datetime, end: datetime) -> datetime | None:
    """The slice that holds all of ``first`` to ``end`` (instants, or wall time); None if none does.

    Wall time stands for the partition's own.
    """
    zone = _zone(spec)
    if first.tzinfo is None:
        first, end = first.replace(tzinfo=zone), end.replace(tzinfo=zone)
    bucket = bucket_at(spec, first)
    return bucket if end.astimezone(UTC) <= span(spec, bucket)[1].astimezone(UTC) else None


def is_before_start(spec: PartitionSpec, bucket: datetime) -> bool:
    """Return whether the slice that starts at ``bucket`` (wall time) ends before ``start``, or at
    it.
    """
    start = _start(spec)
    step = TIME_KINDS[spec.kind].step
    return start is not None and step(bucket) <= datetime.combine(start, time())


def start_of(spec: PartitionSpec) -> datetime | None:
    """The instant at which ``start`` begins in the zone of a kind by time."""
    start = _start(spec) if spec.kind in TIME_KINDS else None
    return None if start is None else datetime.combine(start, time(), _zone(spec))


def validate(spec: PartitionSpec, value: str) -> None:
    """Raise :class:`PartitionError` unless ``value`` is one that this partition can have."""
    if not value:
        raise PartitionError("the partition is empty", hint="give a value: --partition VALUE")
    kind = TIME_KINDS.get(spec.kind)
    if kind is not None:
        _bucket(spec, kind, value)


def bounds(spec: PartitionSpec, value: str) -> tuple[datetime, datetime]:
    """First instant of the slice and first instant after it, in its time zone."""
    return span(spec, bucket_of(spec, value))


def between(spec: PartitionSpec, first: str, last: str) -> list[str]:
    """Every value from ``first`` to ``last``, both included, in order of time."""
    kind = _time_kind(spec)
    return values_between(spec, _bucket(spec, kind, first), _bucket(spec, kind, last))


def values_between(spec: PartitionSpec, first: datetime, last: datetime) -> list[str]:
    """The values of the slices that hold ``first`` to ``last``, both included and in wall time."""
    kind = _time_kind(spec)
    begin, end = kind.floor(first), kind.floor(last)
    shown = [bucket_text(bucket, spec.format or kind.format) for bucket in (begin, end)]
    if begin > end:
        raise PartitionError(
            f"the range is empty: {shown[0]} is after {shown[1]}",
            hint="give the earlier value first",
        )
    values: list[str] = []
    for bucket in _existing(kind, _zone(spec), begin, end):
        values.append(bucket_text(bucket, spec.format or kind.format))
        if len(values) > MAX_SLICES:
            raise PartitionError(
                f"{shown[0]} to {shown[1]} is more than {MAX_SLICES} slices",
                hint="ask for a shorter range",
            )
    return values


def wall_time(spec: PartitionSpec, moment: Moment) -> tuple[datetime, datetime]:
    """The first and the last moment that ``moment`` stands for, in the wall time of ``spec``.

    A value stands for its slice, a date for its day, ``2026-01``, ``2026-W01`` and
    ``2026-01-31T05`` for their month, week and hour, a datetime for itself; one with a time zone is
    brought to the partition's. Raises PartitionError for other texts.
    """
    kind = _time_kind(spec)
    if isinstance(moment, datetime):
        local = moment if moment.tzinfo is None else moment.astimezone(_zone(spec))
        local = local.replace(tzinfo=None, fold=0)
        return local, local
    if isinstance(moment, date):
        return _whole(TIME_KINDS["daily"], datetime.combine(moment, time()))
    for known, pattern in (
        (kind, spec.pattern or ""),
        *((k, k.format) for k in TIME_KINDS.values()),
    ):
        with suppress(ValueError, OverflowError):
            bucket = known.floor(read_bucket(moment, pattern))
            if bucket_text(bucket, pattern) == moment:
                return _whole(known, bucket)
    for read in (date.fromisoformat, datetime.fromisoformat):
        with suppress(ValueError):
            return wall_time(spec, read(moment))
    example = bucket_text(kind.floor(datetime(2026, 5, 16, 9, 30)), spec.pattern or "")  # noqa: DTZ001 - wall time
    raise PartitionError(
        f"{moment!r} is neither a {spec.kind} partition nor a date or datetime",
        hint=f"write it like {example}, or as YYYY-MM-DD",
        data={"value": moment, "format": spec.pattern},
    )


def is_in_time(spec: PartitionSpec, text: str) -> bool:
    """Return whether a text is a moment, or a value, of a partition by time."""
    if spec.kind not in TIME_KINDS:
        return False
    try:
        return wall_time(spec, text) is not None
    except PartitionError:
        return False


def _whole(kind: TimeKind, bucket: datetime) -> tuple[datetime, datetime]:
    return bucket, kind.step(bucket) - timedelta(microseconds=1)


def _existing(kind: TimeKind, zone: ZoneInfo, begin: datetime, end: datetime) -> Iterator[datetime]:
    bucket = begin
    while bucket <= end:
        if _exists(kind, zone, bucket):
            yield bucket
        bucket = kind.step(bucket)


def _exists(kind: TimeKind, zone: ZoneInfo, bucket: datetime) -> bool:
    """False for an hour (or, in Samoa, a day) that a clock change skips."""
    start, stop = bucket.replace(tzinfo=zone), kind.step(bucket).replace(tzinfo=zone)
    return start.astimezone(UTC) < stop.astimezone(UTC)


def _bucket(spec: PartitionSpec, kind: TimeKind, value: str) -> datetime:
    """The start of the slice ``value`` in wall time; the value must be written canonically."""
    pattern = spec.format or kind.format
    example = bucket_text(kind.floor(datetime(2026, 5, 16, 9, 30)), pattern)  # noqa: DTZ001 - wall time
    try:
        bucket = kind.floor(read_bucket(value, pattern))
    except (ValueError, OverflowError):
        raise PartitionError(
            f"{value!r} is not a valid {spec.kind} partition: it does not fit the format {pattern}",
            hint=f"write it like {example}",
            data={"value": value, "format": pattern},
        ) from None
    canonical = bucket_text(bucket, pattern)
    if canonical != value:
        raise PartitionError(
            f"{value!r} is not a valid {spec.kind} partition, though it can be read as {canonical}",
            hint=f"write {canonical}",
            data={"value": value, "format": pattern},
        )
    if not _exists(kind, _zone(spec), bucket):
        raise _skipped(spec, kind, value)
    return bucket


def _skipped(spec: PartitionSpec, kind: TimeKind, value: str) -> PartitionError:
    return PartitionError(
        f"{value} never was: the clocks of {spec.tz} skip this {kind.unit}",
        hint=f"take the {kind.unit} before or after it",
    )


def _time_kind(spec: PartitionSpec) -> TimeKind:
    kind = TIME_KINDS.get(spec.kind)
    if kind is None:
        raise PartitionError(
            "a dynamic partition has no calendar", hint="give the values one by one"
        )
    return kind


def _zone(spec: PartitionSpec) -> ZoneInfo:
    name = spec.tz or "UTC"
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):  # OSError: a directory of the database, as "Europe"
        raise PartitionError(f"tz={name!r} is not a time zone", hint=_zone_hint(name)) from None


_OFFSET = re.compile(r"(?:UTC|GMT)?([+-])0?(\d{1,2})(?::?00)?", re.IGNORECASE)


def _zone_hint(name: str) -> str:
    """An offset has a zone of its own, with the other sign. Short names are like many others."""
    offset = _OFFSET.fullmatch(name)
    if offset is not None and 0 < int(offset[2]) <= 12:
        return f"write Etc/GMT{'-' if offset[1] == '+' else '+'}{int(offset[2])}, or a place"
    guess = nearest(name, available_timezones(), cutoff=0.6 if "/" in name else 0.9)
    return f"did you mean {guess}?" if guess else "use an IANA name such as Europe/Paris"


def _start(spec: PartitionSpec) -> date | None:
    if spec.start is None:
        return None
    try:
        if _START.fullmatch(spec.start):
            return date.fromisoformat(spec.start)
    except ValueError:
        pass
    raise PartitionError(f"start={spec.start!r} is not a date", hint="write it as YYYY-MM-DD")


def _check_format(spec: PartitionSpec, kind: TimeKind) -> None:
    """Two slices must never share a value, and each value must lead back to its slice."""
    pattern = spec.format or kind.format
    try:
        told_apart = all(
            kind.floor(read_bucket(bucket_text(bucket, pattern), pattern)) == bucket
            for bucket in _samples(kind)
        )
    except (ValueError, OverflowError):
        told_apart = False
    if not told_apart:
        raise PartitionError(
            f"format={pattern!r} does not tell one {kind.unit} from another",
            hint=f"write format={kind.format}, or leave it out",
        )


def _samples(kind: TimeKind) -> Iterator[datetime]:
    """Buckets that show what a format loses: halves of days, days of months, ends of years."""
    for year in (2012, 2019, 2026):
        for month, day, hour in ((1, 1, 0), (1, 1, 13), (3, 9, 4), (11, 30, 23), (12, 31, 11)):
            yield kind.floor(datetime(year, month, day, hour))  # noqa: DTZ001 - wall time


def _check_dynamic(spec: PartitionSpec) -> None:
    if spec.kind != "dynamic":
        raise PartitionError(
            f"{spec.kind!r} is not a kind of partition", hint=f"one of: {', '.join(KINDS)}"
        )
    if spec.key is None or not _KEY.fullmatch(spec.key):
        raise PartitionError(
            f"key={spec.key!r} is not a path into the payload",
            hint='write key="$.a.b": names joined by dots, no index, wildcard or filter',
        )


def value_from(spec: PartitionSpec, payload: Mapping[str, Any]) -> str:
    """The value of a dynamic partition: what ``key`` points to in the payload's ``trigger`` object,
    or in the payload itself where it has none. Raises PartitionError.
    """
    key = spec.key or ""
    if not payload:
        raise PartitionError(
            f"there is no payload to take the partition {key} from",
            hint=f"send it: --payload '{_example(key)}', or leave the step out with --select",
        )
    trigger = payload.get("trigger")
    found: Any = trigger if isinstance(trigger, Mapping) else payload
    walked = "$"
    for name in key.split(".")[1:]:
        walked = f"{walked}.{name}"
        if not isinstance(found, Mapping) or name not in found:
            raise PartitionError(
                f"the payload has no {walked} (the partition's key is {key})",
                hint="send it in the payload, or give --partition VALUE",
            )
        found = found[name]
    return _scalar(found, key)


def _example(key: str) -> str:
    """A payload that has the key: ``{"a": {"b": "..."}}``."""
    value: object = "..."
    for name in reversed(key.split(".")[1:]):
        value = {name: value}
    return json.dumps(value, ensure_ascii=False)


def _scalar(found: object, key: str) -> str:
    if isinstance(found, str) and found:
        return found
    if isinstance(found, bool | int | float):
        return json.dumps(found)
    raise PartitionError(
        f"{key} of the payload is not a text, number or boolean, so it cannot be a partition",
        hint="point key at a scalar, or give --partition VALUE",
    )
