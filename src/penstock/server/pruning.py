"""Remove old entries of the agenda: firings that ended, with their events and outcomes.

An event goes when it was decided long ago and no firing is left that covers it. The id of an event
that is gone may be used again, so a retry of a message must come before.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, Connection, delete, exists, func, or_, select

from penstock.engine.state.agenda_tables import BACKFILL, EVENT, FIRING, OUTCOME
from penstock.engine.state.run_history import BATCH
from penstock.engine.state.tables import to_text
from penstock.server.state_access import StateAccess


@dataclass(frozen=True, slots=True)
class Pruned:
    """The numbers of entries that were removed.

    Attributes:
        firings: The number of firings.
        events: The number of events.
        backfills: The number of backfills.
    """

    firings: int = 0
    events: int = 0
    backfills: int = 0


def prune(access: StateAccess, before: datetime) -> Pruned:
    """Remove entries of before a time, batch by batch.

    Args:
        access: The agenda.
        before: The time.

    Returns:
        What was removed.
    """
    text = to_text(before)
    firings = events = 0
    while number := access.write(lambda connection: _prune_firings(connection, text)):
        firings += number
    while number := access.write(lambda connection: _prune_events(connection, text)):
        events += number
    backfills = access.write(lambda connection: _prune_backfills(connection, text))
    return Pruned(firings, events, backfills)


def count_old(connection: Connection, before: datetime) -> Pruned:
    """Count the entries that `prune` would remove.

    Args:
        connection: The catalog.
        before: The time.

    Returns:
        The numbers.
    """
    text = to_text(before)
    stays = or_(FIRING.c.finished_at.is_(None), FIRING.c.finished_at >= text)
    covering = exists().where(
        OUTCOME.c.event_id == EVENT.c.event_id, OUTCOME.c.firing_id == FIRING.c.firing_id, stays
    )
    used = exists().where(FIRING.c.backfill_id == BACKFILL.c.backfill_id, stays)
    conditions = (
        (FIRING, [FIRING.c.finished_at < text]),
        (EVENT, [EVENT.c.decided_at < text, ~covering]),
        (BACKFILL, [BACKFILL.c.finished_at < text, ~used]),
    )
    counts = (
        connection.execute(select(func.count()).select_from(table).where(*filters)).scalar_one()
        for table, filters in conditions
    )
    return Pruned(*counts)


def _prune_firings(connection: Connection, before: str) -> int:
    # Only a firing that ended has a time of its end.
    query = select(FIRING.c.firing_id).where(FIRING.c.finished_at < before)
    ids = list(connection.execute(query.limit(BATCH)).scalars())
    connection.execute(delete(FIRING).where(FIRING.c.firing_id.in_(ids)))
    return len(ids)


def _prune_events(connection: Connection, before: str) -> int:
    # An event goes with all of its outcomes: those tell for which models it was decided.
    covering = exists().where(
        OUTCOME.c.event_id == EVENT.c.event_id, OUTCOME.c.firing_id == FIRING.c.firing_id
    )
    query = select(EVENT.c.event_id).where(EVENT.c.decided_at < before, ~covering)
    ids = list(connection.execute(query.limit(BATCH)).scalars())
    connection.execute(delete(OUTCOME).where(OUTCOME.c.event_id.in_(ids)))
    connection.execute(delete(EVENT).where(EVENT.c.event_id.in_(ids)))
    return len(ids)


def _prune_backfills(connection: Connection, before: str) -> int:
    used: ColumnElement[bool] = exists().where(FIRING.c.backfill_id == BACKFILL.c.backfill_id)
    query = delete(BACKFILL).where(BACKFILL.c.finished_at < before, ~used)
    return connection.execute(query).rowcount
