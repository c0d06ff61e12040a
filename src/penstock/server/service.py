"""Serve a project in rounds while this process leads: detect, decide, record and run.

A round detects events, decides, and records the events, the positions and the decision in one
transaction. If a process dies before it records events, the next process detects them again.
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
    from penstock.server.watching import Detection

LOG = logging.getLogger("penstock.serve")
_MAX_EVENTS = 1_000  # events of one round
_MAX_WAITING = 200  # the newest firings of a model that are searched for waits
_CHANGES = frozenset({EventKind.ASSET, EventKind.FRESHNESS})  # kinds of firings for changed inputs
_HEARTBEAT_INTERVAL = 10.0  # seconds between two heartbeats of running firings
_SYNC_INTERVAL = 2.0  # seconds between two reads of what other processes changed


class Watch(Protocol):
    """A source of events outside of the agenda."""

    def detect(self) -> Detection:
        """Detect the events after the recorded positions.

        Returns:
            The events, and the new positions.
        """
        ...

    def reset(self) -> None:
        """Detect again, with the next call of `detect`, the events that were not recorded."""
        ...


class Listener(Protocol):
    """A receiver of outcomes and ends of firings, for example for metrics."""

    def handle_decision(self, outcomes: Sequence[Outcome]) -> None:
        """Handle the outcomes of a round.

        Args:
            outcomes: The outcomes.
        """

    def handle_end(self, end: FiringEnd) -> None:
        """Handle the end of a firing.

        Args:
            end: The end.
        """


class PeriodicTask(Protocol):
    """A task that runs at intervals, apart from decisions."""

    def __call__(self, moment: datetime, /) -> None:
        """Run the task if it is due.

        Args:
            moment: The time.
        """


@dataclass(frozen=True, slots=True)
class ServiceSettings:
    """The settings of the service.

    Attributes:
        poll: The seconds between two rounds if no event wakes the service.
        backfill_share: The maximum share of the slots for backfills.
        drain_timeout: The seconds that running firings have to end at a stop; None for no limit.
        idle_timeout: The seconds without a firing before Spark is released; None for never.
        is_once: Whether the service ends when all open firings wait for inputs or a pause.
    """

    poll: float = 1.0
    backfill_share: float = 0.5
    drain_timeout: float | None = 60.0
    idle_timeout: float | None = 600.0
    is_once: bool = False


@dataclass
class Service:
    """The service of one project in this process.

    Attributes:
        project: The project.
        store: The agenda in the catalog.
        pool: The pool that runs firings.
        watches: The watches that detect events.
        producers: The producers of events that depend on time: schedules and freshness.
        settings: The settings.
        read_ages: Returns the ages of the slices of models with a ``freshness``.
        has_run: Returns whether the run of a firing was recorded.
        find_original: Returns the first run of a chain of retries.
        release: Releases Spark after the idle time.
        interrupt: Stops all Spark jobs.
        on_reload: Called after the project was reloaded.
        listeners: The receivers of outcomes and ends of firings.
        periodic_tasks: The tasks to run at the end of each round, if they are due.
        clock: Returns the current time.
        last_error: The last error, for /health.
    """

    project: ServedProject
    store: AgendaStore
    pool: FiringPool
    watches: Sequence[Watch]
    producers: Sequence[Producer] = ()
    settings: ServiceSettings = field(default_factory=ServiceSettings)
    read_ages: Callable[[], tuple[Age, ...]] = tuple
    has_run: Callable[[str], bool] = lambda _: False
    find_original: Callable[[str], str] = lambda run_id: run_id
    release: Callable[[], None] = lambda: None
    interrupt: Callable[[], None] = lambda: None
    on_reload: Callable[[], None] = lambda: None
    listeners: Sequence[Listener] = ()
    periodic_tasks: Sequence[PeriodicTask] = ()
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    last_error: str | None = None
    _new_id: Uuid7Sequence = field(default_factory=Uuid7Sequence)  # ids sort by time
    _wake_event: threading.Event = field(default_factory=threading.Event)
    _stop_event: threading.Event = field(default_factory=threading.Event)
    _next_decision_at: datetime | None = None
    _heartbeat_at: float = 0.0
    _synced_at: float | None = None
    _holds: object = None  # the pauses, and the states of backfills, at the last sync
    _unrecorded: list[FiringEnd] = field(default_factory=list)
    _busy_at: float = field(default_factory=time.monotonic)
    _is_released: bool = True
    _has_queue: bool = False

    @property
    def is_stopped(self) -> bool:
        """Return whether `stop` was called."""
        return self._stop_event.is_set()

    def wake(self) -> None:
        """Start the next round at once."""
        self._wake_event.set()

    def stop(self) -> None:
        """Stop after the current round."""
        self._stop_event.set()
        self._wake_event.set()

    def wait(self, seconds: float) -> None:
        """Wait until the service is stopped, or until a timeout.

        Args:
            seconds: The timeout.
        """
        self._stop_event.wait(seconds)

    def lead(self, fence: int, is_lost: threading.Event) -> None:
        """Serve until the service is stopped or another process leads.

        Args:
            fence: The fencing number. The transaction of each decision checks it.
            is_lost: Set when another process may lead.
        """
        self._synced_at = None
        self._reset_watches()  # another process may have led meanwhile
        while not self._stop_event.is_set() and not is_lost.is_set():
            self._wake_event.clear()
            try:
                wait = self.run_round(fence)
                if self.settings.is_once and self._is_idle():
                    self.stop()
            except ClaimLost as error:
                LOG.warning("%s", error)
                is_lost.set()
            except PenstockError as error:
                wait = self.settings.poll
                self._log_error("a round failed", error)
            if not self._stop_event.is_set() and not is_lost.is_set():
                self._wake_event.wait(wait)

    def follow(self) -> None:
        """Record ends and heartbeats of the firings of this process while another one leads."""
        try:
            self._record_ends()
            self._record_heartbeats()
        except PenstockError as error:
            self._log_error("firings cannot be recorded", error)

    def drain(self) -> None:
        """Wait for the firings of this process. Stop them after the drain timeout."""
        if self.pool.running:
            LOG.info("waiting for %d firings to end", len(self.pool.running))
        seconds, start = self.settings.drain_timeout, time.monotonic()
        while not self.pool.wait(min(1.0, _HEARTBEAT_INTERVAL if seconds is None else seconds)):
            self.follow()
            if seconds is not None and time.monotonic() - start >= seconds:
                if not self.pool.drain(0, self.interrupt):
                    LOG.warning("firings were stopped; the next process continues them")
                break
        self.follow()

    def _log_error(self, task: str, error: PenstockError) -> None:
        self.last_error = str(error)
        LOG.error("%s: %s", task, error)

    def recover(self) -> None:
        """Continue the firings of processes that died."""
        for firing in self.store.list_orphans():
            if firing.id in self.pool.running:
                continue
            is_gone = firing.model not in self.project.version.subscriptions
            if is_gone or not self.has_run(firing.id):
                self.store.requeue_firing(firing.id)
                self._next_decision_at = None  # start it, or cancel it if its model is gone
            elif self.store.take_over_firing(firing.id):
                LOG.warning("continuing %s: its process has ended", _describe_slice(firing))
                self._run(firing)

    def run_round(self, fence: int) -> float:
        """Detect, decide, record and run once.

        Args:
            fence: The fencing number.

        Returns:
            The seconds until the next round, unless `wake` is called.
        """
        if self.project.refresh():
            LOG.info("the project was reloaded")
            self.on_reload()
            self._next_decision_at = None
        if self._record_ends():
            self._next_decision_at = None
        self._record_heartbeats()
        self._sync_agenda()
        is_recorded = False
        try:
            detections = [watch.detect() for watch in self.watches]
            events = [event for detection in detections for event in detection.events]
            accepted = self.store.list_undecided(_MAX_EVENTS)
            moment = self.clock()
            has_input = bool(events or accepted) or any(map(_has_changes, detections))
            if has_input or self._is_due(moment):
                self._decide([*events, *accepted], detections, moment, fence)
            is_recorded = True
        finally:
            if not is_recorded:
                self._reset_watches()
        self._run_periodic_tasks(moment)
        self._release_if_idle()
        return self._wait_time(self.clock(), has_more=len(accepted) == _MAX_EVENTS)

    def _reset_watches(self) -> None:
        """Detect again the events that were not recorded."""
        self._next_decision_at = None
        for watch in self.watches:
            watch.reset()

    def _sync_agenda(self) -> None:
        """Recover firings of processes that died. Decide again if a pause or backfill changed."""
        moment = time.monotonic()
        if self._synced_at is not None and moment - self._synced_at < _SYNC_INTERVAL:
            return
        self._synced_at = moment
        self.recover()
        backfills = {item.backfill.id: item.backfill.state for item in self.store.backfills()}
        holds = (self.store.pauses(), backfills)
        if self._has_queue or holds != self._holds:
            self._next_decision_at = None
        self._holds = holds

    def _run_periodic_tasks(self, moment: datetime) -> None:
        for task in self.periodic_tasks:
            try:
                task(moment)
            except PenstockError as error:  # decisions continue without the task
                LOG.error("%s", error)

    def _is_due(self, moment: datetime) -> bool:
        return self._next_decision_at is None or moment >= self._next_decision_at

    def _decide(
        self,
        events: Sequence[TriggerEvent],
        detections: Sequence[Detection],
        moment: datetime,
        fence: int,
    ) -> None:
        agenda = replace(self.store.load(), ages=self.read_ages())
        chained = [self._add_chain(event) for event in events]
        subscriptions = self.project.version.subscriptions
        decision = decide(
            subscriptions,
            agenda,
            chained,
            moment,
            self._new_id,
            producers=self.producers,
            excluded=dict(item for detection in detections for item in detection.excluded.items()),
        )
        positions = [position for detection in detections for position in detection.positions]
        if has_content(decision) or events or positions:
            every = [*chained, *decision.events]
            if not self.store.record(every, decision, positions, fence=fence):
                self._reset_watches()  # a firing started or ended since the load: decide again
                self.wake()
                return
            self._report(decision)
        for detection in detections:
            if detection.files is not None:
                self.store.replace_files(detection.files)
        self._next_decision_at = decision.wakes_at or moment + timedelta(hours=1)
        self._start(apply(agenda, decision), fence)

    def _report(self, decision: Decision) -> None:
        for outcome in decision.outcomes:
            reason = f" ({outcome.reason})" if outcome.reason else ""
            fields = {"event": outcome.event, "model": outcome.model, "firing": outcome.firing}
            kind = outcome.kind.value
            LOG.info("%s: %s %s%s", outcome.event, kind, outcome.model, reason, extra=fields)
        for listener in self.listeners:
            listener.handle_decision(decision.outcomes)

    def _add_chain(self, event: TriggerEvent) -> TriggerEvent:
        """Return the event with the chain of the firing that published it."""
        if event.run_id is None or event.models:
            return event
        record = self.store.read_firing(self.find_original(event.run_id))
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
            started = set(self.store.claim_firings([firing.id for firing in chosen], fence=fence))
            for firing in chosen:
                if firing.id in started:
                    self._run(firing)
        if len(queued) > len(chosen):
            LOG.debug("%d firings wait for a slot", len(queued) - len(chosen))

    def _without_paused(self, agenda: Agenda) -> Agenda:
        """Return the agenda without the queued firings of paused backfills."""
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
        name, kind = _describe_slice(firing), firing.kind.value
        LOG.info("starting %s (%s)", name, kind, extra=_log_fields(firing))
        self.pool.start(replace(firing, state=FiringState.RUNNING))
        self._busy_at, self._is_released = time.monotonic(), False

    def _record_ends(self) -> bool:
        self._unrecorded += self.pool.take_ends()
        count = len(self._unrecorded)
        while self._unrecorded:  # an end stays here until it is recorded
            self._record_end(self._unrecorded[0])
            del self._unrecorded[0]
        return count > 0

    def _record_end(self, end: FiringEnd) -> None:
        firing = end.firing
        self._busy_at = time.monotonic()
        if self.is_stopped and (firing.state is FiringState.CANCELLED or end.has_lost_spark):
            return  # the firing keeps the state "running": the next process continues its run
        if firing.state is FiringState.CANCELLED and firing.backfill is not None:
            firing = replace(firing, reason="its backfill was cancelled")
        process = this_process()
        if not self.store.finish_firing(firing.id, firing.state, firing.reason, process=process):
            LOG.warning("%s: another process has taken over", _describe_slice(firing))
            return
        if firing.state is FiringState.DONE and firing.reason is None:
            self.store.accept_all(list(self._make_wait_events(firing)))
        if firing.state is FiringState.FAILED:
            self.last_error = f"{firing.model}: {firing.reason}"
        name, state = _describe_slice(firing), firing.state.value
        reason = f" ({firing.reason})" if firing.reason else ""
        fields = {**_log_fields(firing), "state": state}
        LOG.info("ended %s: %s%s", name, state, reason, extra=fields)
        for listener in self.listeners:
            listener.handle_end(end)

    def _make_wait_events(self, ended: Firing) -> Iterator[TriggerEvent]:
        """Yield events for firings that only waited for a model that has succeeded.

        If the run changed no rows, its table has no new change that triggers the readers.
        """
        for reader, subscription in self.project.version.subscriptions.items():
            if ended.model not in subscription.reads:
                continue
            newest: dict[str, Firing] = {}
            for record in self.store.list_firings(_MAX_WAITING, reader):
                newest.setdefault(record.firing.key, record.firing)
            for firing in newest.values():
                if firing.kind in _CHANGES and _has_only_waited(firing):
                    yield _make_wait_event(firing, ended, self.clock())

    def _cancel_firings(self) -> None:
        """Stop the running firings of cancelled backfills."""
        running = [firing for firing in self.pool.running.values() if firing.backfill is not None]
        if not running:
            return
        ids = {firing.backfill for firing in running if firing.backfill is not None}
        cancelled = self.store.cancelled_backfills(ids)
        for firing in running:
            if firing.backfill in cancelled:
                self.pool.cancel(firing.id)

    def _record_heartbeats(self) -> None:
        self._cancel_firings()
        if self.pool.running and time.monotonic() - self._heartbeat_at > _HEARTBEAT_INTERVAL:
            alive = set(self.store.record_heartbeat(list(self.pool.running)))
            for firing_id in self.pool.running.keys() - alive:  # cancelled, or taken over
                self.pool.cancel(firing_id)
            self._heartbeat_at = time.monotonic()

    def _release_if_idle(self) -> None:
        idle = self.settings.idle_timeout
        if self.pool.running:
            self._busy_at = time.monotonic()
        elif idle is not None and not self._is_released and time.monotonic() - self._busy_at > idle:
            LOG.info("releasing Spark: no firing has run for %.0f s", idle)
            self.release()
            self._is_released = True

    def _wait_time(self, moment: datetime, *, has_more: bool) -> float:
        if has_more:
            return 0.0
        poll = self.settings.poll
        limit = min(poll, _SYNC_INTERVAL) if self.pool.running else poll
        if self._next_decision_at is None:
            return limit
        return max(0.0, min(limit, (self._next_decision_at - moment).total_seconds()))

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


def _has_only_waited(firing: Firing) -> bool:
    return firing.state is FiringState.DONE and firing.reason is not None


def _make_wait_event(firing: Firing, ended: Firing, moment: datetime) -> TriggerEvent:
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
    """Return whether a firing needs no further event to run. A debounce is no event.

    A firing that waits for other inputs, or for the end of a pause, may wait without limit.
    """
    is_held = firing.missing or firing.ready_at is None
    return firing.state is not FiringState.WAITING or not is_held


def _describe_slice(firing: Firing) -> str:
    return firing.model if firing.partition is None else f"{firing.model} {firing.partition}"


def _has_changes(detection: Detection) -> bool:
    return bool(detection.positions) or detection.files is not None


def _log_fields(firing: Firing) -> dict[str, str | None]:
    """Return the extra fields of a log line in JSON format."""
    return {"model": firing.model, "partition": firing.partition, "firing": firing.id}
