"""Find slices that are older than their model's ``freshness``, and fire those that a run renews.

A slice is *late* if more time than its freshness has passed since it was built, or if it never was.
A late slice fires under these rules:

- An input changed after the slice was built. One that never was built needs no change at first.
- After an attempt, an input changed again: a slice never fires more often than its inputs change.
  So a build that failed is repeated by ``retry`` and people, and by this rule only with new inputs.
- After attempt *n*, the next one waits for the freshness / 16 (a minute at least), doubled
  *n* - 1 times, and never longer than the freshness itself.
- No firing of the slice, or of its whole table, is open. That one will renew it.

An attempt counts until the slice is built after it. A build that ended well lets the next attempt
follow without a wait; one that failed leaves the age as it was, and the wait grows. The mark of a
slice that is fresh is removed. If the clock jumped back behind an attempt, the attempt is marked
with the moment, so that no slice waits for a time that was never right.

People are told of slices that are *overdue*: late ones with a changed input. Slices of the past are
late forever, and overdue only if there is something new to build.
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
"""A slice waits this long between attempts, unless its freshness is shorter."""
_SHARE = 16  # the first wait is this part of the freshness
_DOUBLINGS = 4  # after which a wait is the freshness


@dataclass(frozen=True, slots=True)
class Late:
    """Hold what late slices ask for at a moment.

    Attributes:
        events: An event for each slice that fires.
        marks: The attempts of slices; those without attempts are removed.
        wakes_at: When a slice becomes late next, or may fire again.
    """

    events: tuple[TriggerEvent, ...] = ()
    marks: tuple[FreshnessMark, ...] = ()
    wakes_at: datetime | None = None


def is_late(age: Age, freshness: timedelta, moment: datetime) -> bool:
    """Return whether a slice is older than it may be.

    Args:
        age: The age of the slice.
        freshness: How old it may be.
        moment: The moment.

    Returns:
        True if it is older, or was never built.
    """
    return age.built_at is None or moment - age.built_at > freshness


def is_overdue(age: Age, freshness: timedelta, moment: datetime) -> bool:
    """Return whether a slice is older than it may be, although it could be newer.

    Args:
        age: The age of the slice.
        freshness: How old it may be.
        moment: The moment.

    Returns:
        True if it is older and an input has changed, or if it never was built and is due.
    """
    if age.built_at is None:
        return age.due_at is None or moment - age.due_at > freshness
    return age.inputs_changed_at is not None and is_late(age, freshness, moment)


def find_overdue_since(age: Age, freshness: timedelta) -> datetime | None:
    """Return since when a slice is overdue that is.

    Args:
        age: The age of the slice.
        freshness: How old it may be.

    Returns:
        The moment; None if the slice never was built and has no time of its own.
    """
    if age.built_at is None:
        return None if age.due_at is None else age.due_at + freshness
    return max(age.built_at + freshness, age.inputs_changed_at or age.built_at)


def find_first_wait(freshness: timedelta) -> timedelta:
    """Return how long a slice that fired waits before it fires again.

    Args:
        freshness: How old it may be.

    Returns:
        The wait after the first attempt.
    """
    return _wait_after(1, freshness)


def late_events(
    subscriptions: Mapping[str, Subscription], agenda: Agenda, moment: datetime
) -> Late:
    """Find the late slices that fire at a moment.

    Args:
        subscriptions: The subscriptions by model.
        agenda: The state: ages, attempts, and open firings.
        moment: The moment.

    Returns:
        Events and marks to record, and when to look again.
    """
    open_slices = {(firing.model, firing.key) for firing in agenda.firings.values()}
    verdicts = [_Verdict(mark=mark) for mark in _unwatched_marks(subscriptions, agenda.freshness)]
    for age in agenda.ages:
        subscription = subscriptions.get(age.model)
        if subscription is not None and subscription.freshness is not None:
            is_open = not open_slices.isdisjoint({(age.model, age.key), (age.model, WHOLE)})
            mark = agenda.freshness.get((age.model, age.key))
            verdicts.append(_judge(age, subscription.freshness, mark, moment, is_open=is_open))
    return Late(
        tuple(verdict.event for verdict in verdicts if verdict.event),
        tuple(verdict.mark for verdict in verdicts if verdict.mark),
        min((verdict.wakes_at for verdict in verdicts if verdict.wakes_at), default=None),
    )


@dataclass(frozen=True, slots=True)
class _Verdict:
    """Hold what follows for one slice. A mark is None if it stays as it was."""

    event: TriggerEvent | None = None
    mark: FreshnessMark | None = None
    wakes_at: datetime | None = None


def _judge(
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
        _freshness_event(age, moment), FreshnessMark(age.model, age.key, attempts + 1, moment)
    )


def _unwatched_marks(
    subscriptions: Mapping[str, Subscription],
    marks: Mapping[tuple[str, str], FreshnessMark],
) -> Iterator[FreshnessMark]:
    """Yield the removal of marks of models that have no freshness any more."""
    for mark in marks.values():
        subscription = subscriptions.get(mark.model)
        if subscription is not None and subscription.freshness is None:
            yield replace(mark, attempts=0)


def _has_failed(mark: FreshnessMark, age: Age) -> bool:
    """Return whether the attempts of a mark have not led to a build."""
    return age.built_at is None or age.built_at <= mark.fired_at


def _find_attempt(
    age: Age, freshness: timedelta, mark: FreshnessMark | None, moment: datetime
) -> datetime | None:
    """Return when a late slice may fire; None to wait for a change of its inputs."""
    changed_at = age.inputs_changed_at
    if mark is None or not _has_failed(mark, age):
        return moment if age.built_at is None or changed_at is not None else None
    if changed_at is None or changed_at <= mark.fired_at:
        return None
    return mark.fired_at + _wait_after(mark.attempts, freshness)


def _wait_after(attempts: int, freshness: timedelta) -> timedelta:
    wait: timedelta = max(freshness / _SHARE, SHORTEST_WAIT) * 2 ** min(attempts - 1, _DOUBLINGS)
    return min(freshness, wait)


def _freshness_event(age: Age, moment: datetime) -> TriggerEvent:
    slice_name = f"{age.model}/{age.key}" if age.key else age.model
    return TriggerEvent(
        f"freshness:{slice_name}@{moment.isoformat()}",
        EventKind.FRESHNESS,
        age.model,
        moment,
        partition=age.key or None,
        fire_time=moment,
    )
