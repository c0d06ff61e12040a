"""Find or create the firing that covers an event, by the rules of joins and debounces.

The firings of one model and partition are grouped into lanes. The newest firing of a lane that has
not started may cover a later event:

- Without payloads, it covers all later events of the lane.
- With payloads, it covers a later event only within the debounce. The last payload wins.
- In a join (``trigger all``), it collects the partitioned sources that have arrived.
- Each backfill has its own lanes. So no other event waits for a backfill, or is cancelled with it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from penstock.rendering.text import seconds
from penstock.scheduler.subscription import Source, Subscription
from penstock.scheduler.values import (
    Agenda,
    EventKind,
    Firing,
    FiringState,
    Outcome,
    OutcomeKind,
    TriggerEvent,
)

_NOT_STARTED = frozenset({FiringState.WAITING, FiringState.QUEUED})


@dataclass(frozen=True, slots=True)
class Lane:
    """A group of firings. The newest one that has not started covers the events of the group.

    Attributes:
        model: The name of the model.
        key: The partition, or `penstock.scheduler.values.WHOLE`.
        has_payload: Whether each firing has its own payload.
        is_join: Whether the firings wait for several sources.
        kind: ``BACKFILL`` for a backfill, else None.
        backfill: The id of the backfill.
    """

    model: str
    key: str
    has_payload: bool = False
    is_join: bool = False
    kind: EventKind | None = None
    backfill: str | None = None


def lane_of(firing: Firing) -> Lane:
    """Return the lane of a firing.

    Args:
        firing: The firing.

    Returns:
        The lane.
    """
    kind = firing.kind if firing.kind is EventKind.BACKFILL else None
    is_join = bool(firing.arrived or firing.missing)
    has_payload = firing.payload is not None and not is_join
    return Lane(firing.model, firing.key, has_payload, is_join, kind, firing.backfill)


@dataclass(frozen=True, slots=True)
class Demand:
    """The request of an event to fire one slice of a model.

    Attributes:
        event: The event.
        reader: The subscription of the model.
        key: The partition, or `penstock.scheduler.values.WHOLE`.
        source: The asset that changed; None for an event of another kind.
    """

    event: TriggerEvent
    reader: Subscription
    key: str
    source: Source | None = None

    @property
    def debounce(self) -> timedelta | None:
        """Return the debounce of the event. Only changes of assets and messages have one."""
        if self.event.kind not in {EventKind.ASSET, EventKind.MESSAGE}:
            return None
        if self.event.kind is EventKind.MESSAGE:
            return self.reader.debounce_of(self.event.source) or None
        if self.source is not None and self.source.debounce is not None:
            return self.source.debounce or None
        return self.reader.debounce or None

    @property
    def is_join(self) -> bool:
        """Return whether the slice also waits for other sources."""
        return self.reader.joins and self.source is not None and self.source.is_partitioned

    @property
    def lane(self) -> Lane:
        """Return the lane of the firings that may cover the event."""
        event = self.event
        kind = event.kind if event.kind is EventKind.BACKFILL else None
        has_payload = event.payload is not None and not self.is_join
        return Lane(self.reader.model, self.key, has_payload, self.is_join, kind, event.backfill)


class Board:
    """The working state of a decision: open firings, and outcomes of events. It is mutable."""

    def __init__(self, agenda: Agenda, new_id: Callable[[], str]) -> None:
        """Copy the open firings of an agenda.

        Args:
            agenda: The agenda. It is not changed.
            new_id: Returns the id of a new firing.
        """
        self.new_id = new_id
        self._firings: dict[str, Firing] = dict(agenda.firings)
        self._lanes: dict[Lane, str] = {}
        self._events: defaultdict[str, set[str]] = defaultdict(set)
        self._changed: dict[str, None] = {}
        self._outcomes: dict[tuple[str, str, str | None], Outcome] = {}
        for firing in agenda.firings.values():
            self._events[firing.model].update(firing.events)
            if firing.state in _NOT_STARTED:
                self._lanes[lane_of(firing)] = firing.id

    def put(self, firing: Firing) -> None:
        """Add a firing, or replace the firing with the same id.

        Args:
            firing: The firing.
        """
        self._firings[firing.id] = firing
        self._changed[firing.id] = None
        self._lanes[lane_of(firing)] = firing.id
        self._events[firing.model].add(firing.events[-1])

    def end(self, firing: Firing) -> None:
        """Take the place of the firing with the id of one that has ended.

        Args:
            firing: The firing, which covers no more events.
        """
        self._firings[firing.id] = firing
        self._changed[firing.id] = None
        self._lanes.pop(lane_of(firing), None)

    def record(
        self, event: str, model: str, kind: OutcomeKind, firing: str | None = None, reason: str = ""
    ) -> None:
        """Record the outcome of an event for a model. It replaces an earlier outcome of the firing.

        Args:
            event: The id of the event.
            model: The name of the model.
            kind: The kind of the outcome.
            firing: The id of the firing that covers the event.
            reason: Why the event was ignored or superseded.
        """
        self._outcomes[event, model, firing] = Outcome(event, model, kind, firing, reason or None)

    def has_covered(self, model: str, event: str) -> bool:
        """Return whether an open firing of a model already covers an event.

        Args:
            model: The name of the model.
            event: The id of the event.

        Returns:
            True if a firing covers it.
        """
        return event in self._events.get(model, ())

    def find_newest(self, lane: Lane) -> Firing | None:
        """Find the newest firing of a lane that has not started.

        Args:
            lane: The lane.

        Returns:
            The firing; None if the lane has no such firing.
        """
        firing_id = self._lanes.get(lane)
        return None if firing_id is None else self._firings[firing_id]

    @property
    def not_started(self) -> list[Firing]:
        """Return the firings that have not started, in the order in which they were created."""
        return [firing for firing in self._firings.values() if firing.state in _NOT_STARTED]

    @property
    def changed(self) -> tuple[Firing, ...]:
        """Return the new and changed firings."""
        return tuple(self._firings[firing_id] for firing_id in self._changed)

    @property
    def outcomes(self) -> tuple[Outcome, ...]:
        """Return the outcomes of the events."""
        return tuple(self._outcomes.values())


def cover(board: Board, demand: Demand) -> None:
    """Cover a demand with an existing firing, or create a firing.

    Args:
        board: The firings. They are changed.
        demand: The demand.
    """
    firing = board.find_newest(demand.lane)
    if demand.is_join:
        _cover_by_join(board, demand, firing)
    elif demand.event.payload is not None:
        _cover_with_payload(board, demand, firing)
    else:
        _cover_without_payload(board, demand, firing or _find_complete_join(board, demand))


def is_debouncing(firing: Firing, moment: datetime) -> bool:
    """Return whether the debounce of a firing has not ended at a moment.

    Args:
        firing: The firing.
        moment: The moment.

    Returns:
        True before the end, unless the firing was queued.
    """
    is_waiting = firing.state is FiringState.WAITING
    return is_waiting and firing.ready_at is not None and moment < firing.ready_at


def required_sources(reader: Subscription) -> tuple[str, ...]:
    """Return the sources that must arrive before a model fires.

    Args:
        reader: The subscription of the model.

    Returns:
        The names of its partitioned sources; none if any source fires the model.
    """
    names = (source.name for source in reader.sources if reader.joins and source.is_partitioned)
    return tuple(dict.fromkeys(names))


def _cover_by_join(board: Board, demand: Demand, firing: Firing | None) -> None:
    name = demand.source.name if demand.source else ""
    if firing is None:
        required = required_sources(demand.reader)
        missing = tuple(source for source in required if source != name)
        _create_firing(board, demand, arrived=(name,), missing=missing)
        return
    is_waiting = firing.state is FiringState.WAITING
    _join_firing(
        board,
        demand,
        firing,
        arrived=tuple(dict.fromkeys((*firing.arrived, name))),
        missing=tuple(source for source in firing.missing if source != name),
        fire_time=max(firing.fire_time, _choose_fire_time(demand.event)),
        payload=firing.payload if demand.event.payload is None else demand.event.payload,
        ready_at=_compute_debounce_end(demand, firing) if is_waiting else None,
    )


def _cover_with_payload(board: Board, demand: Demand, firing: Firing | None) -> None:
    if firing is None or not demand.debounce or not is_debouncing(firing, demand.event.time):
        _create_firing(board, demand)
    else:
        _supersede_event(board, demand, firing)


def _cover_without_payload(board: Board, demand: Demand, firing: Firing | None) -> None:
    if firing is None:
        _create_firing(board, demand)
    elif not demand.debounce or not is_debouncing(firing, demand.event.time):
        _join_firing(board, demand, firing, ready_at=None)
    elif firing.arrived:
        _join_firing(board, demand, firing, ready_at=_compute_debounce_end(demand, firing))
    else:
        _supersede_event(board, demand, firing)


def _find_complete_join(board: Board, demand: Demand) -> Firing | None:
    """Find a join whose sources have all arrived. It covers any event of the slice."""
    firing = board.find_newest(replace(demand.lane, is_join=True)) if demand.reader.joins else None
    return None if firing is None or firing.missing else firing


def _create_firing(
    board: Board, demand: Demand, arrived: tuple[str, ...] = (), missing: tuple[str, ...] = ()
) -> None:
    event = demand.event
    firing = Firing(
        board.new_id(),
        demand.reader.model,
        demand.key,
        event.kind,
        _choose_fire_time(event),
        FiringState.WAITING,  # `readiness.settle` queues it
        payload=event.payload,
        events=(event.id,),
        arrived=arrived,
        missing=missing,
        ready_at=_compute_debounce_end(demand, None),
        depth=event.depth,
        models=event.models,
        backfill=event.backfill,
    )
    board.put(firing)
    board.record(event.id, firing.model, OutcomeKind.FIRED, firing.id)


def _join_firing(board: Board, demand: Demand, firing: Firing, **changes: Any) -> None:
    board.put(_add_event(firing, demand.event, **changes))
    board.record(demand.event.id, firing.model, OutcomeKind.JOINED, firing.id)


def _supersede_event(board: Board, demand: Demand, firing: Firing) -> None:
    """Make the event of a demand the one that a firing runs for, in place of its last event."""
    event, debounce = demand.event, demand.debounce or timedelta()
    reason = f"a later event within its debounce of {seconds(debounce.total_seconds())}"
    board.record(firing.events[-1], firing.model, OutcomeKind.SUPERSEDED, firing.id, reason)
    fire_time, ready_at = _choose_fire_time(event), _compute_debounce_end(demand, firing)
    changes = {"fire_time": fire_time, "payload": event.payload, "ready_at": ready_at}
    board.put(_add_event(firing, event, **changes))
    board.record(event.id, firing.model, OutcomeKind.FIRED, firing.id)


def _add_event(firing: Firing, event: TriggerEvent, **changes: Any) -> Firing:
    return replace(
        firing,
        events=(*firing.events, event.id),
        depth=max(firing.depth, event.depth),
        models=tuple(dict.fromkeys((*firing.models, *event.models))),
        **changes,
    )


def _choose_fire_time(event: TriggerEvent) -> datetime:
    return event.fire_time or event.time


def _compute_debounce_end(demand: Demand, firing: Firing | None) -> datetime | None:
    """Return the end of the debounce. An event out of order does not move it back."""
    previous_end = firing.ready_at if firing else None
    if not demand.debounce:
        return previous_end
    end = demand.event.time + demand.debounce
    return end if previous_end is None else max(previous_end, end)
