"""Values of the scheduler: events, firings, schedule marks, pauses and decisions.

An event records that something happened: a table changed, a schedule was due, a message arrived.
Events cause firings. A firing is one run of a model for one partition. All times are in UTC.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum
from typing import Any

WHOLE = ""
"""The key of a firing without a partition. A NULL partition and a missing one are equal."""


class EventKind(Enum):
    """The kinds of events."""

    ASSET = "asset"  # a table or a file changed
    SCHEDULE = "schedule"  # a cron expression was due
    MESSAGE = "message"  # a payload arrived under a name
    FRESHNESS = "freshness"  # a slice is older than the freshness of its model
    BACKFILL = "backfill"  # a user requested slices


class FiringState(Enum):
    """The states of a firing, in the order in which it passes through them."""

    WAITING = "waiting"  # for other sources, for the end of its debounce or of a pause
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
    """The kinds of outcomes that an event has for a model."""

    FIRED = "fired"  # the event created a firing
    JOINED = "joined"  # a firing that had not started covers the event
    SUPERSEDED = "superseded"  # a later event within the debounce replaced it
    IGNORED = "ignored"


@dataclass(frozen=True, slots=True)
class TriggerEvent:
    """An event that may fire models.

    Attributes:
        id: The id. It follows from what happened, so the same event always has the same id.
        kind: The kind of the event.
        source: The full name of a table (``lake.schema.table``), the URI of a file, the name of a
            message, or the name of a model (schedule, freshness, backfill).
        time: When it happened.
        partition: The partition of ``source`` that the event concerns; None for the whole source,
            or if the partition is unknown.
        payload: The payload of a message.
        snapshot_id: The snapshot that changed the table.
        run_id: The Penstock run that changed the table; None for another writer.
        fire_time: The time that the firings of the chain are for; None to use ``time``.
        depth: The number of firings before the event in its chain.
        models: The models of these firings, the first one first.
        backfill: The id of the backfill that requested the slice.
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


def make_message_id(name: str, key: str) -> str:
    """Return the id of the event of a message.

    Names of models contain slashes. ``/`` of the key is written as ``~1`` and ``~`` as ``~0``, as
    RFC 6901 does, so that messages of two names never have the same id.

    Args:
        name: The name of the message.
        key: The key of the message. It is unique among the messages of its name.

    Returns:
        The id.
    """
    return f"message:{name}/{key.replace('~', '~0').replace('/', '~1')}"


@dataclass(frozen=True, slots=True)
class Firing:
    """A run of one model for one partition, caused by events.

    Attributes:
        id: A UUID of version 7. The run has the same id.
        model: The name of the model.
        key: The partition, or `WHOLE`.
        kind: The kind of the event that created the firing.
        fire_time: The time that its run is for.
        state: The state of the firing.
        payload: The payload of its last message.
        events: The ids of the events that it covers, the first one first.
        arrived: The sources of a join that have arrived.
        missing: The sources of a join that have not arrived.
        ready_at: When its debounce ends.
        queued_at: When it was queued.
        depth: The number of firings before this one in its chain.
        models: The models of these firings, the first one first.
        backfill: The id of its backfill.
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
    """The outcome of an event for one model.

    Attributes:
        event: The id of the event.
        model: The name of the model.
        kind: The kind of the outcome.
        firing: The id of the firing that covers the event.
        reason: Why the event was ignored or superseded.
    """

    event: str
    model: str
    kind: OutcomeKind
    firing: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class ScheduleMark:
    """The time up to which the schedule of a model is decided.

    Attributes:
        model: The name of the model.
        expression: Its cron expression. After a change of the expression, no past time fires.
        zone: The time zone of the expression.
        since: The last decided time.
    """

    model: str
    expression: str
    zone: str
    since: datetime


@dataclass(frozen=True, slots=True)
class FreshnessMark:
    """The attempts to rebuild a slice that is older than the freshness of its model.

    Attributes:
        model: The name of the model.
        key: The partition, or `WHOLE`.
        attempts: The number of firings since the slice was fresh.
        fired_at: When the last of these firings was decided.
    """

    model: str
    key: str
    attempts: int
    fired_at: datetime


@dataclass(frozen=True, slots=True)
class Age:
    """The age of a slice.

    Attributes:
        model: The name of the model.
        key: The partition, or `WHOLE`.
        built_at: When the slice was last published or confirmed; None if it never was.
        inputs_changed_at: When an input last changed after the build; None if no input changed.
        due_at: The end of the time of a slice that never was built; None if it has no time.
    """

    model: str
    key: str
    built_at: datetime | None
    inputs_changed_at: datetime | None = None
    due_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Pause:
    """A pause of models: they do not fire until it ends.

    Attributes:
        selector: The name of a model, or ``tag:NAME``.
        since: When the pause began.
        until: When the pause ends; None for a pause that ``penstock resume`` ends.
        reason: The reason, in words.
        user: The user who paused the models.
    """

    selector: str
    since: datetime
    until: datetime | None = None
    reason: str | None = None
    user: str | None = None

    def is_active_at(self, moment: datetime) -> bool:
        """Return whether the pause has not ended at a moment.

        Args:
            moment: The moment.

        Returns:
            True before its end.
        """
        return self.until is None or moment < self.until


@dataclass(frozen=True, slots=True)
class Catchup:
    """The rule for schedule times that passed while no process served the project.

    Attributes:
        mode: ``none``, ``latest`` or ``all``. None is the default: ``all`` for a model that is
            partitioned by time, ``latest`` for any other model.
        limit: The maximum number of missed times that fire. The newest ones fire.
        window: The maximum age of a missed time that fires.
    """

    mode: str | None = None
    limit: int | None = None
    window: timedelta | None = None


@dataclass(frozen=True, slots=True)
class Agenda:
    """The state on which the scheduler bases a decision.

    Attributes:
        firings: The open firings, by id.
        marks: The schedule marks, by model.
        freshness: The freshness marks, by model and key.
        ages: The ages of the slices of models with a ``freshness``.
        pauses: The pauses that nobody has removed.
    """

    firings: Mapping[str, Firing] = field(default_factory=dict)
    marks: Mapping[str, ScheduleMark] = field(default_factory=dict)
    freshness: Mapping[tuple[str, str], FreshnessMark] = field(default_factory=dict)
    ages: tuple[Age, ...] = ()
    pauses: tuple[Pause, ...] = ()


@dataclass(frozen=True, slots=True)
class Decision:
    """A decision of the scheduler. It is recorded in one transaction with its events.

    Attributes:
        firings: New and changed firings.
        events: Events that the scheduler itself created: due times and late slices.
        outcomes: The outcomes of events, one for each model that an event concerns.
        marks: New schedule marks.
        freshness: New freshness marks. A mark without attempts is to be removed.
        wakes_at: When the next decision is due, unless an event comes first.
    """

    firings: tuple[Firing, ...] = ()
    events: tuple[TriggerEvent, ...] = ()
    outcomes: tuple[Outcome, ...] = ()
    marks: tuple[ScheduleMark, ...] = ()
    freshness: tuple[FreshnessMark, ...] = ()
    wakes_at: datetime | None = None
