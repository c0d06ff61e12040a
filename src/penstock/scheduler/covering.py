"""Find or begin the firing that covers an event: joins, debounces, and firings that have not begun.

Firings of one model and partition stand in lanes. In a lane, the newest firing that has not started
may cover a later event:

- without payloads, it covers all later events of the lane;
- with payloads, it covers a later event only within the debounce, whose last payload wins;
- in a join (``trigger all``), it collects the partitioned sources that have arrived;
- a backfill has its own lanes, so that no event waits for it and none ends with it.
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
    """Firings of which one may cover an event that another one would.

    Attributes:
        model: The model.
        key: The partition, or `penstock.scheduler.values.WHOLE`.
        has_payload: Whether each of them has a payload of its own.
        is_join: Whether they wait for several sources.
        kind: ``BACKFILL`` for a backfill, else None.
        backfill: The backfill.
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
    """One slice of a model that an event asks for.

    Attributes:
        event: The event.
        reader: The model.
        key: The partition, or `penstock.scheduler.values.WHOLE`.
        source: The asset that changed.
    """

    event: TriggerEvent
    reader: Subscription
    key: str
    source: Source | None = None

    @property
    def debounce(self) -> timedelta | None:
        """Return how long the inputs must be quiet; a schedule and a person do not wait."""
        if self.event.kind not in {EventKind.ASSET, EventKind.MESSAGE}:
            return None
        if self.event.kind is EventKind.MESSAGE:
            return self.reader.debounce_of(self.event.source) or None
        if self.source is not None and self.source.debounce is not None:
            return self.source.debounce or None
        return self.reader.debounce or None

    @property
    def is_join(self) -> bool:
        """Return whether the slice waits for other sources too."""
        return self.reader.joins and self.source is not None and self.source.is_partitioned

    @property
    def lane(self) -> Lane:
        """Return where a firing stands that may cover it."""
        event = self.event
        kind = event.kind if event.kind is EventKind.BACKFILL else None
        has_payload = event.payload is not None and not self.is_join
        return Lane(self.reader.model, self.key, has_payload, self.is_join, kind, event.backfill)


class Board:
    """The open firings while a decision is made, with what became of events. It is changed."""

    def __init__(self, agenda: Agenda, new_id: Callable[[], str]) -> None:
        """Put up the firings of an agenda, which is not changed.

        Args:
            agenda: The agenda.
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
        """Add a firing, or take the place of the one with its id.

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
        """Record what became of an event for a model, in place of what was recorded before.

        Args:
            event: The id of the event.
            model: The model.
            kind: What became of it.
            firing: The id of the firing that covers it.
            reason: Why it was ignored or superseded.
        """
        self._outcomes[event, model, firing] = Outcome(event, model, kind, firing, reason or None)

    def has_covered(self, model: str, event: str) -> bool:
        """Return whether an open firing of a model covers an event already.

        Args:
            model: The model.
            event: The id of the event.

        Returns:
            True if one does.
        """
        return event in self._events.get(model, ())

    def newest_in(self, lane: Lane) -> Firing | None:
        """Return the newest firing of a lane that has not started.

        Args:
            lane: The lane.

        Returns:
            The firing; None if there is none.
        """
        identity = self._lanes.get(lane)
        return None if identity is None else self._firings[identity]

    @property
    def not_started(self) -> list[Firing]:
        """Return the firings that have not started, in the order in which they began."""
        return [firing for firing in self._firings.values() if firing.state in _NOT_STARTED]

    @property
    def changed(self) -> tuple[Firing, ...]:
        """Return the firings that are new or were changed."""
        return tuple(self._firings[identity] for identity in self._changed)

    @property
    def outcomes(self) -> tuple[Outcome, ...]:
        """Return what became of the events."""
        return tuple(self._outcomes.values())


def cover(board: Board, demand: Demand) -> None:
    """Let a firing cover a slice that an event asks for; begin one if none may.

    Args:
        board: The firings, which are changed.
        demand: The slice.
    """
    firing = board.newest_in(demand.lane)
    if demand.is_join:
        _cover_in_join(board, demand, firing)
    elif demand.event.payload is not None:
        _cover_payload(board, demand, firing)
    else:
        _cover_plain(board, demand, firing or _complete_join(board, demand))


def is_debouncing(firing: Firing, moment: datetime) -> bool:
    """Return whether the debounce of a firing lasts at a moment.

    Args:
        firing: The firing.
        moment: The moment.

    Returns:
        True before its end, if the firing has not been queued.
    """
    is_waiting = firing.state is FiringState.WAITING
    return is_waiting and firing.ready_at is not None and moment < firing.ready_at


