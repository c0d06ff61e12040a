"""Remove old entries of the agenda: ended firings, with their events and outcomes.

An event is removed if its decision is old and no remaining firing covers it. After this, a retry of
the same message counts as a new event. Two kinds of ended firings are kept: firings of an open
backfill, and the newest firing of a slice if it only waited (its end of the wait needs it).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, Connection, and_, delete, exists, func, or_, select

from penstock.engine.state.agenda_tables import BACKFILL, EVENT, FIRING, OUTCOME
from penstock.engine.state.run_history import BATCH
from penstock.engine.state.tables import to_moment, to_text
from penstock.scheduler.values import FiringState
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


@dataclass(frozen=True, slots=True)
class PruneLimits:
    """The times before which entries are old.

    Attributes:
        firings: The limit for the ends of firings and backfills.
        events: The limit for the decisions of events.
    """

    firings: datetime
    events: datetime


def prune(access: StateAccess, limits: PruneLimits) -> Pruned:
    """Remove old entries in batches.

    Args:
        access: The agenda.
        limits: The times.

    Returns:
        The numbers of removed entries.
    """
    text, decided = to_text(limits.firings), to_text(limits.events)
    firings = events = 0
    while number := access.write(lambda connection: _prune_firings(connection, text)):
        firings += number
    while number := access.write(lambda connection: _prune_events(connection, decided)):
        events += number
    backfills = access.write(lambda connection: _prune_backfills(connection, text))
    return Pruned(firings, events, backfills)


def find_end(connection: Connection, number: int) -> datetime | None:
    """Find the end time of the oldest of the newest ended firings.

    Args:
        connection: The catalog.
        number: The number of newest firings.

    Returns:
        The time; None if fewer firings have ended.
    """
    query = select(FIRING.c.finished_at).where(FIRING.c.finished_at.is_not(None))
    query = query.order_by(FIRING.c.finished_at.desc()).offset(number - 1).limit(1)
    text = connection.execute(query).scalar()
    return None if text is None else to_moment(text)


def count_old(connection: Connection, limits: PruneLimits) -> Pruned:
    """Count the entries that `prune` would remove.

    Args:
        connection: The catalog.
        limits: The times.

    Returns:
        The numbers.
    """
    text, decided = to_text(limits.firings), to_text(limits.events)
    stays = or_(FIRING.c.finished_at.is_(None), FIRING.c.finished_at >= text, _is_needed())
    covering = exists().where(
        OUTCOME.c.event_id == EVENT.c.event_id, OUTCOME.c.firing_id == FIRING.c.firing_id, stays
    )
    used = exists().where(FIRING.c.backfill_id == BACKFILL.c.backfill_id, stays)
    conditions = (
        (FIRING, [FIRING.c.finished_at < text, ~_is_needed()]),
        (EVENT, [EVENT.c.decided_at < decided, ~covering]),
        (BACKFILL, [BACKFILL.c.finished_at < text, ~used]),
    )
    counts = (
        connection.execute(select(func.count()).select_from(table).where(*filters)).scalar_one()
        for table, filters in conditions
    )
    return Pruned(*counts)


def _is_needed() -> ColumnElement[bool]:
    """Return whether a firing is kept: its backfill is open, or it records a wait of its slice."""
    newer, backfill = FIRING.alias("newer"), BACKFILL.alias("backfill")
    has_newer = exists().where(
        newer.c.model == FIRING.c.model,
        newer.c.slice_key == FIRING.c.slice_key,
        newer.c.firing_id > FIRING.c.firing_id,
    )
    has_waited = and_(
        FIRING.c.state == FiringState.DONE.value,
        FIRING.c.reason.is_not(None),
        ~has_newer.correlate(FIRING),
    )
    is_open = exists().where(
        backfill.c.backfill_id == FIRING.c.backfill_id, backfill.c.finished_at.is_(None)
    )
    return or_(has_waited, is_open.correlate(FIRING))


def _prune_firings(connection: Connection, before: str) -> int:
    # Open firings have no `finished_at`.
    query = select(FIRING.c.firing_id).where(FIRING.c.finished_at < before, ~_is_needed())
    ids = list(connection.execute(query.limit(BATCH)).scalars())
    connection.execute(delete(FIRING).where(FIRING.c.firing_id.in_(ids)))
    return len(ids)


def _prune_events(connection: Connection, before: str) -> int:
    # An event and its outcomes are removed together: outcomes record the decisions by model.
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
