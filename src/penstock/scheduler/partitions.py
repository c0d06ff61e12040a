"""Find which slices of a reader an event is about.

The partition is resolved once, at the top of a chain. An event with a partition passes it on and
never resolves it from a time, so that a chain that crosses midnight stays on its slice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, timedelta

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
from penstock.scheduler.values import WHOLE, TriggerEvent

MAX_SLICES_OF_EVENT = 200
"""The slices of a reader that one event fires, at most: a month fires no 744 hours."""

_INSTANT = timedelta(microseconds=1)


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
        if not match.partition:
            values = [render(spec, bucket_at(spec, event.fire_time or event.time))]
        else:
            values = _convert(match.partition, match.origin, spec)
        return _limit(values, spec, match.reader.model)
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


def _convert(value: str, origin: PartitionSpec | None, spec: PartitionSpec) -> list[str]:
    """Return the slices of a reader by time that overlap a slice of its source.

    Days, weeks and months are dates, which are the same in each zone. Hours are instants.
    """
    if origin is None or origin.kind not in TIME_KINDS:
        origin = spec
    bucket = bucket_of(origin, value)
    if origin.kind == spec.kind:
        converted = render(spec, bucket)
        validate(spec, converted)
        return [converted]
    if "hourly" not in (origin.kind, spec.kind):
        return values_between(spec, bucket, TIME_KINDS[origin.kind].step(bucket) - _INSTANT)
    start, end = (instant.astimezone(UTC) for instant in span(origin, bucket))
    return values_between(spec, bucket_at(spec, start), bucket_at(spec, end - _INSTANT))


def _limit(values: Sequence[str], spec: PartitionSpec, model: str) -> EventSlices:
    keys = [value for value in values if not is_before_start(spec, bucket_of(spec, value))]
    if not keys:
        return EventSlices(reason=f"{values[-1]} is before start {spec.start} of {model}")
    older = keys[:-MAX_SLICES_OF_EVENT]
    if not older:
        return EventSlices(tuple(keys))
    reason = (
        f"an event fires {MAX_SLICES_OF_EVENT} slices at most, and {count(len(older), 'older one')}"
        f" did not: run penstock backfill {model} --from {older[0]} --to {older[-1]}"
    )
    return EventSlices(tuple(keys[len(older) :]), reason)
