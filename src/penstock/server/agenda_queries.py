"""The questions that a scheduler asks of its agenda as a whole."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, delete, func, insert, select

from penstock.engine.state.agenda_tables import (
    EVENT,
    FILE,
    FIRING,
    FRESHNESS,
    PAUSE,
    POSITION,
    SCHEDULE,
)
from penstock.engine.state.run_history import batches
from penstock.engine.state.tables import to_moment
from penstock.scheduler.values import Agenda, FiringState, Pause
from penstock.server.agenda_rows import Position, as_firing, as_freshness, as_mark, as_pause

_OPEN = [state.value for state in FiringState if state.is_open]


@dataclass(frozen=True, slots=True)
class AgendaCounts:
    """The numbers of an agenda, for metrics.

    Attributes:
        firings: The numbers of firings, by their states.
        undecided: The number of events that are not decided.
        oldest_undecided: When the oldest of them was recorded.
    """

    firings: Mapping[FiringState, int]
    undecided: int = 0
    oldest_undecided: datetime | None = None


def load_agenda(connection: Connection) -> Agenda:
    """Return the open firings, marks and pauses.

    Args:
        connection: The catalog.

    Returns:
        The agenda, without the ages of slices.
    """
    firings = connection.execute(
        select(FIRING).where(FIRING.c.state.in_(_OPEN)).order_by(FIRING.c.firing_id)
    )
    late = [as_freshness(row) for row in connection.execute(select(FRESHNESS))]
    return Agenda(
        firings={row.firing_id: as_firing(row) for row in firings},
        marks={row.model: as_mark(row) for row in connection.execute(select(SCHEDULE))},
        freshness={(mark.model, mark.key): mark for mark in late},
        pauses=tuple(read_pauses(connection)),
    )


def read_pauses(connection: Connection) -> list[Pause]:
    """Return the pauses that were not lifted, by what they pause.

    Args:
        connection: The catalog.

    Returns:
        The pauses.
    """
    rows = connection.execute(select(PAUSE).order_by(PAUSE.c.selector))
    return [as_pause(row) for row in rows]


def read_positions(connection: Connection) -> dict[tuple[str, str], Position]:
    """Return the positions of all readers.

    Args:
        connection: The catalog.

    Returns:
        The positions, by reader and source.
    """
    columns = (POSITION.c.reader, POSITION.c.source, POSITION.c.lake, POSITION.c.snapshot_id)
    rows = connection.execute(select(*columns))
    return {(row.reader, row.source): Position(*row) for row in rows}


def read_files(connection: Connection) -> dict[str, str]:
    """Return the files that were listed last.

    Args:
        connection: The catalog.

    Returns:
        Their fingerprints.
    """
    rows = connection.execute(select(FILE))
    return {row.file_key: row.fingerprint for row in rows}


def replace_files(connection: Connection, files: Mapping[str, str]) -> None:
    """Write down files as they were listed, and forget all others.

    Args:
        connection: The catalog, in a transaction that writes.
        files: Their fingerprints.
    """
    before = read_files(connection)
    moved = [key for key, value in before.items() if files.get(key) != value]
    for keys in batches(moved):
        connection.execute(delete(FILE).where(FILE.c.file_key.in_(keys)))
    rows = [
        {"file_key": key, "fingerprint": value}
        for key, value in files.items()
        if before.get(key) != value
    ]
    if rows:
        connection.execute(insert(FILE), rows)


def count_agenda(connection: Connection) -> AgendaCounts:
    """Count firings by their states, and events that are not decided.

    Args:
        connection: The catalog.

    Returns:
        The counts.
    """
    groups = connection.execute(select(FIRING.c.state, func.count()).group_by(FIRING.c.state))
    firings = {FiringState(state): number for state, number in groups}
    pending = select(func.count(), func.min(EVENT.c.recorded_at))
    number, oldest = connection.execute(pending.where(EVENT.c.decided_at.is_(None))).one()
    return AgendaCounts(firings, number, None if oldest is None else to_moment(oldest))
