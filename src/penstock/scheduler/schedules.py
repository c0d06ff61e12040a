"""Find the times at which models are due by their schedules, and those that were missed.

A time is *missed* if it is decided more than `GRACE` after it was due: nothing was serving, or the
clock jumped. Times that are not missed always fire. Of missed times, ``catchup`` says which fire:

- ``none``: none.
- ``latest``: the newest, unless a time that was not missed fires with it.
- ``all``: those within ``window``, and of these the newest ``limit``.

Without ``catchup``, a model that is partitioned by time has ``all`` with a limit of
`DEFAULT_LIMIT`, and others have ``latest``.

Times that do not fire have one outcome together. It is that of the newest of them, and its reason
names the time after which the others were due. So a year of downtime costs as much as a day.

A model is marked with the newest time that was decided. Marks never move back, so that nothing
fires twice after a clock jumped back. A model that is new, or whose expression or zone changed, is
marked with the moment of the decision, and does not fire for the past.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import lru_cache

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
"""A time that is decided later than this after it was due was missed."""
DEFAULT_LIMIT = 100
"""The missed times that a model partitioned by time fires, if its header has no ``catchup``."""


@dataclass(frozen=True, slots=True)
class Due:
    """Hold what is due at a moment.

    Attributes:
        events: The times that fire, the newest first. Times that were skipped are among them: those
            have an outcome and must not fire.
        marks: The marks of schedules that changed.
        outcomes: Why times do not fire.
        wakes_at: When a schedule is due next.
    """

    events: tuple[TriggerEvent, ...] = ()
    marks: tuple[ScheduleMark, ...] = ()
    outcomes: tuple[Outcome, ...] = ()
    wakes_at: datetime | None = None


@dataclass(slots=True)
class _Times:
    """The times of one model between its mark and the moment.

    Attributes:
        fired: The times that fire, the newest first.
        skipped: The newest time that does not.
        reason: Why it does not.
    """

    fired: list[datetime] = field(default_factory=list)
    skipped: datetime | None = None
    reason: str = ""


def due_events(subscriptions: Mapping[str, Subscription], agenda: Agenda, moment: datetime) -> Due:
    """Find what schedules ask for at a moment.

    Args:
        subscriptions: The subscriptions by model.
        agenda: The state; its marks say which times have been decided.
        moment: The moment.

    Returns:
        Events, outcomes and marks to record, and when to look again.
    """
    events: list[TriggerEvent] = []
    marks: list[ScheduleMark] = []
    outcomes: list[Outcome] = []
    wakes_at: datetime | None = None
    for model, subscription in subscriptions.items():
        mark = agenda.marks.get(model)
        cron = subscription.cron
        if cron is None:
            marks += _end_mark(mark, moment)
            continue
        if mark is None or (mark.expression, mark.zone) != (cron.expression, cron.zone):
            since = moment if mark is None else max(moment, mark.since)
            mark = ScheduleMark(model, cron.expression, cron.zone, since)
            marks.append(mark)
        upcoming = _find_next(cron, mark.since)
        if upcoming is not None and upcoming <= moment:
            newest = cron.floor(moment)
            marks.append(ScheduleMark(model, cron.expression, cron.zone, newest))
            times = _judge_times(subscription, cron, mark.since, moment)
            events += [_schedule_event(model, time) for time in times.fired]
            if times.skipped is not None:
                skipped = _schedule_event(model, times.skipped)
                events.append(skipped)
                outcomes.append(
                    Outcome(skipped.id, model, OutcomeKind.IGNORED, reason=times.reason)
                )
            upcoming = _find_next(cron, newest)
        if upcoming is not None and (wakes_at is None or upcoming < wakes_at):
            wakes_at = upcoming
    return Due(tuple(events), tuple(marks), tuple(outcomes), wakes_at)


@lru_cache(maxsize=65536)  # each decision asks for all models; the answer changes when one is due
def _find_next(cron: Cron, since: datetime) -> datetime | None:
    """Return the first time after another; None for an expression that is never due again."""
    try:
        return cron.next(since)
    except ValueError:
        return None


def _end_mark(mark: ScheduleMark | None, moment: datetime) -> tuple[ScheduleMark, ...]:
    """Return the mark of a model that has no schedule any more, if it had one.

    It has no expression. If the schedule comes back, that is a change, and the past does not fire.
    """
    if mark is None or not mark.expression:
        return ()
    return (ScheduleMark(mark.model, "", "", max(moment, mark.since)),)


def _judge_times(
    subscription: Subscription, cron: Cron, since: datetime, moment: datetime
) -> _Times:
    catchup = _resolve_catchup(subscription)
    oldest = moment - GRACE
    times = _Times()
    missed = 0
    for due in cron.iterate_back(moment):
        if due <= since:
            break
        if due >= oldest:
            times.fired.append(due)
            continue
        obstacle = _OBSTACLES[catchup.mode or ""](catchup, times.fired, missed, moment - due)
        if obstacle is not None:
            times.skipped = due
            times.reason = f"missed while nothing was serving ({obstacle})"
            earlier = cron.floor(due - timedelta.resolution)
            if earlier > since:
                times.reason += f", as all times after {since.isoformat()}"
            break
        times.fired.append(due)
        missed += 1
    return times


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


_OBSTACLES = {
    "none": _refuse_missed,
    "latest": _refuse_all_but_newest,
    "all": _refuse_beyond_limit,
}


def _schedule_event(model: str, due: datetime) -> TriggerEvent:
    identity = f"schedule:{model}@{due.isoformat()}"
    return TriggerEvent(identity, EventKind.SCHEDULE, model, due, fire_time=due)
