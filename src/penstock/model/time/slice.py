"""Slices: the whole table, one partition, or a range of time ``[start, end)``.

Each has one text for people, ``str(slice)``, and one for state, ``slice.text``.

The schedule by which a model restates itself, and how much of it (kinds.md,
``auto_restatement_cron`` and ``auto_restatement_intervals``).

``'{partition}'`` in a script: where it stands for the slice's value, and where it is misplaced.

It is a text of its own, so that the value is bound and never becomes SQL (annotations.md,
"Partition values").
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any
from zoneinfo import ZoneInfo

from penstock.errors import PartitionError
from penstock.model.time.cron import Cron
from penstock.model.time.interval import (
    Interval,
    Intervals,
    IntervalUnit,
    intersect,
    interval_of,
    union,
)
from penstock.model.time.partition import TIME_KINDS, PartitionSpec, bounds, bucket_of
from penstock.sql.tokens import NAME, STRING, Token


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
    if isinstance(slice_, Interval):
        return slice_
    if not isinstance(slice_, Part) or spec is None or spec.kind not in TIME_KINDS:
        return None
    return _of_value(spec, slice_.value)


@lru_cache(maxsize=65536)
def _of_value(spec: PartitionSpec, value: str) -> Interval | None:
    try:
        start, end = bounds(spec, value)
    except PartitionError:
        return None
    return Interval(start.astimezone(UTC), end.astimezone(UTC))


@dataclass(frozen=True, slots=True)
class AutoRestatement:
    """``intervals`` is how many of a model by time; None for all, and for other models."""

    cron: str
    zone: str = "UTC"
    intervals: int | None = None

    def due(self, now: datetime) -> datetime:
        """Return when it was due last: what was made before that is made again."""
        return Cron(self.cron, self.zone).floor(now)

    def window(self, recorded: Iterable[Interval], unit: IntervalUnit) -> Intervals:
        """Return what of the recorded intervals it is about: the last
        ``intervals`` units, or all.
        """
        known = union(recorded)
        if self.intervals is None or not known:
            return known
        end = known[-1].end
        first = unit.next(unit.ceil(end), -self.intervals)
        return intersect(known, (Interval(first, end),)) if first < end else ()


TOKEN = "{partition}"

Problem = tuple[str, str]  # what is wrong, and what would be right

BARE = (f"{TOKEN} stands without quotes", f"write '{TOKEN}'")
INSIDE = (
    f"{TOKEN} stands inside a longer text, where it is not replaced",
    f"concatenate: 'before' || '{TOKEN}' || 'after'",
)


def is_bare(tokens: Sequence[Token], index: int) -> bool:
    """Return whether the brace at ``index`` begins the token without quotes."""
    following = [token.text for token in tokens[index + 1 : index + 3]]
    return following == ["partition", "}"]


def misplaced(tokens: Sequence[Token], index: int, *, partitioned: bool) -> Problem | None:
    """Return what is wrong with the token at ``index``, whose text contains ``{partition}``."""
    token = tokens[index]
    if token.kind == NAME and token.value == TOKEN:
        return f"{TOKEN} stands in quotes that make it a name", f"write '{TOKEN}'"
    if token.kind == NAME or token.value != TOKEN:
        return INSIDE
    if not partitioned:
        return "the script is not partitioned", "add `-- partitioned daily` to the header"
    neighbours = (*tokens[max(index - 1, 0) : index], *tokens[index + 1 : index + 2])
    if any(neighbour.kind == STRING for neighbour in neighbours):
        return f"'{TOKEN}' stands next to another text, where it is not replaced", INSIDE[1]
    return None
