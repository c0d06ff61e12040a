"""Find the times at which models are due by their schedules.

A time is *missed* if it is decided more than `GRACE` after it was due: no process served the
project, or the clock jumped. A time that is not missed always fires. ``catchup`` selects the missed
times that fire:

- ``none``: no missed time.
- ``latest``: the newest missed time, unless a time that is not missed fires in the same decision.
- ``all``: the newest ``limit`` missed times that are within ``window``.

The default is ``all`` with a limit of `DEFAULT_LIMIT` for a model that is partitioned by time, and
``latest`` for any other model.

All times that do not fire share one outcome. The outcome belongs to the newest of these times. Its
reason states the time after which the others were due. So a year of downtime costs as much as a
day.

The mark of a model is the newest decided time. A mark never moves back, so no time fires twice
after the clock jumped back. If a model is new, or if its expression or zone changed, its mark is
the time of the decision: no past time fires.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import lru_cache
from itertools import takewhile

from penstock.model.time.cron import Cron
from penstock.model.time.partition import TIME_KINDS
from penstock.scheduler.subscription import Subscription
from penstock.scheduler.values import (
    Agenda,
    Catchup,
    EventKind,
    Outcome,
    OutcomeKind,
    ScheduleMark,
    TriggerEvent,
)

GRACE = timedelta(seconds=60)
"""A time is missed if it is decided later than this after it was due."""
DEFAULT_LIMIT = 100
"""The default ``limit`` of missed times for a model that is partitioned by time."""


@dataclass(frozen=True, slots=True)
class Due:
    """The events and marks of the schedules that are due.

    Attributes:
        events: The due times, the newest first. They include skipped times, which do not fire.
        marks: The schedule marks that changed.
        outcomes: The outcomes of skipped times.
        wakes_at: The next time at which a schedule is due.
    """

    events: tuple[TriggerEvent, ...] = ()
    marks: tuple[ScheduleMark, ...] = ()
    outcomes: tuple[Outcome, ...] = ()
    wakes_at: datetime | None = None


@dataclass(slots=True)
class _Times:
    """The due times of one model since its mark.

    Attributes:
        fired: The times that fire, the newest first.
        skipped: The newest time that does not fire; empty if all fire.
        reason: Why the skipped time does not fire.
    """

    fired: list[datetime] = field(default_factory=list)
    skipped: list[datetime] = field(default_factory=list)
    reason: str = ""


def due_events(subscriptions: Mapping[str, Subscription], agenda: Agenda, moment: datetime) -> Due:
    """Find the events of schedules that are due at a moment.

    Args:
        subscriptions: The subscriptions by model.
        agenda: The agenda with the schedule marks.
        moment: The moment.

    Returns:
        The events, outcomes and marks to record, and the next due time.
    """
    events: list[TriggerEvent] = []
    marks: list[ScheduleMark] = []
    outcomes: list[Outcome] = []
    next_times: list[datetime] = []
    for model, subscription in subscriptions.items():
        old_mark = agenda.marks.get(model)
        mark = _update_mark(model, subscription.cron, old_mark, moment)
        if subscription.cron is not None and mark is not None:
            upcoming = _find_next(subscription.cron, mark.since)
            if upcoming is not None and upcoming <= moment:
                times = _select_times(subscription, subscription.cron, mark.since, moment)
                events += [_make_event(model, due) for due in (*times.fired, *times.skipped)]
                outcomes += (
                    Outcome(
                        _make_event_id(model, due), model, OutcomeKind.IGNORED, None, times.reason
                    )
                    for due in times.skipped
                )
                mark = replace(mark, since=max(upcoming, *times.fired, *times.skipped))
                upcoming = _find_next(subscription.cron, mark.since)
            next_times += [upcoming] if upcoming is not None else []
        if mark is not None and mark != old_mark:
            marks.append(mark)
    return Due(tuple(events), tuple(marks), tuple(outcomes), min(next_times, default=None))


@lru_cache(maxsize=65536)  # each decision calls it for each model, mostly with the same arguments
def _find_next(cron: Cron, since: datetime) -> datetime | None:
    """Return the first due time after a time; None if the expression is never due again."""
    try:
        return cron.next(since)
    except ValueError:
        return None


def _update_mark(
    model: str, cron: Cron | None, mark: ScheduleMark | None, moment: datetime
) -> ScheduleMark | None:
    """Return the mark of the current schedule, which is a new one if the schedule has changed.

    If a model lost its schedule, its mark has an empty expression. A schedule that is added again
    is a change, so no past time fires.
    """
    if cron is None and mark is None:
        return None
    expression, zone = (cron.expression, cron.zone) if cron is not None else ("", "")
    if mark is None:
        return ScheduleMark(model, expression, zone, moment)
    if (mark.expression, mark.zone) == (expression, zone):
        return mark
    return ScheduleMark(model, expression, zone, max(moment, mark.since))


def _select_times(
    subscription: Subscription, cron: Cron, since: datetime, moment: datetime
) -> _Times:
    """Select the due times that fire, from the newest to the first that does not."""
    catchup = _resolve_catchup(subscription)
    missed_before = moment - GRACE
    times = _Times()
    missed = 0
    for due in _list_times(cron, since, moment):
        if not subscription.is_due_at(due):
            continue
        if due >= missed_before:
            times.fired.append(due)
            continue
        obstacle = _REFUSALS[catchup.mode or ""](catchup, times.fired, missed, moment - due)
        if obstacle is not None:
            times.skipped.append(due)
            times.reason = f"missed while nothing was serving ({obstacle})"
            earlier = cron.floor(due - timedelta.resolution)
            if earlier > since:
                times.reason += f", like all earlier times after {since.isoformat()}"
            break
        times.fired.append(due)
        missed += 1
    return times


def _list_times(cron: Cron, since: datetime, moment: datetime) -> Iterator[datetime]:
    """Return the due times after a mark up to a moment, the newest first."""
    due = _find_next(cron, since)
    following = None if due is None else _find_next(cron, due)
    if due is None or following is None or following > moment:  # the usual case; it is cached
        return iter(() if due is None else (due,))
    return takewhile(lambda due: due > since, cron.iterate_back(moment))


def _resolve_catchup(subscription: Subscription) -> Catchup:
    catchup = subscription.catchup
    if catchup.mode is not None:
        return catchup
    spec = subscription.partition
    if spec is None or spec.kind not in TIME_KINDS:
        return Catchup("latest", catchup.limit, catchup.window)
    limit = DEFAULT_LIMIT if catchup.limit is None else catchup.limit
    return Catchup("all", limit, catchup.window)


def _refuse_missed(
    _catchup: Catchup, _fired: list[datetime], _missed: int, _age: timedelta
) -> str | None:
    return "catchup none"


def _refuse_all_but_newest(
    catchup: Catchup, fired: list[datetime], _missed: int, age: timedelta
) -> str | None:
    if fired:
        return f"catchup latest: {fired[0].isoformat()} fires instead"
    return _refuse_old(catchup, age)


def _refuse_beyond_limit(
    catchup: Catchup, _fired: list[datetime], missed: int, age: timedelta
) -> str | None:
    if catchup.limit is not None and missed >= catchup.limit:
        return f"catchup all fires the newest {catchup.limit}"
    return _refuse_old(catchup, age)


def _refuse_old(catchup: Catchup, age: timedelta) -> str | None:
    if catchup.window is None or age <= catchup.window:
        return None
    return f"older than the window of its catchup, {catchup.window}"


_REFUSALS = {
    "none": _refuse_missed,
    "latest": _refuse_all_but_newest,
    "all": _refuse_beyond_limit,
}


def _make_event_id(model: str, due: datetime) -> str:
    return f"schedule:{model}@{due.isoformat()}"


def _make_event(model: str, due: datetime) -> TriggerEvent:
    return TriggerEvent(_make_event_id(model, due), EventKind.SCHEDULE, model, due, fire_time=due)
