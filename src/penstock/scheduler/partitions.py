"""Find which slices of a reader an event is about.

The partition is resolved once, at the top of a chain. An event with a partition passes it on and
never resolves it from a time, so that a chain that crosses midnight stays on its slice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from penstock.errors import PartitionError
from penstock.model.time.partition import (
    TIME_KINDS,
    PartitionSpec,
    bucket_at,
    bucket_of,
    is_before_start,
    render,
    span,
    validate,
    value_from,
    values_between,
)
from penstock.rendering.text import count
from penstock.scheduler.matching import Match
from penstock.scheduler.subscription import Subscription
from penstock.scheduler.values import WHOLE, TriggerEvent

MAX_SLICES_OF_EVENT = 200
"""The slices of a reader that one event fires, at most: a month fires no 744 hours."""

_INSTANT = timedelta(microseconds=1)
_Values = tuple[tuple[str, ...], tuple[str, ...]]  # all, and those that are not before the start


@dataclass(frozen=True, slots=True)
class EventSlices:
    """The slices of a reader that an event is about.

    Attributes:
        keys: The partitions, the oldest first, or `WHOLE` alone.
        reason: Why there are none, or why there are no more.
    """

    keys: tuple[str, ...] = ()
    reason: str | None = None


def find_slices(event: TriggerEvent, match: Match) -> EventSlices:
    """Find the slices of a reader that an event is about.

    Args:
        event: The event.
        match: The reader, with the partition of its source.

    Returns:
        The slices, or why there are none.
    """
    spec = match.reader.partition
    if spec is None:
        return EventSlices((WHOLE,))
    try:
        if spec.kind not in TIME_KINDS:
            return _dynamic_slices(spec, event, match)
        if match.partition:
            values, eligible = _convert(match.partition, match.origin, spec)
        else:
            values, eligible = _since_start([_slice_at(spec, event.fire_time or event.time)], spec)
        return _limit(values, eligible, match.reader)
    except PartitionError as error:
        return EventSlices(reason=error.message)
    except OverflowError:  # the slice after it begins in the year 10000
        return EventSlices(reason=f"{match.partition} is outside of the calendar")


def _dynamic_slices(spec: PartitionSpec, event: TriggerEvent, match: Match) -> EventSlices:
    if match.partition:
        if match.origin is not None and match.origin.kind in TIME_KINDS:
            kinds = f"{match.origin.kind} partition of {event.source}"
            reason = f"{match.partition} is a {kinds}, and {match.reader.model} has {spec.key}"
            return EventSlices(reason=reason)
        validate(spec, match.partition)
        return EventSlices((match.partition,))
    if event.payload is None and match.source is not None:
        reason = f"the change of {event.source} has no partition to take {spec.key} from"
        return EventSlices(reason=reason)
    return EventSlices((value_from(spec, event.payload or {}),))


def _slice_at(spec: PartitionSpec, moment: datetime) -> str:
    return render(spec, bucket_at(spec, moment))


@lru_cache(maxsize=4096)
def _convert(value: str, origin: PartitionSpec | None, spec: PartitionSpec) -> _Values:
    """Return the slices of a reader by time that overlap a slice of its source."""
    if origin is None or origin.kind not in TIME_KINDS:
        origin = spec
    return _since_start(_overlapping(value, origin, spec), spec)


def _overlapping(value: str, origin: PartitionSpec, spec: PartitionSpec) -> list[str]:
    """Return the slices of one partition that overlap a slice of another.

    Days, weeks and months are dates, which are the same in each zone. Hours are instants.
    """
    bucket = bucket_of(origin, value)
    if origin.kind == spec.kind:
        converted = render(spec, bucket)
        validate(spec, converted)
        return [converted]
    if "hourly" not in (origin.kind, spec.kind):
        return values_between(spec, bucket, TIME_KINDS[origin.kind].step(bucket) - _INSTANT)
    start, end = (instant.astimezone(UTC) for instant in span(origin, bucket))
    return values_between(spec, bucket_at(spec, start), bucket_at(spec, end - _INSTANT))


def _since_start(values: Sequence[str], spec: PartitionSpec) -> _Values:
    eligible = [value for value in values if not is_before_start(spec, bucket_of(spec, value))]
    return tuple(values), tuple(eligible)


def _limit(values: Sequence[str], eligible: tuple[str, ...], reader: Subscription) -> EventSlices:
    if not eligible:
        start = reader.partition.start if reader.partition else None
        return EventSlices(reason=f"{values[-1]} is before start {start} of {reader.model}")
    older = eligible[:-MAX_SLICES_OF_EVENT]
    if not older:
        return EventSlices(eligible)
    reason = (
        f"an event fires {MAX_SLICES_OF_EVENT} slices at most, and {count(len(older), 'older one')}"
        f" did not: run penstock backfill {reader.model} --from {older[0]} --to {older[-1]}"
    )
    return EventSlices(eligible[len(older) :], reason)