def required_sources(reader: Subscription) -> tuple[str, ...]:
    """Return the sources that must arrive before a model fires.

    Args:
        reader: The model.

    Returns:
        The names of its partitioned sources; none if it fires on any.
    """
    names = (source.name for source in reader.sources if reader.joins and source.is_partitioned)
    return tuple(dict.fromkeys(names))


def _cover_in_join(board: Board, demand: Demand, firing: Firing | None) -> None:
    name = demand.source.name if demand.source else ""
    if firing is None:
        required = required_sources(demand.reader)
        missing = tuple(source for source in required if source != name)
        _begin(board, demand, arrived=(name,), missing=missing)
        return
    is_waiting = firing.state is FiringState.WAITING
    _join(
        board,
        demand,
        firing,
        arrived=tuple(dict.fromkeys((*firing.arrived, name))),
        missing=tuple(source for source in firing.missing if source != name),
        fire_time=max(firing.fire_time, _fire_time(demand.event)),
        payload=firing.payload if demand.event.payload is None else demand.event.payload,
        ready_at=_ready_at(demand, firing) if is_waiting else None,
    )


def _cover_payload(board: Board, demand: Demand, firing: Firing | None) -> None:
    if firing is None or not demand.debounce or not is_debouncing(firing, demand.event.time):
        _begin(board, demand)
    else:
        _supersede(board, demand, firing)


def _cover_plain(board: Board, demand: Demand, firing: Firing | None) -> None:
    if firing is None:
        _begin(board, demand)
    elif not demand.debounce or not is_debouncing(firing, demand.event.time):
        _join(board, demand, firing, ready_at=None)
    elif firing.arrived:
        _join(board, demand, firing, ready_at=_ready_at(demand, firing))
    else:
        _supersede(board, demand, firing)


def _complete_join(board: Board, demand: Demand) -> Firing | None:
    """Return a firing for which all sources have arrived, and which any event may join."""
    firing = board.newest_in(replace(demand.lane, is_join=True)) if demand.reader.joins else None
    return None if firing is None or firing.missing else firing


def _begin(
    board: Board, demand: Demand, arrived: tuple[str, ...] = (), missing: tuple[str, ...] = ()
) -> None:
    event = demand.event
    firing = Firing(
        board.new_id(),
        demand.reader.model,
        demand.key,
        event.kind,
        _fire_time(event),
        FiringState.WAITING,  # until it is settled whether it may be queued
        payload=event.payload,
        events=(event.id,),
        arrived=arrived,
        missing=missing,
        ready_at=_ready_at(demand, None),
        depth=event.depth,
        models=event.models,
        backfill=event.backfill,
    )
    board.put(firing)
    board.record(event.id, firing.model, OutcomeKind.FIRED, firing.id)


def _join(board: Board, demand: Demand, firing: Firing, **changes: Any) -> None:
    board.put(_extend(firing, demand.event, **changes))
    board.record(demand.event.id, firing.model, OutcomeKind.JOINED, firing.id)


def _supersede(board: Board, demand: Demand, firing: Firing) -> None:
    event, debounce = demand.event, demand.debounce or timedelta()
    reason = f"a later event within its debounce of {seconds(debounce.total_seconds())}"
    board.record(firing.events[-1], firing.model, OutcomeKind.SUPERSEDED, firing.id, reason)
    ready_at = _ready_at(demand, firing)
    changes = {"fire_time": _fire_time(event), "payload": event.payload, "ready_at": ready_at}
    board.put(_extend(firing, event, **changes))
    board.record(event.id, firing.model, OutcomeKind.FIRED, firing.id)


def _extend(firing: Firing, event: TriggerEvent, **changes: Any) -> Firing:
    return replace(
        firing,
        events=(*firing.events, event.id),
        depth=max(firing.depth, event.depth),
        models=tuple(dict.fromkeys((*firing.models, *event.models))),
        **changes,
    )


def _fire_time(event: TriggerEvent) -> datetime:
    return event.fire_time or event.time


def _ready_at(demand: Demand, firing: Firing | None) -> datetime | None:
    """Return the end of the debounce; an event that comes out of order does not shorten it."""
    before = firing.ready_at if firing else None
    if not demand.debounce:
        return before
    ready_at = demand.event.time + demand.debounce
    return ready_at if before is None else max(before, ready_at)
