"""Values of the scheduler: events, firings, marks of schedules, pauses, and what a decision holds.

An event is something that happened: a table changed, a schedule was due, a message arrived. A
firing is a run of one model for one partition that events ask for. All times are in UTC.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum
from typing import Any

WHOLE = ""
"""The key of a firing without a partition. NULL and a partition that is left out are the same."""


class EventKind(Enum):
    """The kinds of events."""

    ASSET = "asset"  # a table or a file changed
    SCHEDULE = "schedule"  # a cron expression was due
    MESSAGE = "message"  # a payload arrived under a name
    FRESHNESS = "freshness"  # a table became older than it may be
    BACKFILL = "backfill"  # a person asked for slices


class FiringState(Enum):
    """The states of a firing, in the order in which it passes through them."""

    WAITING = "waiting"  # for other inputs, the end of its debounce, or the end of a pause
    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def is_open(self) -> bool:
        """Return whether the firing has not ended."""
        return self in {FiringState.WAITING, FiringState.QUEUED, FiringState.RUNNING}


class OutcomeKind(Enum):
    """Classify what became of an event for a model."""

    FIRED = "fired"  # it began the firing
    JOINED = "joined"  # a firing that had not started covers it
    SUPERSEDED = "superseded"  # a later event took its place within the debounce
    IGNORED = "ignored"


@dataclass(frozen=True, slots=True)
class TriggerEvent:
    """Something that happened, which may fire models.

    Attributes:
        id: The same for the same event, however often it is seen.
        kind: Its kind.
        source: The full name of a table (``lake.schema.table``), the URI of a file, the name of a
            message, or the name of a model (schedule, freshness, backfill).
        time: When it happened.
        partition: The partition of ``source`` that it is about; None for the whole, or if that is
            not known.
        payload: The payload of a message.
        snapshot_id: The snapshot that changed the table.
        run_id: The run that changed the table, if it was one of Penstock's.
        fire_time: The time that the chain of firings is for; None at the top of a chain.
        depth: The number of firings above it in the chain.
        models: The models above it in the chain, from the top.
        backfill: The backfill that asks for the slice.
    """

    id: str
    kind: EventKind
    source: str
    time: datetime
    partition: str | None = None
    payload: Mapping[str, Any] | None = None
    snapshot_id: int | None = None
    run_id: str | None = None
    fire_time: datetime | None = None
    depth: int = 0
    models: tuple[str, ...] = ()
    backfill: str | None = None


@dataclass(frozen=True, slots=True)
class Firing:
    """A run of one model for one partition that events ask for.

    Attributes:
        id: A UUID of version 7, which is also the id of its run.
        model: The name of the model.
        key: The partition, or `WHOLE`.
        kind: The kind of the event that began it.
        fire_time: The time that its run is for.
        state: Where it stands.
        payload: The payload of its last message.
        events: The ids of the events that it covers, the first first.
        arrived: The sources that have arrived, of a firing that waits for several.
        missing: The sources that have not.
        ready_at: When its debounce ends.
        queued_at: When it was queued.
        depth: The number of firings above it.
        models: The models above it in the chain, from the top.
        backfill: The backfill that it belongs to.
        reason: Why it waits, failed or was cancelled.
    """

    id: str
    model: str
    key: str
    kind: EventKind
    fire_time: datetime
    state: FiringState = FiringState.QUEUED
    payload: Mapping[str, Any] | None = None
    events: tuple[str, ...] = ()
    arrived: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    ready_at: datetime | None = None
    queued_at: datetime | None = None
    depth: int = 0
    models: tuple[str, ...] = ()
    backfill: str | None = None
    reason: str | None = None

    @property
    def partition(self) -> str | None:
        """Return the partition, or None for the whole table."""
        return self.key or None


@dataclass(frozen=True, slots=True)
class Outcome:
    """Say what became of an event for a model.

    Attributes:
        event: The id of the event.
        model: The model.
        kind: What became of it.
        firing: The id of the firing that covers it.
        reason: Why it was ignored or superseded.
    """

    event: str
    model: str
    kind: OutcomeKind
    firing: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class ScheduleMark:
    """Up to when the schedule of a model has been looked at.

    Attributes:
        model: The model.
        expression: Its cron expression. After a change nothing of the past fires.
        zone: The time zone of the expression.
        since: Times up to and including this one have been decided.
    """

    model: str
    expression: str
    zone: str
    since: datetime


@dataclass(frozen=True, slots=True)
class FreshnessMark:
    """The attempts to rebuild a table that is older than it may be.

    Attributes:
        model: The model.
        key: The partition, or `WHOLE`.
        attempts: The number of firings since the table was fresh.
        fired_at: When the last of them was decided.
    """

    model: str
    key: str
    attempts: int
    fired_at: datetime


@dataclass(frozen=True, slots=True)
class Age:
    """Hold the age of a slice.

    Attributes:
        model: The model.
        key: The partition, or `WHOLE`.
        built_at: When it was last published or confirmed; None if it never was.
        inputs_changed_at: When an input last changed after that; None if none has.
        due_at: The end of the time of a slice that never was built; None if it has no time.
    """

    model: str
    key: str
    built_at: datetime | None
    inputs_changed_at: datetime | None = None
    due_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Pause:
    """Models that do not fire for some time.

    Attributes:
        selector: The name of a model, or ``tag:NAME``.
        since: When the pause began.
        until: When it ends; None to wait for ``penstock resume``.
        reason: Why, for people.
        user: Who paused it.
    """

    selector: str
    since: datetime
    until: datetime | None = None
    reason: str | None = None
    user: str | None = None

    def holds(self, moment: datetime) -> bool:
        """Return whether the pause lasts at a moment.

        Args:
            moment: The moment.

        Returns:
            True before its end.
        """
        return self.until is None or moment < self.until


@dataclass(frozen=True, slots=True)
class Catchup:
    """Say which times of a schedule fire that passed while nothing was serving.

    Attributes:
        mode: ``none``, ``latest`` or ``all``; None for the default: ``all`` of a model partitioned
            by time, ``latest`` of others.
        limit: The number of times that fire at most, the newest.
        window: Older times do not fire.
    """

    mode: str | None = None
    limit: int | None = None
    window: timedelta | None = None


@dataclass(frozen=True, slots=True)
class Agenda:
    """The state from which the scheduler decides.

    Attributes:
        firings: The firings that are open, by id.
        marks: Of each schedule, by model.
        freshness: Of tables that were late, by model and key.
        ages: How old slices are of models with a ``freshness``.
        pauses: The pauses that were not lifted.
    """

    firings: Mapping[str, Firing] = field(default_factory=dict)
    marks: Mapping[str, ScheduleMark] = field(default_factory=dict)
    freshness: Mapping[tuple[str, str], FreshnessMark] = field(default_factory=dict)
    ages: tuple[Age, ...] = ()
    pauses: tuple[Pause, ...] = ()


@dataclass(frozen=True, slots=True)
class Decision:
    """Hold what the scheduler decided. It is recorded in one transaction with its events.

    Attributes:
        firings: New and changed firings.
        events: Events that the scheduler made itself: times that were due, tables that are late.
        outcomes: What became of each event for each model that it concerns.
        marks: New marks of schedules.
        freshness: New marks of late tables; a mark with no attempts is removed.
        wakes_at: When to decide again, if nothing happens before.
    """

    firings: tuple[Firing, ...] = ()
    events: tuple[TriggerEvent, ...] = ()
    outcomes: tuple[Outcome, ...] = ()
    marks: tuple[ScheduleMark, ...] = ()
    freshness: tuple[FreshnessMark, ...] = ()
    wakes_at: datetime | None = None
