"""Simulate the scheduler over a span of time, without a real clock, runs or a catalog.

`simulate` calls the same functions as `penstock serve`, with virtual time. A `World` defines how
long runs take, which of them fail, what else happens, when no process serves, and how the clock
jumps. All recorded times are times of the virtual clock.
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
_RETRY_INTERVAL = timedelta(seconds=1)  # until the next decision, if it is due already


@dataclass(frozen=True, slots=True)
class Outage:
    """A period in which no process serves the project. Interrupted runs restart after it.

    Attributes:
        start: When the period begins.
        end: When a process serves again.
    """

    start: datetime
    end: datetime


@dataclass(frozen=True, slots=True)
class ClockJump:
    """A jump of the clock that the scheduler reads.

    Attributes:
        time: When it happens, in uniform time.
        shift: The size of the jump; negative for a jump back.
    """

    time: datetime
    shift: timedelta


def _take_a_minute(_model: str, _key: str) -> timedelta:
    return timedelta(minutes=1)


def _never_fail(_model: str, _key: str, _attempt: int) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class World:
    """The conditions of a simulation.

    Attributes:
        run_time: Returns the duration of a run of a model and a partition.
        arrivals: Changes by other writers, and messages. Each arrives at its time.
        outages: The periods in which no process serves the project.
        jumps: The jumps of the clock.
        has_failed: Returns whether a run fails, by the model, the partition, and the number of the
            run of that slice, from 1 on.
        pauses: The pauses. Each is in force from its ``since`` on.
        slots: The maximum number of concurrent runs.
        backfill_share: The maximum share of the slots for backfills.
    """

    run_time: Callable[[str, str], timedelta] = _take_a_minute
    arrivals: tuple[TriggerEvent, ...] = ()
    outages: tuple[Outage, ...] = ()
    jumps: tuple[ClockJump, ...] = ()
    has_failed: Callable[[str, str, int], bool] = _never_fail
    pauses: tuple[Pause, ...] = ()
    slots: int = 4
    backfill_share: float = 0.5


@dataclass(frozen=True, slots=True)
class PlayedFiring:
    """A firing in a simulation.

    Attributes:
        firing: The firing at the end of the simulation.
        cause: The event that created it.
        starts: When its run started: once, and again after each outage that interrupted it.
        end: When it ended; None if it has not ended.
    """

    firing: Firing
    cause: TriggerEvent
    starts: tuple[datetime, ...] = ()
    end: datetime | None = None


@dataclass(frozen=True, slots=True)
class PlayedEvent:
    """An event in a simulation, with its outcomes.

    Attributes:
        event: The event.
        outcomes: Its outcomes for the models, in the order of the decisions.
    """

    event: TriggerEvent
    outcomes: tuple[Outcome, ...]


@dataclass(frozen=True, slots=True)
class Played:
    """The result of a simulation.

    Attributes:
        firings: The firings, in the order in which they were created.
        events: The events, in the order in which they were decided.
        agenda: The agenda at the end.
        subscriptions: The subscriptions of the simulation.
        decisions: The number of decisions.
    """

    firings: tuple[PlayedFiring, ...]
    events: tuple[PlayedEvent, ...]
    agenda: Agenda
    subscriptions: Mapping[str, Subscription]
    decisions: int


@dataclass(frozen=True, slots=True)
class PlayedRow:
    """A row of the report on a simulation: one firing.

    Attributes:
        time: When its run started; its fire time, if the run did not start.
        model: The name of the model.
        partition: The partition; None for the whole table.
        cause: Why it runs.
        state: Its state, or why it waits or failed.
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
    """Simulate the scheduler from one moment to another.

    Args:
        subscriptions: The subscriptions by model.
        world: The conditions of the simulation.
        start: The first moment. Schedules that are due at this moment fire.
        end: The end. Nothing happens at this moment.
        agenda: The agenda at the start. By default, no firing is open, no schedule has missed a
            time, and tables with a freshness were built at the start.

    Returns:
        The firings and events. The same arguments always give the same result.
    """
    if agenda is None:
        agenda = _create_agenda(subscriptions, start)
    simulation = _Simulation(Index.of(subscriptions), world, start, end, agenda)
    simulation.run()
    return simulation.result()


def explain(played: Played) -> tuple[PlayedRow, ...]:
    """Return the report on a simulation.

    Args:
        played: The result of the simulation.

    Returns:
        A row for each firing, ordered by time.
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
    """Describe why an event fires a model.

    Args:
        event: The event that created a firing.
        subscriptions: The subscriptions by model, with the schedules.

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


def _create_agenda(subscriptions: Mapping[str, Subscription], start: datetime) -> Agenda:
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
class _Run:
    """The run of one firing, with its restarts."""

    starts: list[datetime] = field(default_factory=list)
    end: datetime | None = None


