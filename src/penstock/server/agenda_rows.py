"""Convert rows of the agenda's tables to values of the scheduler, and back."""

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
"""The position in a lake that does not exist yet. It is before all snapshots."""


@dataclass(frozen=True, slots=True)
class Position:
    """The position of a reader: the last snapshot whose changes the reader has received.

    Attributes:
        reader: The name of a model.
        source: The full name of a table, folded.
        lake: The name of the lake of the table.
        snapshot_id: The snapshot.
    """

    reader: str
    source: str
    lake: str
    snapshot_id: int


@dataclass(frozen=True, slots=True)
class LakePositions:
    """The new position of all readers of a lake.

    Attributes:
        lake: The name of the lake.
        snapshot_id: The newest snapshot, or `NO_SNAPSHOT`.
        readers: The readers: pairs of a model and the full name of a table, folded. Positions of
            other readers of the lake are removed.
    """

    lake: str
    snapshot_id: int
    readers: frozenset[tuple[str, str]] = frozenset()


@dataclass(frozen=True, slots=True)
class FiringRecord:
    """A firing with its times and its process.

    Attributes:
        firing: The firing.
        started_at: The time of its start.
        finished_at: The time of its end.
        process: The last process that ran the firing.
        heartbeat_at: The last heartbeat of the process.
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
        The values of the columns, without `recorded_at`, `decided_at` and `user_name`.
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
        "fire_time": format_time(event.fire_time),
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
        fire_time=parse_time(row.fire_time),
        depth=row.depth,
        models=tuple(json.loads(row.models)),
        backfill=row.backfill_id,
    )


def firing_values(firing: Firing) -> dict[str, Any]:
    """Return a firing as a row.

    Args:
        firing: The firing.

    Returns:
        The values of the columns, without the times and the process of the run.
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
        "ready_at": format_time(firing.ready_at),
        "queued_at": format_time(firing.queued_at),
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
        ready_at=parse_time(row.ready_at),
        queued_at=parse_time(row.queued_at),
        depth=row.depth,
        models=tuple(json.loads(row.models)),
        backfill=row.backfill_id,
        reason=row.reason,
    )


def as_firing_record(row: Row[Any]) -> FiringRecord:
    """Return the record of a firing.

    Args:
        row: A row of penstock_firing.

    Returns:
        The record.
    """
    process = None if row.pid is None else ProcessId(row.host, row.pid, row.process_started)
    return FiringRecord(
        as_firing(row),
        parse_time(row.started_at),
        parse_time(row.finished_at),
        process,
        parse_time(row.heartbeat_at),
    )


def outcome_values(outcome: Outcome) -> dict[str, Any]:
    """Return an outcome as a row.

    Args:
        outcome: The outcome.

    Returns:
        The values of the columns.
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
    """Return the mark of a slice that was late.

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
    until = parse_time(row.until)
    return Pause(row.selector, to_moment(row.since), until, row.reason, row.user_name)


def format_time(moment: datetime | None) -> str | None:
    """Format a time for a column.

    Args:
        moment: The time.

    Returns:
        The text; None for None.
    """
    return None if moment is None else to_text(moment)


def parse_time(text: str | None) -> datetime | None:
    """Parse the time of a column.

    Args:
        text: The text of a column.

    Returns:
        The time; None for NULL.
    """
    return None if text is None else to_moment(text)


def storable(text: str | None) -> str | None:
    """Replace the characters of a text that databases refuse.

    Args:
        text: A text for people, for example an error message.

    Returns:
        The text with question marks in place of lone surrogates and U+0000.
    """
    if text is None:
        return None
    return text.replace("\0", "?").encode("utf-8", "replace").decode("utf-8")


def _payload_text(payload: Mapping[str, Any] | None) -> str | None:
    # JSON escapes all but ASCII: PostgreSQL refuses U+0000 and lone surrogates.
    return None if payload is None else json.dumps(dict(payload))


def _list_text(texts: Iterable[str]) -> str:
    return json.dumps(list(texts))
