"""Queries over the whole agenda."""

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
    """The numbers of firings and events in an agenda, for metrics.

    Attributes:
        firings: The numbers of firings, by state.
        undecided: The number of undecided events.
        oldest_undecided: When the oldest undecided event was recorded.
    """

    firings: Mapping[FiringState, int]
    undecided: int = 0
    oldest_undecided: datetime | None = None


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
    """Read the pauses that nobody has removed.

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
    """Read the fingerprints of the files of the last listing.

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
