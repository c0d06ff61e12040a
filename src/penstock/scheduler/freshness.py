"""Find slices that are older than their model's ``freshness``, and fire them.

A slice is *late* if it was never built, or if its age exceeds the freshness of its model. A late
slice fires if all of these conditions are true:

- An input changed after the last build. The first attempt of the first build needs no change.
- After an attempt, an input changed again. So without new inputs, only ``retry`` or a user repeats
  a failed build.
- The wait after the last attempt is over. The first wait is 1/16 of the freshness, but at least a
  minute. Each further attempt doubles the wait, up to the freshness.
- No firing of the slice, or of its whole table, is open.

An attempt counts until the slice is built. After a successful build, the next attempt needs no
wait. After a failed build, the age stays the same and the wait grows. The mark of a fresh slice is
removed. If the clock was set back before an attempt, the attempt gets the current time.

A slice is *overdue* if it is late and an input has changed. Users are notified of overdue slices
only: old slices are always late, but have nothing new to build.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from penstock.scheduler.subscription import Subscription
from penstock.scheduler.values import (
    WHOLE,
    Age,
    Agenda,
    EventKind,
    FreshnessMark,
    TriggerEvent,
)

SHORTEST_WAIT = timedelta(seconds=60)
"""The minimum wait between attempts. A shorter freshness is the wait itself."""
_SHARE = 16  # the freshness divided by the first wait
_DOUBLINGS = 4  # doublings of the first wait until it is the freshness


@dataclass(frozen=True, slots=True)
class Late:
    """The events of late slices.

    Attributes:
        events: One event for each slice that fires.
        marks: The changed marks. A mark without attempts is to be removed.
        wakes_at: The next time when a slice becomes late, or may fire again.
    """

    events: tuple[TriggerEvent, ...] = ()
    marks: tuple[FreshnessMark, ...] = ()
    wakes_at: datetime | None = None


def is_late(age: Age, freshness: timedelta, moment: datetime) -> bool:
    """Return whether a slice is late.

    Args:
        age: The age of the slice.
        freshness: The maximum age.
        moment: The current time.

    Returns:
        True if the slice is older than its freshness, or was never built.
    """
    return age.built_at is None or moment - age.built_at > freshness


def is_overdue(age: Age, freshness: timedelta, moment: datetime) -> bool:
    """Return whether a slice is overdue.

    Args:
        age: The age of the slice.
        freshness: The maximum age.
        moment: The current time.

    Returns:
        True if the slice is late and an input changed, or if it was never built and is due.
    """
    if age.built_at is None:
        return age.due_at is None or moment - age.due_at > freshness
    return age.inputs_changed_at is not None and is_late(age, freshness, moment)


def find_overdue_since(age: Age, freshness: timedelta) -> datetime | None:
    """Return the time when an overdue slice became overdue.

    Args:
        age: The age of the slice.
        freshness: The maximum age.

    Returns:
        The time; None if the slice was never built and has no due time.
    """
    if age.built_at is None:
        return None if age.due_at is None else age.due_at + freshness
    return max(age.built_at + freshness, age.inputs_changed_at or age.built_at)


def find_first_wait(freshness: timedelta) -> timedelta:
    """Return the wait between the first and the second attempt.

    Args:
        freshness: The maximum age.

    Returns:
        The wait.
    """
    return _wait_after(1, freshness)


def late_events(
    subscriptions: Mapping[str, Subscription], agenda: Agenda, moment: datetime
) -> Late:
    """Find the late slices that fire.

    Args:
        subscriptions: The subscriptions by model.
        agenda: The state: ages, marks and open firings.
        moment: The current time.

    Returns:
        The events and marks to record, and the time of the next check.
    """
    open_slices = {(firing.model, firing.key) for firing in agenda.firings.values()}
    verdicts = [_Verdict(mark=mark) for mark in _removed_marks(subscriptions, agenda.freshness)]
    for age in agenda.ages:
        subscription = subscriptions.get(age.model)
        if subscription is not None and subscription.freshness is not None:
            is_open = not open_slices.isdisjoint({(age.model, age.key), (age.model, WHOLE)})
            mark = agenda.freshness.get((age.model, age.key))
            verdicts.append(_check(age, subscription.freshness, mark, moment, is_open=is_open))
    return Late(
        tuple(verdict.event for verdict in verdicts if verdict.event),
        tuple(verdict.mark for verdict in verdicts if verdict.mark),
        min((verdict.wakes_at for verdict in verdicts if verdict.wakes_at), default=None),
    )


@dataclass(frozen=True, slots=True)
class _Verdict:
    """The result of the check of one slice. The mark is None if it does not change."""

    event: TriggerEvent | None = None
    mark: FreshnessMark | None = None
    wakes_at: datetime | None = None


def _check(
    age: Age,
    freshness: timedelta,
    mark: FreshnessMark | None,
    moment: datetime,
    *,
    is_open: bool,
) -> _Verdict:
    if age.built_at is not None and not is_late(age, freshness, moment):
        late_at = age.built_at + freshness + timedelta.resolution
        return _Verdict(mark=mark and replace(mark, attempts=0), wakes_at=late_at)
    corrected = None
    if mark is not None and mark.fired_at > moment:
        mark = corrected = replace(mark, fired_at=moment)
    fires_at = None if is_open else _find_attempt(age, freshness, mark, moment)
    if fires_at is None or fires_at > moment:
        return _Verdict(mark=corrected, wakes_at=fires_at)
    attempts = mark.attempts if mark is not None and _has_failed(mark, age) else 0
    return _Verdict(
        _make_event(age, moment), FreshnessMark(age.model, age.key, attempts + 1, moment)
    )


def _removed_marks(
    subscriptions: Mapping[str, Subscription],
    marks: Mapping[tuple[str, str], FreshnessMark],
) -> Iterator[FreshnessMark]:
    """Yield removals of the marks of models that no longer have a freshness."""
    for mark in marks.values():
        subscription = subscriptions.get(mark.model)
        if subscription is not None and subscription.freshness is None:
            yield replace(mark, attempts=0)


def _has_failed(mark: FreshnessMark, age: Age) -> bool:
    """Return whether the slice was not built since the last attempt."""
    return age.built_at is None or age.built_at <= mark.fired_at


def _find_attempt(
    age: Age, freshness: timedelta, mark: FreshnessMark | None, moment: datetime
) -> datetime | None:
    """Return when a late slice may fire; None if it waits for a change of an input."""
    changed_at = age.inputs_changed_at
    if mark is None or not _has_failed(mark, age):
        return moment if age.built_at is None or changed_at is not None else None
    if changed_at is None or changed_at <= mark.fired_at:
        return None
    return mark.fired_at + _wait_after(mark.attempts, freshness)


def _wait_after(attempts: int, freshness: timedelta) -> timedelta:
    wait: timedelta = max(freshness / _SHARE, SHORTEST_WAIT) * 2 ** min(attempts - 1, _DOUBLINGS)
    return min(freshness, wait)


def _make_event(age: Age, moment: datetime) -> TriggerEvent:
    slice_name = f"{age.model}/{age.key}" if age.key else age.model
    return TriggerEvent(
        f"freshness:{slice_name}@{moment.isoformat()}",
        EventKind.FRESHNESS,
        age.model,
        moment,
        partition=age.key or None,
        fire_time=moment,
    )
