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
        skipped: The newest time that does not, if there is one.
        reason: Why it does not.
    """

    fired: list[datetime] = field(default_factory=list)
    skipped: list[datetime] = field(default_factory=list)
    reason: str = ""

    def outcomes_of(self, model: str) -> list[Outcome]:
        """Return the outcomes of times that do not fire.

        Args:
            model: The model.

        Returns:
            An outcome for the skipped time, which stands for all before it.
        """
        return [
            Outcome(_identify(model, due), model, OutcomeKind.IGNORED, reason=self.reason)
            for due in self.skipped
        ]


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
    wakes: list[datetime] = []
    for model, subscription in subscriptions.items():
        before = agenda.marks.get(model)
        mark = _continue_mark(model, subscription.cron, before, moment)
        if subscription.cron is not None and mark is not None:
            upcoming = _find_next(subscription.cron, mark.since)
            if upcoming is not None and upcoming <= moment:
                times = _judge_times(subscription, subscription.cron, mark.since, moment)
                events += [_schedule_event(model, due) for due in (*times.fired, *times.skipped)]
                outcomes += times.outcomes_of(model)
                mark = replace(mark, since=max(upcoming, *times.fired, *times.skipped))
                upcoming = _find_next(subscription.cron, mark.since)
            wakes += [upcoming] if upcoming is not None else []
        if mark is not None and mark != before:
            marks.append(mark)
    return Due(tuple(events), tuple(marks), tuple(outcomes), min(wakes, default=None))


@lru_cache(maxsize=65536)  # each decision asks for all models; the answer changes when one is due
def _find_next(cron: Cron, since: datetime) -> datetime | None:
    """Return the first time after another; None for an expression that is never due again."""
    try:
        return cron.next(since)
    except ValueError:
        return None


def _continue_mark(
    model: str, cron: Cron | None, mark: ScheduleMark | None, moment: datetime
) -> ScheduleMark | None:
    """Return the mark from which a schedule goes on.

    The mark of a model that has no schedule any more has no expression. If the schedule comes
    back, that is a change, and the past does not fire.
    """
    if cron is None and mark is None:
        return None
    expression, zone = (cron.expression, cron.zone) if cron is not None else ("", "")
    if mark is None:
        return ScheduleMark(model, expression, zone, moment)
    if (mark.expression, mark.zone) == (expression, zone):
        return mark
    return ScheduleMark(model, expression, zone, max(moment, mark.since))


def _judge_times(
    subscription: Subscription, cron: Cron, since: datetime, moment: datetime
) -> _Times:
    catchup = _resolve_catchup(subscription)
    oldest = moment - GRACE
    times = _Times()
    missed = 0
    for due in _list_times(cron, since, moment):
        if not subscription.is_due_at(due):
            continue
        if due >= oldest:
            times.fired.append(due)
            continue
        obstacle = _OBSTACLES[catchup.mode or ""](catchup, times.fired, missed, moment - due)
        if obstacle is not None:
            times.skipped.append(due)
            times.reason = f"missed while nothing was serving ({obstacle})"
            earlier = cron.floor(due - timedelta.resolution)
            if earlier > since:
                times.reason += f", as all times after {since.isoformat()}"
            break
        times.fired.append(due)
        missed += 1
    return times


def _list_times(cron: Cron, since: datetime, moment: datetime) -> Iterator[datetime]:
    """Return the times after a mark up to a moment, the newest first.

    Mostly there is one, which was looked up when the time before it was decided.
    """
    due = _find_next(cron, since)
    following = None if due is None else _find_next(cron, due)
    if due is None or following is None or following > moment:
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


_OBSTACLES = {
    "none": _refuse_missed,
    "latest": _refuse_all_but_newest,
    "all": _refuse_beyond_limit,
}


def _identify(model: str, due: datetime) -> str:
    return f"schedule:{model}@{due.isoformat()}"


def _schedule_event(model: str, due: datetime) -> TriggerEvent:
    return TriggerEvent(_identify(model, due), EventKind.SCHEDULE, model, due, fire_time=due)
