"""Serve a project: look, decide, record, run, again and again, while this process leads.

A round sees what has happened, decides, and records the decision with the events and the positions
behind them in one transaction. What a process that dies has not recorded is seen again.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Protocol

from penstock.errors import ClaimLost, PenstockError
from penstock.scheduler.choosing import choose_next
from penstock.scheduler.decide import Producer, apply, decide
from penstock.scheduler.values import Agenda, Decision, Firing, FiringState, TriggerEvent
from penstock.uuid7 import new_uuid7

if TYPE_CHECKING:
    from penstock.scheduler.values import Age
    from penstock.server.agenda_store import AgendaStore
    from penstock.server.firing_pool import FiringPool
    from penstock.server.firing_runner import FiringEnd
    from penstock.server.served_project import ServedProject

LOG = logging.getLogger("penstock.serve")
_MOST_EVENTS = 1_000  # that one round decides about
_BEAT = 10.0  # seconds between two signs of life of firings that run
LEASE = 30.0  # seconds after the last of which another process takes a firing over


@dataclass(frozen=True, slots=True)
class Sighting:
    """What a watch saw since its last look.

    Attributes:
        events: What happened.
        positions: Of each reader and source, the snapshot up to which the events go.
    """

    events: tuple[TriggerEvent, ...] = ()
    positions: tuple[tuple[str, str, int], ...] = ()


class Watch(Protocol):
    """Sees what happens outside of the catalog of the agenda."""

    def look(self) -> Sighting:
        """Return what has happened since the last position that was recorded."""


@dataclass(frozen=True, slots=True)
class ServiceSettings:
    """Settings of the service.

    Attributes:
        poll: Seconds between two rounds in which nothing happens.
        backfill_share: The share of the slots that backfills take at most.
        drain_timeout: Seconds that running firings have to end at a stop.
        idle_timeout: Seconds without a firing after which Spark is released; None for never.
    """

    poll: float = 1.0
    backfill_share: float = 0.5
    drain_timeout: float = 60.0
    idle_timeout: float | None = 600.0


@dataclass
class Service:
    """Serves one project in this process.

    Attributes:
        project: The project.
        store: The agenda in the catalog.
        pool: Runs firings.
        watches: See what happens.
        producers: Make events of the time: schedules that are due, tables that are late.
        settings: The settings.
        read_ages: Returns how old slices are of models with a ``freshness``.
        release: Releases Spark after the idle time.
        clock: Returns the time.
        wakened: Set when a round is due at once.
        stopped: Set when the service is to end.
        last_error: The last error, for /health.
        last_round: When the last round ended, by the clock.
    """

    project: ServedProject
    store: AgendaStore
    pool: FiringPool
    watches: Sequence[Watch]
    producers: Sequence[Producer] = ()
    settings: ServiceSettings = field(default_factory=ServiceSettings)
    read_ages: Callable[[], tuple[Age, ...]] = tuple
    release: Callable[[], None] = lambda: None
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    wakened: threading.Event = field(default_factory=threading.Event)
    stopped: threading.Event = field(default_factory=threading.Event)
    last_error: str | None = None
    last_round: datetime | None = None
    _wakes_at: datetime | None = None
    _beat_at: float = 0.0
    _busy_at: float = field(default_factory=time.monotonic)
    _is_released: bool = True

    def wake(self) -> None:
        """Begin the next round at once."""
        self.wakened.set()

    def stop(self) -> None:
        """Let the service end after this round."""
        self.stopped.set()
        self.wakened.set()

    def lead(self, fence: int, lost: threading.Event) -> None:
        """Serve until the service is stopped or another process leads.

        Args:
            fence: The number of the lease, checked in each transaction of a decision.
            lost: Set when another process may lead.
        """
        self.recover()
        while not self.stopped.is_set() and not lost.is_set():
            self.wakened.clear()
            try:
                wait = self.play_round(fence)
            except ClaimLost:
                LOG.warning("another process leads")
                break
            except PenstockError as error:
                self.last_error = str(error)
                LOG.error("round failed: %s", error)
                wait = self.settings.poll
            self.wakened.wait(wait)
        self._drain()

    def recover(self) -> None:
        """Queue again what a process that died was running."""
        for firing in self.store.orphans(self.clock(), LEASE):
            if firing.id not in self.pool.running:
                LOG.warning("%s lost its process: firing %s runs again", firing.model, firing.id)
                self.store.requeue(firing.id)

    def play_round(self, fence: int) -> float:
        """Look, decide, record and run once.

        Args:
            fence: The number of the lease.

        Returns:
            The seconds until the next round, if nothing wakes it before.

        Raises:
            ClaimLost: Another process leads.
        """
        if self.project.refresh():
            LOG.info("loaded the project again")
            self._wakes_at = None
        self._record_ends()
        self._keep_alive()
        sightings = [watch.look() for watch in self.watches]
        events = [event for sighting in sightings for event in sighting.events]
        events += self.store.undecided(_MOST_EVENTS)
        positions = [position for sighting in sightings for position in sighting.positions]
        moment = self.clock()
        if events or positions or self._is_due(moment):
            agenda = self._decide(events, positions, moment, fence)
            self._start(agenda)
        self._release_if_idle()
        self.last_round = self.clock()
        return self._wait_time(moment)

    def _is_due(self, moment: datetime) -> bool:
        return self._wakes_at is None or moment >= self._wakes_at or self._has_work

    _has_work: bool = False

    def _decide(
        self,
        events: Collection[TriggerEvent],
        positions: Collection[tuple[str, str, int]],
        moment: datetime,
        fence: int,
    ) -> Agenda:
        agenda = replace(self.store.load(), ages=self.read_ages())
        chained = [self._with_chain(event) for event in events]
        subscriptions = self.project.version.subscriptions
        decision = decide(subscriptions, agenda, chained, moment, new_uuid7, self.producers)
        if _says_something(decision) or events or positions:
            self.store.record([*chained, *decision.events], decision, positions, fence=fence)
            for outcome in decision.outcomes:
                LOG.info(
                    "event %s: %s %s%s",
                    outcome.event,
                    outcome.kind.value,
                    outcome.model,
                    f" ({outcome.reason})" if outcome.reason else "",
                )
        self._wakes_at = decision.wakes_at or moment + timedelta(hours=1)
        return apply(agenda, decision)

    def _with_chain(self, event: TriggerEvent) -> TriggerEvent:
        """Return the event with the chain of the firing whose run published it."""
        if event.run_id is None or event.models:
            return event
        firing = self.store.firing_of_run(event.run_id)
        if firing is None:
            return event
        models = (*firing.models, firing.model)
        depth = firing.depth + 1
        return replace(event, fire_time=firing.fire_time, depth=depth, models=models)

    def _start(self, agenda: Agenda) -> None:
        subscriptions = self.project.version.subscriptions
        slots, share = self.pool.slots, self.settings.backfill_share
        chosen = choose_next(agenda, subscriptions, slots, share)
        queued = [one for one in agenda.firings.values() if one.state is FiringState.QUEUED]
        self._has_work = len(queued) > len(chosen)
        if not chosen:
            return
        self.store.start([firing.id for firing in chosen])
        for firing in chosen:
            LOG.info("starts %s %s (%s)", firing.model, firing.key, firing.kind.value)
            self.pool.start(replace(firing, state=FiringState.RUNNING))
        self._busy_at, self._is_released = time.monotonic(), False

    def _record_ends(self) -> None:
        for end in self.pool.take_ends():
            self._record_end(end)
            self._wakes_at = None  # what waited for it may run

    def _record_end(self, end: FiringEnd) -> None:
        firing: Firing = end.firing
        self._busy_at = time.monotonic()
        if firing.state is FiringState.CANCELLED and self.stopped.is_set():
            self.store.requeue(firing.id)  # the next process carries on with its run
            return
        self.store.finish(firing.id, firing.state, firing.reason)
        if firing.state is FiringState.FAILED:
            self.last_error = f"{firing.model}: {firing.reason}"
        LOG.info("ended %s %s: %s", firing.model, firing.key, firing.state.value)

    def _keep_alive(self) -> None:
        if self.pool.running and time.monotonic() - self._beat_at > _BEAT:
            self.store.beat(list(self.pool.running))
            self._beat_at = time.monotonic()

    def _release_if_idle(self) -> None:
        idle = self.settings.idle_timeout
        if self.pool.running:
            self._busy_at = time.monotonic()
        elif idle is not None and not self._is_released and time.monotonic() - self._busy_at > idle:
            LOG.info("idle: Spark is released")
            self.release()
            self._is_released = True

    def _wait_time(self, moment: datetime) -> float:
        if self._wakes_at is None:
            return self.settings.poll
        return max(0.0, min(self.settings.poll, (self._wakes_at - moment).total_seconds()))

    def _drain(self) -> None:
        if self.pool.running:
            LOG.info("waits for %d firings", len(self.pool.running))
        if not self.pool.drain(self.settings.drain_timeout):
            LOG.warning("firings were stopped after %s s", self.settings.drain_timeout)
        self._record_ends()


def _says_something(decision: Decision) -> bool:
    parts = (decision.firings, decision.outcomes, decision.marks, decision.freshness)
    return any(parts) or bool(decision.events)
