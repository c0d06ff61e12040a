"""Serve a project: look, decide, record and run, round after round, while this process leads.

A round sees what has happened, decides, and records the decision with the events and the positions
behind them in one transaction. What a process that dies has not recorded is seen again.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Protocol

from penstock.engine.state.records import this_process
from penstock.errors import ClaimLost, PenstockError
from penstock.scheduler.choosing import choose_next
from penstock.scheduler.decide import Producer, apply, decide
from penstock.scheduler.values import Agenda, Decision, EventKind, FiringState, TriggerEvent
from penstock.server.backfill_store import BackfillState
from penstock.uuid7 import Uuid7Sequence

if TYPE_CHECKING:
    from penstock.scheduler.values import Age, Firing, Outcome
    from penstock.server.agenda_store import AgendaStore
    from penstock.server.firing_pool import FiringPool
    from penstock.server.firing_runner import FiringEnd
    from penstock.server.served_project import ServedProject
    from penstock.server.watching import Sighting

LOG = logging.getLogger("penstock.serve")
_MOST_EVENTS = 1_000  # that one round decides about
_MOST_WAITING = 200  # of the newest firings of a model, which may have waited for an input
_CHANGES = frozenset({EventKind.ASSET, EventKind.FRESHNESS})  # kinds of firings for changed inputs
_BEAT = 10.0  # seconds between two signs of life of firings that run
_LOOK = 2.0  # seconds between two looks at what others have done to the agenda


class Watch(Protocol):
    """Sees what happens outside of the agenda."""

    def look(self) -> Sighting:
        """Look at what has happened since the positions that are recorded.

        Returns:
            The events, and what to remember of them.
        """
        ...

    def forget(self) -> None:
        """See again at the next look what was not recorded."""
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
        is_once: Whether it ends when nothing is open any more but what waits for inputs or a pause.
    """

    poll: float = 1.0
    backfill_share: float = 0.5
    drain_timeout: float | None = 60.0
    idle_timeout: float | None = 600.0
    is_once: bool = False


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
        has_begun: Returns whether the run of a firing was recorded.
        original_of: Returns the run that a run retried, at the end of the chain.
        release: Releases Spark after the idle time.
        interrupt: Stops all jobs in Spark.
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
    interrupt: Callable[[], None] = lambda: None
    reloaded: Callable[[], None] = lambda: None
    listeners: Sequence[Listener] = ()
    chores: Sequence[Chore] = ()
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    last_error: str | None = None
    _new_id: Uuid7Sequence = field(default_factory=Uuid7Sequence)  # the order of the events
    _wakened: threading.Event = field(default_factory=threading.Event)
    _stopped: threading.Event = field(default_factory=threading.Event)
    _wakes_at: datetime | None = None
    _beat_at: float = 0.0
    _looked_at: float | None = None
    _holds: object = None  # by people: pauses, and states of backfills
    _unrecorded: list[FiringEnd] = field(default_factory=list)
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
        self._looked_at = None
        self._forget()  # another process may have led meanwhile
        while not self._stopped.is_set() and not is_lost.is_set():
            self._wakened.clear()
            try:
                wait = self.play_round(fence)
                if self.settings.is_once and self._is_idle():
                    self.stop()
            except ClaimLost as error:
                LOG.warning("%s", error)
                is_lost.set()
            except PenstockError as error:
                wait = self.settings.poll
                self._tell_error("a round failed", error)
            if not self._stopped.is_set() and not is_lost.is_set():
                self._wakened.wait(wait)

    def follow(self) -> None:
        """Look after the firings that run here while another process leads."""
        try:
            self._record_ends()
            self._keep_alive()
        except PenstockError as error:
            self._tell_error("firings cannot be recorded", error)

    def drain(self) -> None:
        """Let the firings that run here end; stop those that do not end in time."""
        if self.pool.running:
            LOG.info("waits for firings to end: %d", len(self.pool.running))
        seconds, begin = self.settings.drain_timeout, time.monotonic()
        while not self.pool.wait(min(1.0, _BEAT if seconds is None else seconds)):
            self.follow()
            if seconds is not None and time.monotonic() - begin >= seconds:
                if not self.pool.drain(0, self.interrupt):
                    LOG.warning("firings were stopped; the next process carries on with them")
                break
        self.follow()

    def _tell_error(self, task: str, error: PenstockError) -> None:
        self.last_error = str(error)
        LOG.error("%s: %s", task, error)

    def recover(self) -> None:
        """Carry on with what a process that died was running."""
        for firing in self.store.orphans():
            if firing.id in self.pool.running:
                continue
            is_gone = firing.model not in self.project.version.subscriptions
            if is_gone or not self.has_begun(firing.id):
                self.store.requeue(firing.id)
                self._wakes_at = None  # to start it, or to cancel that of a model that is gone
            elif self.store.take_over(firing.id):
                LOG.warning("%s goes on: its process has ended", _slice_of(firing))
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
        if self._record_ends():
            self._wakes_at = None
        self._keep_alive()
        self._look_at_others()
        is_recorded = False
        try:
            sightings = [watch.look() for watch in self.watches]
            events = [event for sighting in sightings for event in sighting.events]
            accepted = self.store.undecided(_MOST_EVENTS)
            moment = self.clock()
            has_news = bool(events or accepted) or any(map(_has_memory, sightings))
            if has_news or self._is_due(moment):
                self._decide([*events, *accepted], sightings, moment, fence)
            is_recorded = True
        finally:
            if not is_recorded:
                self._forget()
        self._do_chores(moment)
        self._release_if_idle()
        return self._wait_time(self.clock(), has_more=len(accepted) == _MOST_EVENTS)

    def _forget(self) -> None:
        """Let what was seen and not recorded be seen again."""
        self._wakes_at = None
        for watch in self.watches:
            watch.forget()

    def _look_at_others(self) -> None:
        """Recover firings of processes that died, and decide again after a pause or its end."""
        moment = time.monotonic()
        if self._looked_at is not None and moment - self._looked_at < _LOOK:
            return
        self._looked_at = moment
        self.recover()
        backfills = {item.backfill.id: item.backfill.state for item in self.store.backfills()}
        holds = (self.store.pauses(), backfills)
        if self._has_queue or holds != self._holds:
            self._wakes_at = None
        self._holds = holds

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
            subscriptions,
            agenda,
            chained,
            moment,
            self._new_id,
            producers=self.producers,
            newcomers=dict(item for sighting in sightings for item in sighting.newcomers.items()),
        )
        looks = [look for sighting in sightings for look in sighting.looks]
        if has_content(decision) or events or looks:
            every = [*chained, *decision.events]
            if not self.store.record(every, decision, looks, fence=fence):
                self._forget()  # a firing has started or ended meanwhile: decide again
                self.wake()
                return
            self._tell(decision)
        for sighting in sightings:
            if sighting.files is not None:
                self.store.remember_files(sighting.files)
        self._wakes_at = decision.wakes_at or moment + timedelta(hours=1)
        self._start(apply(agenda, decision), fence)

    def _tell(self, decision: Decision) -> None:
        for outcome in decision.outcomes:
            reason = f" ({outcome.reason})" if outcome.reason else ""
            fields = {"event": outcome.event, "model": outcome.model, "firing": outcome.firing}
            kind = outcome.kind.value
            LOG.info("%s: %s %s%s", outcome.event, kind, outcome.model, reason, extra=fields)
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

    def _start(self, agenda: Agenda, fence: int) -> None:
        subscriptions = self.project.version.subscriptions
        ready = self._without_paused(agenda)
        chosen = choose_next(ready, subscriptions, self.pool.slots, self.settings.backfill_share)
        queued = [item for item in ready.firings.values() if item.state is FiringState.QUEUED]
        self._has_queue = len(queued) > len(chosen)
        if chosen:
            started = set(self.store.start([firing.id for firing in chosen], fence=fence))
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
        LOG.info("starts %s (%s)", _slice_of(firing), firing.kind.value, extra=_fields_of(firing))
        self.pool.start(replace(firing, state=FiringState.RUNNING))
        self._busy_at, self._is_released = time.monotonic(), False

    def _record_ends(self) -> bool:
        self._unrecorded += self.pool.take_ends()
        count = len(self._unrecorded)
        while self._unrecorded:  # an end that cannot be recorded is tried again
            self._record_end(self._unrecorded[0])
            del self._unrecorded[0]
        return count > 0

    def _record_end(self, end: FiringEnd) -> None:
        firing = end.firing
        self._busy_at = time.monotonic()
        if self.is_stopped and (firing.state is FiringState.CANCELLED or end.has_lost_spark):
            return  # it stays a running one: the next process carries on with its run
        if firing.state is FiringState.CANCELLED and firing.backfill is not None:
            firing = replace(firing, reason="its backfill was cancelled")
        process = this_process()
        if not self.store.finish(firing.id, firing.state, firing.reason, process=process):
            LOG.warning("%s: another process has taken it", _slice_of(firing))
            return
        if firing.state is FiringState.DONE and firing.reason is None:
            self.store.accept_all(list(self._remind_readers(firing)))
        if firing.state is FiringState.FAILED:
            self.last_error = f"{firing.model}: {firing.reason}"
        reason = f" ({firing.reason})" if firing.reason else ""
        state, fields = firing.state.value, _fields_of(firing)
        LOG.info(
            "ended %s: %s%s", _slice_of(firing), state, reason, extra={**fields, "state": state}
        )
        for listener in self.listeners:
            listener.ended(end)

    def _remind_readers(self, ended: Firing) -> Iterator[TriggerEvent]:
        """Yield events for firings that only waited for a model, which has ended well.

        If its rows are as before, no change of its table tells the readers that the wait is over.
        """
        for reader, subscription in self.project.version.subscriptions.items():
            if ended.model not in subscription.reads:
                continue
            newest: dict[str, Firing] = {}
            for record in self.store.recent(_MOST_WAITING, reader):
                newest.setdefault(record.firing.key, record.firing)
            for firing in newest.values():
                if firing.kind in _CHANGES and _only_waited(firing):
                    yield _remind(firing, ended, self.clock())

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
        return not self.pool.running and not any(map(_will_run, self.store.load().firings.values()))


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


def _only_waited(firing: Firing) -> bool:
    return firing.state is FiringState.DONE and firing.reason is not None


def _remind(firing: Firing, ended: Firing, moment: datetime) -> TriggerEvent:
    return TriggerEvent(
        f"freshness:{firing.model}/{firing.key}@{ended.id}",
        EventKind.FRESHNESS,
        firing.model,
        moment,
        partition=firing.partition,
        fire_time=firing.fire_time,
        depth=firing.depth,
        models=firing.models,
    )


def _will_run(firing: Firing) -> bool:
    """Return whether a firing runs although nothing more happens, after its debounce if it has one.

    What waits for other inputs, or for the end of a pause, may wait for any time.
    """
    is_held = firing.missing or firing.ready_at is None
    return firing.state is not FiringState.WAITING or not is_held


def _slice_of(firing: Firing) -> str:
    return firing.model if firing.partition is None else f"{firing.model} {firing.partition}"


def _has_memory(sighting: Sighting) -> bool:
    return bool(sighting.looks) or sighting.files is not None


def _fields_of(firing: Firing) -> dict[str, str | None]:
    """Return the fields that a line of the log has as JSON."""
    return {"model": firing.model, "partition": firing.partition, "firing": firing.id}
