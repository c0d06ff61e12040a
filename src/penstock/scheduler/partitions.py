"""Find the slices of a model that an event concerns.

The first event of a chain resolves the partition. Later events of the chain have the partition, and
never resolve it from a time. So a chain that crosses midnight stays on its slice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, timedelta
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
"""The maximum number of slices that one event fires: a month does not fire its 744 hours."""

_INSTANT = timedelta(microseconds=1)
_Values = tuple[tuple[str, ...], tuple[str, ...]]  # all, and those from the start of the model on


@dataclass(frozen=True, slots=True)
class EventSlices:
    """The slices of a model that an event concerns.

    Attributes:
        keys: The partitions, the oldest first; or only `WHOLE`.
        reason: Why slices are left out; None if none are.
    """

    keys: tuple[str, ...] = ()
    reason: str | None = None


def find_slices(event: TriggerEvent, match: Match) -> EventSlices:
    """Find the slices of a model that an event concerns.

    Args:
        event: The event.
        match: The model, with the partition of its source.

    Returns:
        The slices, or the reason for having none.
    """
    spec = match.reader.partition
    if spec is None:
        return EventSlices((WHOLE,))
    try:
        if spec.kind not in TIME_KINDS:
            return _find_dynamic_slices(spec, event, match)
        if match.partition:
            values, eligible = _convert_partition(match.partition, match.origin, spec)
        else:
            value = render(spec, bucket_at(spec, event.fire_time or event.time))
            values, eligible = _split_at_start([value], spec)
        return _limit_slices(values, eligible, match.reader)
    except PartitionError as error:
        return EventSlices(reason=error.message)
    except OverflowError:  # the slice ends in the year 10000
        return EventSlices(reason=f"{match.partition} is outside of the calendar")


def _find_dynamic_slices(spec: PartitionSpec, event: TriggerEvent, match: Match) -> EventSlices:
    if match.partition:
        if match.origin is not None and match.origin.kind in TIME_KINDS:
            reason = (
                f"{match.partition} is a {match.origin.kind} partition of {event.source}, but "
                f"{match.reader.model} is partitioned by {spec.key}"
            )
            return EventSlices(reason=reason)
        validate(spec, match.partition)
        return EventSlices((match.partition,))
    if event.payload is None and match.source is not None:
        reason = f"the change of {event.source} has no partition to take {spec.key} from"
        return EventSlices(reason=reason)
    return EventSlices((value_from(spec, event.payload or {}),))


@lru_cache(maxsize=4096)
def _convert_partition(value: str, origin: PartitionSpec | None, spec: PartitionSpec) -> _Values:
    """Return the slices of a model by time that overlap a slice of its source."""
    if origin is None or origin.kind not in TIME_KINDS:
        origin = spec
    return _split_at_start(_find_overlapping(value, origin, spec), spec)


def _find_overlapping(value: str, origin: PartitionSpec, spec: PartitionSpec) -> list[str]:
    """Return the slices of one format that overlap a slice of another format.

    Days, weeks and months are compared as dates, in any time zone. Hours are compared as instants.
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


def _split_at_start(values: Sequence[str], spec: PartitionSpec) -> _Values:
    eligible = [value for value in values if not is_before_start(spec, bucket_of(spec, value))]
    return tuple(values), tuple(eligible)


def _limit_slices(
    values: Sequence[str], eligible: tuple[str, ...], reader: Subscription
) -> EventSlices:
    if not eligible:
        start = reader.partition.start if reader.partition else None
        return EventSlices(reason=f"{values[-1]} is before start {start} of {reader.model}")
    older = eligible[:-MAX_SLICES_OF_EVENT]
    if not older:
        return EventSlices(eligible)
    reason = (
        f"an event fires at most {MAX_SLICES_OF_EVENT} slices; {count(len(older), 'older slice')} "
        f"did not fire: run penstock backfill {reader.model} --from {older[0]} --to {older[-1]}"
    )
    return EventSlices(eligible[len(older) :], reason)
