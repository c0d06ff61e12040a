"""Play the scheduler over a span of time in a virtual world: no clock, no run, no catalog.

`simulate` calls the functions that `penstock serve` calls, with the time of the world. A world says
how long runs take, which of them fail, what else happens, when nothing serves, and how its clock
jumps. Times that are recorded are those that the clock of the world shows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import count

from penstock.scheduler.choosing import choose_next
from penstock.scheduler.decide import apply, decide
from penstock.scheduler.freshness import late_events
from penstock.scheduler.matching import Index, asset_name
from penstock.scheduler.schedules import due_events
from penstock.scheduler.subscription import Subscription
from penstock.scheduler.values import (
    WHOLE,
    Age,
    Agenda,
    Decision,
    EventKind,
    Firing,
    FiringState,
    Outcome,
    Pause,
    ScheduleMark,
    TriggerEvent,
)

_PRODUCERS = (due_events, late_events)
_LONGEST_STAND = timedelta(seconds=1)  # until the next decision, if one asks for none later


@dataclass(frozen=True, slots=True)
class Outage:
    """A period in which nothing serves. Runs that it interrupts begin again after it.

    Attributes:
        start: When it begins.
        end: When a process serves again.
    """

    start: datetime
    end: datetime


@dataclass(frozen=True, slots=True)
class ClockJump:
    """A jump of the clock that the scheduler reads.

    Attributes:
        time: When it happens, in the time that passes evenly.
        shift: How far; negative for a jump back.
    """

    time: datetime
    shift: timedelta


def _take_a_minute(_model: str, _key: str) -> timedelta:
    return timedelta(minutes=1)


def _succeed(_model: str, _key: str, _attempt: int) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class World:
    """Hold what happens outside of the scheduler.

    Attributes:
        run_time: How long a run of a model and a partition takes.
        arrivals: Changes by others and messages, which are seen at their times.
        outages: When nothing serves.
        jumps: The jumps of the clock.
        has_failed: Whether a run fails; its arguments are the model, the partition, and how often
            that slice has run, this run included.
        pauses: The pauses, from their times on.
        slots: The number of runs at once.
        backfill_share: The share of the slots that backfills have at most.
    """

    run_time: Callable[[str, str], timedelta] = _take_a_minute
    arrivals: tuple[TriggerEvent, ...] = ()
    outages: tuple[Outage, ...] = ()
    jumps: tuple[ClockJump, ...] = ()
    has_failed: Callable[[str, str, int], bool] = _succeed
    pauses: tuple[Pause, ...] = ()
    slots: int = 4
    backfill_share: float = 0.5


@dataclass(frozen=True, slots=True)
class PlayedFiring:
    """A firing in a simulation.

    Attributes:
        firing: The firing as it ended, or stands at the end. Its ``reason`` says why it waits.
        cause: The event that began it.
        starts: When its run started: once, and again after each outage that interrupted it.
        end: When it ended; None if it did not.
    """

    firing: Firing
    cause: TriggerEvent
    starts: tuple[datetime, ...] = ()
    end: datetime | None = None


@dataclass(frozen=True, slots=True)
class PlayedEvent:
    """An event in a simulation, and what became of it.

    Attributes:
        event: The event.
        outcomes: What became of it for each model, in the order of the decisions.
    """

    event: TriggerEvent
    outcomes: tuple[Outcome, ...]


@dataclass(frozen=True, slots=True)
class Played:
    """Hold what happened in a simulation.

    Attributes:
        firings: The firings, in the order in which they began.
        events: The events, in the order in which they were decided.
        agenda: The agenda at the end.
        subscriptions: The subscriptions that were played.
        decisions: The number of decisions.
    """

    firings: tuple[PlayedFiring, ...]
    events: tuple[PlayedEvent, ...]
    agenda: Agenda
    subscriptions: Mapping[str, Subscription]
    decisions: int


@dataclass(frozen=True, slots=True)
class PlayedRow:
    """A run of a simulation, for people.

    Attributes:
        time: When it started; the time that it is for, if it did not start.
        model: The model.
        partition: The partition; None for the whole table.
        cause: Why it runs.
        state: How it ended, or why it waits.
    """

    time: datetime
    model: str
    partition: str | None
    cause: str
    state: str


def simulate(
    subscriptions: Mapping[str, Subscription],
    world: World,
    start: datetime,
    end: datetime,
    agenda: Agenda | None = None,
) -> Played:
    """Play the scheduler from one moment to another.

    Args:
        subscriptions: The subscriptions by model.
        world: What happens outside of the scheduler.
        start: The first moment. Schedules that are due at it fire.
        end: The moment after the last.
        agenda: The agenda at the start. Without one, no firing is open, no schedule has missed a
            time, and tables with a freshness were built at the start.

    Returns:
        Firings and events. The same arguments have the same result.
    """
    if agenda is None:
        agenda = _begin_agenda(subscriptions, start)
    play = _Play(Index.of(subscriptions), world, start, end, agenda)
    play.run()
    return play.result()


def explain(played: Played) -> tuple[PlayedRow, ...]:
    """Return the runs of a simulation for people.

    Args:
        played: The simulation.

    Returns:
        A row for each firing, in the order of time.
    """
    rows = [
        PlayedRow(
            item.starts[0] if item.starts else item.firing.fire_time,
            item.firing.model,
            item.firing.partition,
            describe_cause(item.cause, played.subscriptions),
            item.firing.reason or item.firing.state.value,
        )
        for item in played.firings
    ]
    return tuple(sorted(rows, key=lambda row: row.time))


def describe_cause(event: TriggerEvent, subscriptions: Mapping[str, Subscription]) -> str:
    """Return why an event fires a model, in words.

    Args:
        event: The event that began a firing.
        subscriptions: The subscriptions by model, which have the schedules.

    Returns:
        ``schedule 0 6 * * *``, ``main.main.orders changed``, and the like.
    """
    return _CAUSES[event.kind](event, subscriptions.get(event.source))


def _describe_schedule(_event: TriggerEvent, subscription: Subscription | None) -> str:
    cron = subscription.cron if subscription else None
    if cron is None:
        return "schedule"
    return f"schedule {cron.expression}" + (f" ({cron.zone})" if cron.zone != "UTC" else "")


def _describe_lateness(_event: TriggerEvent, subscription: Subscription | None) -> str:
    freshness = subscription.freshness if subscription else None
    return "late" if freshness is None else f"late: older than {freshness}"


_CAUSES: dict[EventKind, Callable[[TriggerEvent, Subscription | None], str]] = {
    EventKind.ASSET: lambda event, _: f"{event.source} changed",
    EventKind.SCHEDULE: _describe_schedule,
    EventKind.MESSAGE: lambda event, _: f"message {event.source}",
    EventKind.FRESHNESS: _describe_lateness,
    EventKind.BACKFILL: lambda event, _: f"backfill {event.backfill or event.id}",
}


def _begin_agenda(subscriptions: Mapping[str, Subscription], start: datetime) -> Agenda:
    before = start - timedelta.resolution
    marks = {
        model: ScheduleMark(model, reader.cron.expression, reader.cron.zone, before)
        for model, reader in subscriptions.items()
        if reader.cron is not None
    }
    ages = tuple(
        Age(model, WHOLE, start)
        for model, reader in subscriptions.items()
        if reader.freshness is not None and reader.partition is None
    )
    return Agenda(marks=marks, ages=ages)


@dataclass(slots=True)
class _Record:
    """The attempts of one firing."""

    starts: list[datetime] = field(default_factory=list)
    end: datetime | None = None


class _Play:
    """The state of a simulation while it is played. Its time passes evenly; its clock may jump."""

    def __init__(
        self, index: Index, world: World, start: datetime, end: datetime, agenda: Agenda
    ) -> None:
        self._index, self._world, self._end = index, world, end
        self._time = start
        self._agenda = agenda
        self._ages = {(age.model, age.key): age for age in agenda.ages}
        self._arrivals = sorted(world.arrivals, key=lambda event: event.time)
        self._arrived = 0
        self._published: list[TriggerEvent] = []
        self._wakes_at: datetime | None = None  # by the clock
        self._running: dict[str, datetime] = {}  # when each ends
        self._attempts: dict[tuple[str, str], int] = {}
        self._firings: dict[str, Firing] = dict(agenda.firings)
        self._records: dict[str, _Record] = {}
        self._events: dict[str, TriggerEvent] = {}
        self._outcomes: dict[str, list[Outcome]] = {}
        self._numbers, self._snapshots = count(1), count(1)
        self._decisions = 0

    def run(self) -> None:
        """Play until the end."""
        self._resume()
        while self._time < self._end:
            self._end_runs()
            outage = self._outage()
            if outage is not None:
                self._running.clear()
                self._time = outage.end
                self._resume()
                continue
            self._decide()
            self._start_runs()
            self._time = self._next_time()

    def result(self) -> Played:
        """Return what has happened.

        Returns:
            Firings and events.
        """
        firings = []
        for identity, firing in self._firings.items():
            record = self._records.get(identity, _Record())
            cause = self._events.get(firing.events[0]) if firing.events else None
            cause = cause or TriggerEvent(identity, firing.kind, firing.model, firing.fire_time)
            firings.append(PlayedFiring(firing, cause, tuple(record.starts), record.end))
        events = tuple(
            PlayedEvent(event, tuple(self._outcomes.get(identity, ())))
            for identity, event in self._events.items()
        )
        return Played(tuple(firings), events, self._agenda, self._index, self._decisions)

    @property
    def _shift(self) -> timedelta:
        jumps = (jump.shift for jump in self._world.jumps if jump.time <= self._time)
        return sum(jumps, timedelta())

    @property
    def _clock(self) -> datetime:
        return self._time + self._shift

    def _outage(self) -> Outage | None:
        for outage in self._world.outages:
            if outage.start <= self._time < outage.end:
                return outage
        return None

    def _decide(self) -> None:
        moment = self._clock
        events, self._published = self._published, []
        while self._arrived < len(self._arrivals):
            event = self._arrivals[self._arrived]
            if event.time > self._time:
                break
            events.append(event)
            self._arrived += 1
        for event in events:
            self._note_change(event)
        self._agenda = replace(
            self._agenda,
            ages=tuple(self._ages.values()),
            pauses=tuple(pause for pause in self._world.pauses if pause.since <= moment),
        )
        decision = decide(
            self._index, self._agenda, events, moment, self._new_id, producers=_PRODUCERS
        )
        self._events.update({event.id: event for event in (*events, *decision.events)})
        for outcome in decision.outcomes:
            self._outcomes.setdefault(outcome.event, []).append(outcome)
        self._apply(decision)
        self._wakes_at = decision.wakes_at
        self._decisions += 1

    def _apply(self, decision: Decision) -> None:
        self._firings.update({firing.id: firing for firing in decision.firings})
        self._agenda = apply(self._agenda, decision)

    def _new_id(self) -> str:
        return f"firing-{next(self._numbers):06}"

    def _resume(self) -> None:
        """Begin the runs again that were running when the process ended."""
        for firing in self._agenda.firings.values():
            if firing.state is FiringState.RUNNING:
                self._start(firing)

    def _start_runs(self) -> None:
        world = self._world
        chosen = choose_next(self._agenda, self._index, world.slots, world.backfill_share)
        running = tuple(replace(firing, state=FiringState.RUNNING) for firing in chosen)
        if running:
            self._apply(Decision(running))
        for firing in running:
            self._start(firing)

    def _start(self, firing: Firing) -> None:
        self._records.setdefault(firing.id, _Record()).starts.append(self._clock)
        self._running[firing.id] = self._time + self._world.run_time(firing.model, firing.key)

    def _end_runs(self) -> None:
        ended = [item for item in self._running.items() if item[1] <= self._time]
        firings = []
        for identity, _ in sorted(ended, key=lambda item: item[1]):
            del self._running[identity]
            firing = self._agenda.firings[identity]
            slice_key = (firing.model, firing.key)
            attempt = self._attempts[slice_key] = self._attempts.get(slice_key, 0) + 1
            self._records[identity].end = self._clock
            if self._world.has_failed(*slice_key, attempt):
                firings.append(replace(firing, state=FiringState.FAILED, reason="failed"))
            else:
                firings.append(replace(firing, state=FiringState.DONE))
                self._publish(firing)
        if firings:
            self._apply(Decision(tuple(firings)))

    def _publish(self, firing: Firing) -> None:
        reader = self._index.get(firing.model)
        if reader is None:
            return
        if reader.freshness is not None:
            self._note_build(firing)
        if reader.target is None:
            return
        snapshot = next(self._snapshots)
        self._published.append(
            TriggerEvent(
                f"asset:{reader.target}@{snapshot}",
                EventKind.ASSET,
                reader.target,
                self._clock,
                partition=firing.partition,
                snapshot_id=snapshot,
                run_id=firing.id,
                fire_time=firing.fire_time,
                depth=firing.depth + 1,
                models=(*firing.models, firing.model),
            )
        )

    def _note_build(self, firing: Firing) -> None:
        """Renew the age of a slice. A change of its inputs during the run stays one."""
        before = self._ages.get((firing.model, firing.key))
        changed_at = before.inputs_changed_at if before else None
        if changed_at is not None and changed_at <= self._records[firing.id].starts[-1]:
            changed_at = None
        age = Age(firing.model, firing.key, self._clock, changed_at)
        self._ages[firing.model, firing.key] = age

    def _note_change(self, event: TriggerEvent) -> None:
        """Age the slices that read an asset: those of its partition, or all of them."""
        if event.kind is not EventKind.ASSET:
            return
        for match in self._index.readers.get(asset_name(event.source), ()):
            reader = match.reader
            is_whole = reader.partition is None or event.partition is None
            for (model, key), age in self._ages.items():
                if model == reader.model and (is_whole or key == event.partition):
                    self._ages[model, key] = replace(age, inputs_changed_at=event.time)

    def _next_time(self) -> datetime:
        """Return when something happens next."""
        moments = [self._end, *self._running.values()]
        if self._arrived < len(self._arrivals):
            moments.append(self._arrivals[self._arrived].time)
        moments += [outage.start for outage in self._world.outages if outage.start > self._time]
        moments += [jump.time for jump in self._world.jumps if jump.time > self._time]
        since = (pause.since - self._shift for pause in self._world.pauses)
        moments += [moment for moment in since if moment > self._time]
        if self._wakes_at is not None:
            wakes_at = self._wakes_at - self._shift
            moments.append(wakes_at if wakes_at > self._time else self._time + _LONGEST_STAND)
        return min(moments)
