"""The rows of the agenda's tables as values of the scheduler, and back."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Row

from penstock.engine.state.records import ProcessId
from penstock.engine.state.tables import to_moment, to_text
from penstock.scheduler.values import (
    EventKind,
    Firing,
    FiringState,
    FreshnessMark,
    Outcome,
    OutcomeKind,
    Pause,
    ScheduleMark,
    TriggerEvent,
)

NO_SNAPSHOT = -1
"""The position before all snapshots: in a lake that does not exist yet."""


@dataclass(frozen=True, slots=True)
class Position:
    """Up to which snapshot a reader has seen a source.

    Attributes:
        reader: The name of a model.
        source: The full name of a table, folded.
        lake: The name of its lake.
        snapshot_id: The snapshot.
    """

    reader: str
    source: str
    lake: str
    snapshot_id: int


@dataclass(frozen=True, slots=True)
class LakeLook:
    """A look at a lake: all that wait for tables of it have seen them up to a snapshot.

    Attributes:
        lake: The name of the lake.
        snapshot_id: The newest snapshot, or `NO_SNAPSHOT`.
        readers: The models, each with the full name of a table that it waits for, folded. Positions
            of others in the lake are removed.
    """

    lake: str
    snapshot_id: int
    readers: frozenset[tuple[str, str]] = frozenset()


@dataclass(frozen=True, slots=True)
class FiringRecord:
    """A firing, and the process that runs it or has run it.

    Attributes:
        firing: The firing.
        started_at: When it began to run.
        finished_at: When it ended.
        process: The process that runs it, or ran it last.
        heartbeat_at: The last sign of life of that process.
    """

    firing: Firing
    started_at: datetime | None = None
    finished_at: datetime | None = None
    process: ProcessId | None = None
    heartbeat_at: datetime | None = None


def event_values(event: TriggerEvent) -> dict[str, Any]:
    """Return an event as a row.

    Args:
        event: The event.

    Returns:
        The columns that follow from the event.
    """
    return {
        "event_id": event.id,
        "kind": event.kind.value,
        "source": event.source,
        "happened_at": to_text(event.time),
        "partition_value": event.partition,
        "payload": _payload_text(event.payload),
        "snapshot_id": event.snapshot_id,
        "run_id": event.run_id,
        "fire_time": text_or_null(event.fire_time),
        "depth": event.depth,
        "models": _list_text(event.models),
        "backfill_id": event.backfill,
    }


def as_event(row: Row[Any]) -> TriggerEvent:
    """Return the event of a row.

    Args:
        row: A row of penstock_event.

    Returns:
        The event.
    """
    return TriggerEvent(
        id=row.event_id,
        kind=EventKind(row.kind),
        source=row.source,
        time=to_moment(row.happened_at),
        partition=row.partition_value,
        payload=None if row.payload is None else json.loads(row.payload),
        snapshot_id=row.snapshot_id,
        run_id=row.run_id,
        fire_time=moment_or_none(row.fire_time),
        depth=row.depth,
        models=tuple(json.loads(row.models)),
        backfill=row.backfill_id,
    )


def firing_values(firing: Firing) -> dict[str, Any]:
    """Return a firing as a row.

    Args:
        firing: The firing.

    Returns:
        The columns that follow from the firing; not its process and when that ran it.
    """
    return {
        "firing_id": firing.id,
        "model": firing.model,
        "slice_key": firing.key,
        "kind": firing.kind.value,
        "state": firing.state.value,
        "fire_time": to_text(firing.fire_time),
        "payload": _payload_text(firing.payload),
        "events": _list_text(firing.events),
        "arrived": _list_text(firing.arrived),
        "missing": _list_text(firing.missing),
        "ready_at": text_or_null(firing.ready_at),
        "queued_at": text_or_null(firing.queued_at),
        "depth": firing.depth,
        "models": _list_text(firing.models),
        "backfill_id": firing.backfill,
        "reason": storable(firing.reason),
    }


def as_firing(row: Row[Any]) -> Firing:
    """Return the firing of a row.

    Args:
        row: A row of penstock_firing.

    Returns:
        The firing.
    """
    return Firing(
        id=row.firing_id,
        model=row.model,
        key=row.slice_key,
        kind=EventKind(row.kind),
        fire_time=to_moment(row.fire_time),
        state=FiringState(row.state),
        payload=None if row.payload is None else json.loads(row.payload),
        events=tuple(json.loads(row.events)),
        arrived=tuple(json.loads(row.arrived)),
        missing=tuple(json.loads(row.missing)),
        ready_at=moment_or_none(row.ready_at),
        queued_at=moment_or_none(row.queued_at),
        depth=row.depth,
        models=tuple(json.loads(row.models)),
        backfill=row.backfill_id,
        reason=row.reason,
    )


def as_firing_record(row: Row[Any]) -> FiringRecord:
    """Return all that is recorded of a firing.

    Args:
        row: A row of penstock_firing.

    Returns:
        The record.
    """
    process = None if row.pid is None else ProcessId(row.host, row.pid, row.process_started)
    return FiringRecord(
        as_firing(row),
        moment_or_none(row.started_at),
        moment_or_none(row.finished_at),
        process,
        moment_or_none(row.heartbeat_at),
    )


def outcome_values(outcome: Outcome) -> dict[str, Any]:
    """Return an outcome as a row.

    Args:
        outcome: The outcome.

    Returns:
        The columns.
    """
    return {
        "event_id": outcome.event,
        "model": outcome.model,
        "outcome": outcome.kind.value,
        "firing_id": outcome.firing,
        "reason": storable(outcome.reason),
    }


def as_outcome(row: Row[Any]) -> Outcome:
    """Return the outcome of a row.

    Args:
        row: A row of penstock_outcome.

    Returns:
        The outcome.
    """
    return Outcome(row.event_id, row.model, OutcomeKind(row.outcome), row.firing_id, row.reason)


def as_mark(row: Row[Any]) -> ScheduleMark:
    """Return the mark of a schedule.

    Args:
        row: A row of penstock_schedule.

    Returns:
        The mark.
    """
    return ScheduleMark(row.model, row.expression, row.zone, to_moment(row.since))


def as_freshness(row: Row[Any]) -> FreshnessMark:
    """Return the mark of a table that was late.

    Args:
        row: A row of penstock_freshness.

    Returns:
        The mark.
    """
    return FreshnessMark(row.model, row.slice_key, row.attempts, to_moment(row.fired_at))


def as_pause(row: Row[Any]) -> Pause:
    """Return the pause of a row.

    Args:
        row: A row of penstock_pause.

    Returns:
        The pause.
    """
    until = moment_or_none(row.until)
    return Pause(row.selector, to_moment(row.since), until, row.reason, row.user_name)


def text_or_null(moment: datetime | None) -> str | None:
    """Return a time as the tables have it.

    Args:
        moment: The time.

    Returns:
        Its text; None for None.
    """
    return None if moment is None else to_text(moment)


def moment_or_none(text: str | None) -> datetime | None:
    """Return the time of a text.

    Args:
        text: The text of a column.

    Returns:
        The time; None for NULL.
    """
    return None if text is None else to_moment(text)


def storable(text: str | None) -> str | None:
    """Return a text for people without what databases refuse.

    Args:
        text: The text, as the message of an error.

    Returns:
        The text with question marks in place of lone surrogates and U+0000.
    """
    if text is None:
        return None
    return text.replace("\0", "?").encode("utf-8", "replace").decode("utf-8")


def _payload_text(payload: Mapping[str, Any] | None) -> str | None:
    # In ASCII: PostgreSQL refuses U+0000 and lone surrogates, which JSON may have.
    return None if payload is None else json.dumps(dict(payload))


def _list_text(texts: Iterable[str]) -> str:
    return json.dumps(list(texts))
