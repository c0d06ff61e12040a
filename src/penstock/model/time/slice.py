"""Slices: the whole table, one partition, or a range of time ``[start, end)``.

Each has one text for people, ``str(slice)``, and one for state, ``slice.text``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC
from functools import lru_cache
from typing import Any
from zoneinfo import ZoneInfo

from penstock.errors import PartitionError
from penstock.model.time.interval import Interval, Intervals, interval_of, union
from penstock.model.time.partition import TIME_KINDS, PartitionSpec, bounds, bucket_of


@dataclass(frozen=True, slots=True)
class Whole:
    """All of a table that is not divided."""

    @property
    def text(self) -> str:
        return ""

    def __str__(self) -> str:
        return "whole table"


@dataclass(frozen=True, slots=True)
class Part:
    """The partition of this value."""

    value: str

    @property
    def text(self) -> str:
        return self.value

    def __str__(self) -> str:
        return self.value


Slice = Whole | Part | Interval
WHOLE = Whole()


def shown(text: str) -> str | None:
    """The text of a slice for state as one for people; None for a whole table."""
    interval = interval_of(text)
    return str(interval) if interval is not None else text or None


def described(slices: Sequence[Slice]) -> str | None:
    """Slices in the order of time, for people: None for a whole table.

    ``2026-01-01``, or ``2026-01-01 to 2026-01-31 (30 slices)`` where there are several.
    """
    if not slices or slices[0] == WHOLE:
        return None
    first, last = slices[0], slices[-1]
    if len(slices) == 1:
        return str(first)
    if isinstance(first, Interval) and isinstance(last, Interval):
        return f"{Interval(first.start, last.end)} ({len(slices):,} intervals)"
    return f"{first} to {last} ({len(slices):,} slices)"


def meets(
    of_mine: PartitionSpec | None,
    others: Sequence[Slice],
    of_others: PartitionSpec | None,
) -> Callable[[Slice], bool]:
    """Return whether a slice of a reader may need one of ``others``: they have a moment in common.

    ``of_mine`` and ``of_others`` are the `partitioned` lines. What has no place in time, as a whole
    table and the values of dynamic partitions, may need all.
    """
    texts = {other.text for other in others}
    spans = [span_of(other, of_others) for other in others]

    def needs(slice_: Slice) -> bool:
        if not texts:
            return False
        if slice_.text in texts:
            return True
        if of_mine is not None and of_others is not None and of_mine.slicing == of_others.slicing:
            return False
        span = span_of(slice_, of_mine)
        return span is None or any(
            other is None or (span.start < other.end and other.start < span.end) for other in spans
        )

    return needs


def moments_of(slices: Sequence[Slice], spec: PartitionSpec | None) -> Intervals | None:
    """The moments of slices; None where one has no place in time, as a whole table."""
    found: list[Interval] = []
    for slice_ in slices:
        span = span_of(slice_, spec)
        if span is None:
            return None
        found.append(span)
    return union(found)


def in_time(spec: PartitionSpec | None) -> Callable[[str], tuple[int, Any]]:
    """Return the order of partitions by their values, which sort as times do; with a format of its
    own by their times, and values of another one come last.
    """

    def key(value: str) -> tuple[int, Any]:
        if spec is None or spec.format is None:
            return 0, value
        try:
            return 0, bucket_of(spec, value)
        except PartitionError:
            return 1, value

    return key


def zone_of(spec: PartitionSpec | None) -> ZoneInfo:
    """Return the zone in which slices are days and months; UTC for intervals."""
    return ZoneInfo("UTC" if spec is None or spec.tz is None else spec.tz)


def span_of(slice_: Slice, spec: PartitionSpec | None) -> Interval | None:
    """Return the moments of a slice; None where it has no place in time, or is of another kind."""
    return spans_of(spec)(slice_)


def spans_of(spec: PartitionSpec | None) -> Callable[[Slice], Interval | None]:
    """Return what tells the moments of slices, as `span_of` does; for many of them."""
    by_value = None if spec is None or spec.kind not in TIME_KINDS else _of_values(spec)

    def span(slice_: Slice) -> Interval | None:
        if isinstance(slice_, Interval):
            return slice_
        return by_value(slice_.value) if by_value and isinstance(slice_, Part) else None

    return span


@lru_cache(maxsize=64)
def _of_values(spec: PartitionSpec) -> Callable[[str], Interval | None]:
    @lru_cache(maxsize=65536)
    def of_value(value: str) -> Interval | None:
        try:
            start, end = bounds(spec, value)
        except PartitionError:
            return None
        return Interval(start.astimezone(UTC), end.astimezone(UTC))

    return of_value