class _Simulation:
    """The state of a running simulation: its time is uniform, but its clock may jump."""

    def __init__(
        self, index: Index, world: World, start: datetime, end: datetime, agenda: Agenda
    ) -> None:
        self._index, self._world, self._end = index, world, end
        self._time = start
        self._agenda = agenda
        self._ages = {(age.model, age.key): age for age in agenda.ages}
        self._arrivals = sorted(world.arrivals, key=lambda event: event.time)
        self._arrival_count = 0  # the number of events that have arrived
        self._published: list[TriggerEvent] = []
        self._next_decision: datetime | None = None  # by the clock
        self._run_ends: dict[str, datetime] = {}  # when the running firings end
        self._attempts: dict[tuple[str, str], int] = {}
        self._firings: dict[str, Firing] = dict(agenda.firings)
        self._runs: dict[str, _Run] = {}
        self._events: dict[str, TriggerEvent] = {}
        self._outcomes: dict[str, list[Outcome]] = {}
        self._numbers, self._snapshots = count(1), count(1)
        self._decisions = 0

    def run(self) -> None:
        """Run the simulation to its end."""
        self._restart_runs()
        while self._time < self._end:
            self._end_runs()
            outage = self._find_outage()
            if outage is not None:
                self._run_ends.clear()
                self._time = outage.end
                self._restart_runs()
                continue
            self._decide()
            self._start_runs()
            self._time = self._find_next_time()

    def result(self) -> Played:
        """Return the result of the simulation.

        Returns:
            The firings and events.
        """
        firings = []
        for firing_id, firing in self._firings.items():
            run = self._runs.get(firing_id, _Run())
            cause = self._events.get(firing.events[0]) if firing.events else None
            cause = cause or TriggerEvent(firing_id, firing.kind, firing.model, firing.fire_time)
            firings.append(PlayedFiring(firing, cause, tuple(run.starts), run.end))
        events = tuple(
            PlayedEvent(event, tuple(self._outcomes.get(event_id, ())))
            for event_id, event in self._events.items()
        )
        return Played(tuple(firings), events, self._agenda, self._index, self._decisions)

    @property
    def _shift(self) -> timedelta:
        jumps = (jump.shift for jump in self._world.jumps if jump.time <= self._time)
        return sum(jumps, timedelta())

    @property
    def _clock(self) -> datetime:
        return self._time + self._shift

    def _find_outage(self) -> Outage | None:
        for outage in self._world.outages:
            if outage.start <= self._time < outage.end:
                return outage
        return None

    def _decide(self) -> None:
        moment = self._clock
        events, self._published = self._published, []
        while self._arrival_count < len(self._arrivals):
            event = self._arrivals[self._arrival_count]
            if event.time > self._time:
                break
            events.append(event)
            self._arrival_count += 1
        for event in events:
            self._age_readers(event)
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
        self._next_decision = decision.wakes_at
        self._decisions += 1

    def _apply(self, decision: Decision) -> None:
        self._firings.update({firing.id: firing for firing in decision.firings})
        self._agenda = apply(self._agenda, decision)

    def _new_id(self) -> str:
        return f"firing-{next(self._numbers):06}"

    def _restart_runs(self) -> None:
        """Restart the runs that an outage has interrupted."""
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
        self._runs.setdefault(firing.id, _Run()).starts.append(self._clock)
        self._run_ends[firing.id] = self._time + self._world.run_time(firing.model, firing.key)

    def _end_runs(self) -> None:
        ended = [item for item in self._run_ends.items() if item[1] <= self._time]
        firings = []
        for firing_id, _ in sorted(ended, key=lambda item: item[1]):
            del self._run_ends[firing_id]
            firing = self._agenda.firings[firing_id]
            slice_key = (firing.model, firing.key)
            attempt = self._attempts[slice_key] = self._attempts.get(slice_key, 0) + 1
            self._runs[firing_id].end = self._clock
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
            self._renew_age(firing)
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

    def _renew_age(self, firing: Firing) -> None:
        """Set the build time of a slice. Keep a change of its inputs that came during the run."""
        old_age = self._ages.get((firing.model, firing.key))
        changed_at = old_age.inputs_changed_at if old_age else None
        if changed_at is not None and changed_at <= self._runs[firing.id].starts[-1]:
            changed_at = None
        age = Age(firing.model, firing.key, self._clock, changed_at)
        self._ages[firing.model, firing.key] = age

    def _age_readers(self, event: TriggerEvent) -> None:
        """Set the change time of the slices that read an asset: of its partition, or of all."""
        if event.kind is not EventKind.ASSET:
            return
        for match in self._index.readers.get(asset_name(event.source), ()):
            reader = match.reader
            is_whole = reader.partition is None or event.partition is None
            for (model, key), age in self._ages.items():
                if model == reader.model and (is_whole or key == event.partition):
                    self._ages[model, key] = replace(age, inputs_changed_at=event.time)

    def _find_next_time(self) -> datetime:
        """Return the next time at which something happens."""
        moments = [self._end, *self._run_ends.values()]
        if self._arrival_count < len(self._arrivals):
            moments.append(self._arrivals[self._arrival_count].time)
        moments += [outage.start for outage in self._world.outages if outage.start > self._time]
        moments += [jump.time for jump in self._world.jumps if jump.time > self._time]
        since = (pause.since - self._shift for pause in self._world.pauses)
        moments += [moment for moment in since if moment > self._time]
        if self._next_decision is not None:
            decides_at = self._next_decision - self._shift
            moments.append(decides_at if decides_at > self._time else self._time + _RETRY_INTERVAL)
        return min(moments)
