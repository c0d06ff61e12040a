"""Queries over the whole agenda."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, delete, func, insert, select

from penstock.engine.state.agenda_tables import (
    EVENT,
    FILE,
    FIRING,
    FRESHNESS,
    OUTCOME,
    PAUSE,
    POSITION,
    SCHEDULE,
)
from penstock.engine.state.run_history import batches
from penstock.engine.state.tables import to_moment
from penstock.scheduler.values import Agenda, FiringState, OutcomeKind, Pause
from penstock.server.agenda_rows import (
    FiringRecord,
    Position,
    as_firing,
    as_firing_record,
    as_freshness,
    as_mark,
    as_pause,
    parse_time,
)

_PENDING = (FiringState.WAITING.value, FiringState.QUEUED.value)
_OPEN = [state.value for state in FiringState if state.is_open]


@dataclass(frozen=True, slots=True)
class AgendaCounts:
    """The numbers of firings and events in an agenda, for metrics.

    Attributes:
        firings: The numbers of firings, by state.
        undecided: The number of undecided events.
        oldest_undecided: The time when the oldest undecided event was recorded.
    """

    firings: Mapping[FiringState, int]
    undecided: int = 0
    oldest_undecided: datetime | None = None


@dataclass(frozen=True, slots=True)
class ModelTraces:
    """The newest firings and events of one model.

    Attributes:
        latest: The newest firing that is running or has ended.
        pending: The newest firing that waits or is queued.
        ignored: The id of the newest event that was ignored for the model after `latest`.
        ignored_reason: Why the event was ignored.
        undecided: The ids of undecided events that concern the model.
    """

    latest: FiringRecord | None = None
    pending: FiringRecord | None = None
    ignored: str | None = None
    ignored_reason: str | None = None
    undecided: tuple[str, ...] = ()


def read_traces(
    connection: Connection, model: str, keys: Collection[str] | None, messages: Collection[str]
) -> ModelTraces:
    """Return the traces of a model, or of some of its slices.

    Args:
        connection: The catalog.
        model: The name of the model.
        keys: The keys of the slices; None for all.
        messages: The names of the messages that trigger the model.

    Returns:
        The traces.
    """
    is_pending = FIRING.c.state.in_(_PENDING)
    firings = select(FIRING).where(FIRING.c.model == model).order_by(FIRING.c.firing_id.desc())
    events = select(EVENT.c.event_id).where(EVENT.c.source.in_([*messages, model]))
    outcomes = (
        select(OUTCOME.c.event_id, OUTCOME.c.reason, EVENT.c.decided_at)
        .join(EVENT, EVENT.c.event_id == OUTCOME.c.event_id)
        .where(OUTCOME.c.model == model, OUTCOME.c.outcome == OutcomeKind.IGNORED.value)
        .order_by(EVENT.c.recorded_at.desc(), EVENT.c.event_id.desc())
    )
    if keys is not None:
        part = EVENT.c.partition_value
        firings = firings.where(FIRING.c.slice_key.in_(keys))
        events, outcomes = (
            query.where(part.is_(None) | part.in_(keys)) for query in (events, outcomes)
        )
    latest = connection.execute(firings.where(~is_pending).limit(1)).one_or_none()
    pending = connection.execute(firings.where(is_pending).limit(1)).one_or_none()
    undecided = events.where(EVENT.c.decided_at.is_(None)).order_by(EVENT.c.recorded_at)
    ignored = connection.execute(outcomes.limit(1)).one_or_none()
    queued_at = None if latest is None else parse_time(latest.queued_at)
    if ignored is not None and queued_at is not None and to_moment(ignored.decided_at) < queued_at:
        ignored = None
    return ModelTraces(
        None if latest is None else as_firing_record(latest),
        None if pending is None else as_firing_record(pending),
        None if ignored is None else ignored.event_id,
        None if ignored is None else ignored.reason,
        tuple(connection.execute(undecided).scalars()),
    )


def load_agenda(connection: Connection) -> Agenda:
    """Read the open firings, the marks and the pauses.

    Args:
        connection: The catalog.

    Returns:
        The agenda, without the ages of slices.
    """
    firings = connection.execute(
        select(FIRING).where(FIRING.c.state.in_(_OPEN)).order_by(FIRING.c.firing_id)
    )
    freshness = [as_freshness(row) for row in connection.execute(select(FRESHNESS))]
    return Agenda(
        firings={row.firing_id: as_firing(row) for row in firings},
        marks={row.model: as_mark(row) for row in connection.execute(select(SCHEDULE))},
        freshness={(mark.model, mark.key): mark for mark in freshness},
        pauses=tuple(read_pauses(connection)),
    )


def read_pauses(connection: Connection) -> list[Pause]:
    """Read the pauses that were not removed.

    Args:
        connection: The catalog.

    Returns:
        The pauses, ordered by selector.
    """
    rows = connection.execute(select(PAUSE).order_by(PAUSE.c.selector))
    return [as_pause(row) for row in rows]


def read_positions(connection: Connection) -> dict[tuple[str, str], Position]:
    """Read the positions of all readers.

    Args:
        connection: The catalog.

    Returns:
        The positions, by reader and source.
    """
    columns = (POSITION.c.reader, POSITION.c.source, POSITION.c.lake, POSITION.c.snapshot_id)
    rows = connection.execute(select(*columns))
    return {(row.reader, row.source): Position(*row) for row in rows}


def read_files(connection: Connection) -> dict[str, str]:
    """Read the fingerprints of the last listing of files.

    Args:
        connection: The catalog.

    Returns:
        The fingerprints, by pattern and file.
    """
    rows = connection.execute(select(FILE))
    return {row.file_key: row.fingerprint for row in rows}


def replace_files(connection: Connection, files: Mapping[str, str]) -> None:
    """Replace all fingerprints of files.

    Args:
        connection: The catalog, in a transaction that writes.
        files: The fingerprints, by pattern and file.
    """
    stored = read_files(connection)
    outdated = [key for key, value in stored.items() if files.get(key) != value]
    for keys in batches(outdated):
        connection.execute(delete(FILE).where(FILE.c.file_key.in_(keys)))
    rows = [
        {"file_key": key, "fingerprint": value}
        for key, value in files.items()
        if stored.get(key) != value
    ]
    if rows:
        connection.execute(insert(FILE), rows)


def count_agenda(connection: Connection) -> AgendaCounts:
    """Count the firings of each state, and the undecided events.

    Args:
        connection: The catalog.

    Returns:
        The counts.
    """
    groups = connection.execute(select(FIRING.c.state, func.count()).group_by(FIRING.c.state))
    firings = {FiringState(state): number for state, number in groups}
    query = select(func.count(), func.min(EVENT.c.recorded_at)).where(EVENT.c.decided_at.is_(None))
    number, oldest = connection.execute(query).one()
    return AgendaCounts(firings, number, None if oldest is None else to_moment(oldest))
