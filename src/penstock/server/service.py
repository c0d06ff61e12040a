"""Serve a project: look, decide, record and run, round after round, while this process leads.

A round sees what has happened, decides, and records the decision with the events and the positions
behind them in item transaction. What a process that dies has not recorded is seen again.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Protocol

from penstock.errors import ClaimLost, PenstockError
from penstock.scheduler.choosing import choose_next
from penstock.scheduler.decide import Producer, apply, decide
from penstock.scheduler.values import Agenda, Decision, FiringState, TriggerEvent
from penstock.server.backfill_store import BackfillState
from penstock.uuid7 import new_uuid7

if TYPE_CHECKING:
    from penstock.scheduler.values import Age, Firing, Outcome
    from penstock.server.agenda_store import AgendaStore
    from penstock.server.firing_pool import FiringPool
    from penstock.server.firing_runner import FiringEnd
    from penstock.server.served_project import ServedProject
    from penstock.server.watching import Sighting

LOG = logging.getLogger("penstock.serve")
_MOST_EVENTS = 1_000  # that item round decides about
_BEAT = 10.0  # seconds between two signs of life of firings that run
_LOOK = 2.0  # seconds between two looks at whether a person has cancelled what runs


class Watch(Protocol):
    """Sees what happens outside of the agenda."""

    def look(self) -> Sighting:
        """Look at what has happened since the positions that are recorded.

        Returns:
            The events, and what to remember of them.
        """
        ...


class Listener(Protocol):
    """Receives what the service does, for metrics and notifications."""

    def decided(self, outcomes: Sequence[Outcome]) -> None:
        """Receive the outcomes of a round.

        Args:
            outcomes: The outcomes.
        """

    def ended(self, end: FiringEnd) -> None:
        """Receive the end of a firing.

        Args:
            end: The end.
        """


class Chore(Protocol):
    """Does something from time to time, apart from decisions."""

    def __call__(self, moment: datetime, /) -> None:
        """Do it, if it is time.

        Args:
            moment: The time.
        """


@dataclass(frozen=True, slots=True)
class ServiceSettings:
    """Settings of the service.

    Attributes:
        poll: Seconds between two rounds in which nothing happens.
        backfill_share: The share of the slots that backfills take at most.
        drain_timeout: Seconds that running firings have to end at a stop; None for any time.
        idle_timeout: Seconds without a firing after which Spark is released; None for never.
        is_once: Whether it firing_ends when nothing is open any more.
    """

    poll: float = 1.0
    backfill_share: float = 0.5
    drain_timeout: float | None = 60.0
    idle_timeout: float | None = 600.0
    is_once: bool = False


@dataclass
class Service:
    """Serves item project in this process.

    Attributes:
        project: The project.
        store: The agenda in the catalog.
        pool: Runs firings.
        watches: See what happens.
        producers: Make events of the time: schedules that are due, tables that are late.
        settings: The settings.
        read_ages: Returns how old slices are of models with a ``freshness``.
        has_begun: Returns whether the run of a firing was recorded.
        original_of: Returns the run that a run retried, at the end of the chain.
        release: Releases Spark after the idle time.
        reloaded: Is called when the project was loaded again.
        listeners: Receive what the service does.
        chores: Are done at the end of each round.
        clock: Returns the time.
        last_error: The last error, for /health.
    """

    project: ServedProject
    store: AgendaStore
    pool: FiringPool
    watches: Sequence[Watch]
    producers: Sequence[Producer] = ()
    settings: ServiceSettings = field(default_factory=ServiceSettings)
    read_ages: Callable[[], tuple[Age, ...]] = tuple
    has_begun: Callable[[str], bool] = lambda _: False
    original_of: Callable[[str], str] = lambda run_id: run_id
    release: Callable[[], None] = lambda: None
    reloaded: Callable[[], None] = lambda: None
    listeners: Sequence[Listener] = ()
    chores: Sequence[Chore] = ()
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    last_error: str | None = None
    _wakened: threading.Event = field(default_factory=threading.Event)
    _stopped: threading.Event = field(default_factory=threading.Event)
    _wakes_at: datetime | None = None
    _beat_at: float = 0.0
    _busy_at: float = field(default_factory=time.monotonic)
    _is_released: bool = True
    _has_queue: bool = False

    @property
    def is_stopped(self) -> bool:
        """Return whether the service is to end."""
        return self._stopped.is_set()

    def wake(self) -> None:
        """Begin the next round at once."""
        self._wakened.set()

    def stop(self) -> None:
        """Let the service end after this round."""
        self._stopped.set()
        self._wakened.set()

    def wait(self, seconds: float) -> None:
        """Wait until the service is stopped, or for some seconds.

        Args:
            seconds: How long to wait at most.
        """
        self._stopped.wait(seconds)

    def lead(self, fence: int, is_lost: threading.Event) -> None:
        """Serve until the service is stopped or another process leads.

        Args:
            fence: The number of the lease, checked in the transaction of each decision.
            is_lost: Set when another process may lead.
        """
        self._wakes_at = None
        self.recover()
        while not self._stopped.is_set() and not is_lost.is_set():
            self._wakened.clear()
            try:
                wait = self.play_round(fence)
            except ClaimLost as error:
                LOG.warning("%s", error)
                break
            except PenstockError as error:
                self.last_error = str(error)
                LOG.error("a round failed: %s", error)
                wait = self.settings.poll
            if self.settings.is_once and self._is_idle():
                self.stop()
                break
            self._wakened.wait(wait)
        self._drain()

    def recover(self) -> None:
        """Carry on with what a process that died was running."""
        for firing in self.store.orphans():
            if firing.id in self.pool.running:
                continue
            if not self.has_begun(firing.id):
                self.store.requeue(firing.id)
            elif self.store.take_over(firing.id):
                LOG.warning("%s %s goes on: its process has ended", firing.model, firing.key)
                self._run(firing)

    def play_round(self, fence: int) -> float:
        """Look, decide, record and run once.

        Args:
            fence: The number of the lease.

        Returns:
            The seconds until the next round, if nothing wakes it before.
        """
        if self.project.refresh():
            LOG.info("the project was loaded again")
            self.reloaded()
            self._wakes_at = None
        has_ends = self._record_ends()
        self._keep_alive()
        sightings = [watch.look() for watch in self.watches]
        events = [event for sighting in sightings for event in sighting.events]
        accepted = self.store.undecided(_MOST_EVENTS)
        moment = self.clock()
        has_news = bool(events or accepted) or any(map(_has_memory, sightings))
        if has_news or has_ends or self._has_queue or self._is_due(moment):
            self._decide([*events, *accepted], sightings, moment, fence)
        self._do_chores(moment)
        self._release_if_idle()
        return self._wait_time(self.clock(), has_more=len(accepted) == _MOST_EVENTS)

    def _do_chores(self, moment: datetime) -> None:
        for chore in self.chores:
            try:
                chore(moment)
            except PenstockError as error:  # decisions go on without it
                LOG.error("%s", error)

    def _is_due(self, moment: datetime) -> bool:
        return self._wakes_at is None or moment >= self._wakes_at

    def _decide(
        self,
        events: Sequence[TriggerEvent],
        sightings: Sequence[Sighting],
        moment: datetime,
        fence: int,
    ) -> None:
        agenda = replace(self.store.load(), ages=self.read_ages())
        chained = [self._with_chain(event) for event in events]
        subscriptions = self.project.version.subscriptions
        decision = decide(
            subscriptions, agenda, chained, moment, new_uuid7, producers=self.producers
        )
        positions = [position for sighting in sightings for position in sighting.positions]
        if has_content(decision) or events or positions:
            every = [*chained, *decision.events]
            if not self.store.record(every, decision, positions, fence=fence):
                self._wakes_at = None  # a firing has started or ended meanwhile: decide again
                self.wake()
                return
            self._tell(decision)
        for sighting in sightings:
            if sighting.files is not None:
                self.store.remember_files(sighting.files)
        self._wakes_at = decision.wakes_at or moment + timedelta(hours=1)
        self._start(apply(agenda, decision))

    def _tell(self, decision: Decision) -> None:
        for outcome in decision.outcomes:
            reason = f" ({outcome.reason})" if outcome.reason else ""
            LOG.info("%s: %s %s%s", outcome.event, outcome.kind.value, outcome.model, reason)
        for listener in self.listeners:
            listener.decided(decision.outcomes)

    def _with_chain(self, event: TriggerEvent) -> TriggerEvent:
        """Return the event with the chain of the firing whose run published it."""
        if event.run_id is None or event.models:
            return event
        record = self.store.firing(self.original_of(event.run_id))
        if record is None:
            return event
        firing = record.firing
        models = (*firing.models, firing.model)
        depth = firing.depth + 1
        return replace(event, fire_time=firing.fire_time, depth=depth, models=models)

    def _start(self, agenda: Agenda) -> None:
        subscriptions = self.project.version.subscriptions
        ready = self._without_paused(agenda)
        chosen = choose_next(ready, subscriptions, self.pool.slots, self.settings.backfill_share)
        queued = [item for item in ready.firings.values() if item.state is FiringState.QUEUED]
        self._has_queue = False
        if chosen:
            started = set(self.store.start([firing.id for firing in chosen]))
            for firing in chosen:
                if firing.id in started:
                    self._run(firing)
        if len(queued) > len(chosen):
            LOG.debug("%d firings wait for a slot", len(queued) - len(chosen))

    def _without_paused(self, agenda: Agenda) -> Agenda:
        """Return the agenda without the queued firings of backfills that are paused."""
        if not any(firing.backfill for firing in agenda.firings.values()):
            return agenda
        paused = {
            item.backfill.id
            for item in self.store.backfills()
            if item.backfill.state is not BackfillState.ACTIVE
        }
        firings = {
            key: firing
            for key, firing in agenda.firings.items()
            if firing.state is FiringState.RUNNING or firing.backfill not in paused
        }
        return replace(agenda, firings=firings)

    def _run(self, firing: Firing) -> None:
        LOG.info("starts %s %s (%s)", firing.model, firing.key, firing.kind.value)
        self.pool.start(replace(firing, state=FiringState.RUNNING))
        self._busy_at, self._is_released = time.monotonic(), False

    def _record_ends(self) -> bool:
        firing_ends = self.pool.take_ends()
        for end in firing_ends:
            self._record_end(end)
        return bool(firing_ends)

    def _record_end(self, end: FiringEnd) -> None:
        firing = end.firing
        self._busy_at = time.monotonic()
        if self.is_stopped and (firing.state is FiringState.CANCELLED or end.has_lost_spark):
            return  # it stays a running item: the next process carries on with its run
        if firing.state is FiringState.CANCELLED and firing.backfill is not None:
            firing = replace(firing, reason="its backfill was cancelled")
        self.store.finish(firing.id, firing.state, firing.reason)
        if firing.backfill is not None:
            self._end_backfill(firing.backfill)
        if firing.state is FiringState.FAILED:
            self.last_error = f"{firing.model}: {firing.reason}"
        reason = f" ({firing.reason})" if firing.reason else ""
        LOG.info("ended %s %s: %s%s", firing.model, firing.key, firing.state.value, reason)
        for listener in self.listeners:
            listener.ended(end)

    def _end_backfill(self, backfill_id: str) -> None:
        """End a backfill whose firings have all ended."""
        progress = next(
            (item for item in self.store.backfills() if item.backfill.id == backfill_id), None
        )
        if progress is not None and not any(state.is_open for state in progress.firings):
            self.store.set_backfill_state(backfill_id, BackfillState.DONE)

    def _stop_cancelled(self) -> None:
        """Stop the firings of backfills that a person has cancelled."""
        running = [firing for firing in self.pool.running.values() if firing.backfill is not None]
        if not running:
            return
        ids = {firing.backfill for firing in running if firing.backfill is not None}
        cancelled = self.store.cancelled_backfills(ids)
        for firing in running:
            if firing.backfill in cancelled:
                self.pool.cancel(firing.id)

    def _keep_alive(self) -> None:
        self._stop_cancelled()
        if self.pool.running and time.monotonic() - self._beat_at > _BEAT:
            alive = set(self.store.beat(list(self.pool.running)))
            for firing_id in self.pool.running.keys() - alive:  # somebody has cancelled it
                self.pool.cancel(firing_id)
            self._beat_at = time.monotonic()

    def _release_if_idle(self) -> None:
        idle = self.settings.idle_timeout
        if self.pool.running:
            self._busy_at = time.monotonic()
        elif idle is not None and not self._is_released and time.monotonic() - self._busy_at > idle:
            LOG.info("nothing has run for %.0f s: Spark is released", idle)
            self.release()
            self._is_released = True

    def _wait_time(self, moment: datetime, *, has_more: bool) -> float:
        if has_more:
            return 0.0
        longest = min(self.settings.poll, _LOOK) if self.pool.running else self.settings.poll
        if self._wakes_at is None:
            return longest
        return max(0.0, min(longest, (self._wakes_at - moment).total_seconds()))

    def _is_idle(self) -> bool:
        return not self.pool.running and not self.store.load().firings

    def _drain(self) -> None:
        if self.pool.running:
            LOG.info("waits for %d firings to end", len(self.pool.running))
        if not self.pool.drain(self.settings.drain_timeout):
            LOG.warning("firings were stopped; the next process carries on with them")
        self._record_ends()


def has_content(decision: Decision) -> bool:
    """Return whether a decision changes anything.

    Args:
        decision: The decision.

    Returns:
        False if there is nothing to record.
    """
    parts = (
        decision.firings,
        decision.events,
        decision.outcomes,
        decision.marks,
        decision.freshness,
    )
    return any(parts)


def _has_memory(sighting: Sighting) -> bool:
    return bool(sighting.positions) or sighting.files is not None
