"""Store backfills: their slices, state and progress."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, func, insert, select, update

from penstock.engine.state.agenda_tables import BACKFILL, EVENT, FIRING
from penstock.engine.state.claims import database_time
from penstock.engine.state.tables import to_moment, to_text
from penstock.scheduler.values import FiringState
from penstock.server.agenda_rows import parse_time


class BackfillState(Enum):
    """The states of a backfill."""

    ACTIVE = "active"
    PAUSED = "paused"
    CANCELLED = "cancelled"
    DONE = "done"

    @property
    def is_open(self) -> bool:
        """Return whether slices of the backfill may still run."""
        return self in {BackfillState.ACTIVE, BackfillState.PAUSED}


@dataclass(frozen=True, slots=True)
class Backfill:
    """A request of a user to build a range of slices of a model.

    Attributes:
        id: A UUID of version 7.
        model: The name of the model.
        start: The key of the oldest slice.
        end: The key of the newest slice.
        created_at: The time of the request.
        state: The state.
        finished_at: The time when it was done or cancelled.
        user: The user who requested it.
    """

    id: str
    model: str
    start: str
    end: str
    created_at: datetime
    state: BackfillState = BackfillState.ACTIVE
    finished_at: datetime | None = None
    user: str | None = None


@dataclass(frozen=True, slots=True)
class BackfillProgress:
    """A backfill with the counts of its firings.

    Attributes:
        backfill: The backfill.
        firings: The number of its firings, by state.
    """

    backfill: Backfill
    firings: Mapping[FiringState, int] = field(default_factory=dict)


def insert_backfill(connection: Connection, backfill: Backfill) -> None:
    """Record a backfill.

    Args:
        connection: The catalog, in a transaction that writes.
        backfill: The backfill.
    """
    connection.execute(
        insert(BACKFILL).values(
            backfill_id=backfill.id,
            model=backfill.model,
            first=backfill.start,
            last=backfill.end,
            state=backfill.state.value,
            created_at=to_text(backfill.created_at),
            user_name=backfill.user,
        )
    )


def set_state(connection: Connection, backfill_id: str, state: BackfillState) -> bool:
    """Set the state of a backfill that has not ended.

    The new state `CANCELLED` also cancels its firings that have not started.

    Args:
        connection: The catalog, in a transaction that writes.
        backfill_id: The backfill.
        state: The new state.

    Returns:
        False if there is no open backfill with this id.
    """
    moment = to_text(database_time(connection))
    values = {"state": state.value, "finished_at": None if state.is_open else moment}
    query = update(BACKFILL).where(BACKFILL.c.backfill_id == backfill_id, _is_open())
    if connection.execute(query.values(**values)).rowcount == 0:
        return False
    if state is BackfillState.CANCELLED:
        pending = FIRING.c.state.in_([FiringState.WAITING.value, FiringState.QUEUED.value])
        ended = {"state": FiringState.CANCELLED.value, "finished_at": moment}
        connection.execute(
            update(FIRING)
            .where(FIRING.c.backfill_id == backfill_id, pending)
            .values(**ended, reason="its backfill was cancelled")
        )
    return True


def end_backfills(
    connection: Connection, backfill_ids: Iterable[str | None], moment: datetime
) -> None:
    """End the backfills that have neither open firings nor undecided events.

    The final state is `CANCELLED` if a firing was cancelled, or if no slice fired.

    Args:
        connection: The catalog, in a transaction that has recorded ends or outcomes.
        backfill_ids: The backfills to check. None values are ignored.
        moment: The time of the database.
    """
    for backfill_id in sorted({text for text in backfill_ids if text is not None}):
        pending = select(EVENT.c.event_id).where(EVENT.c.decided_at.is_(None))
        if connection.execute(pending.where(EVENT.c.backfill_id == backfill_id).limit(1)).first():
            continue
        query = select(FIRING.c.state).where(FIRING.c.backfill_id == backfill_id).distinct()
        states = {FiringState(text) for text in connection.execute(query).scalars()}
        if any(state.is_open for state in states):
            continue
        is_cancelled = FiringState.CANCELLED in states or not states
        end = BackfillState.CANCELLED if is_cancelled else BackfillState.DONE
        connection.execute(
            update(BACKFILL)
            .where(BACKFILL.c.backfill_id == backfill_id, _is_open())
            .values(state=end.value, finished_at=to_text(moment))
        )


def find_cancelled(connection: Connection, backfill_ids: Collection[str]) -> frozenset[str]:
    """Find the backfills that are cancelled.

    Args:
        connection: The catalog.
        backfill_ids: The ids of a few backfills.

    Returns:
        The ids of the cancelled backfills.
    """
    is_cancelled = BACKFILL.c.state == BackfillState.CANCELLED.value
    query = select(BACKFILL.c.backfill_id).where(BACKFILL.c.backfill_id.in_(backfill_ids))
    return frozenset(connection.execute(query.where(is_cancelled)).scalars())


def list_backfills(connection: Connection) -> list[BackfillProgress]:
    """Return all backfills, the newest first.

    Args:
        connection: The catalog.

    Returns:
        The backfills with the counts of their firings.
    """
    numbers: dict[str, dict[FiringState, int]] = defaultdict(dict)
    groups = (FIRING.c.backfill_id, FIRING.c.state)
    query = select(*groups, func.count()).where(FIRING.c.backfill_id.is_not(None))
    for backfill_id, state, number in connection.execute(query.group_by(*groups)):
        numbers[backfill_id][FiringState(state)] = number
    newest_first = (BACKFILL.c.created_at.desc(), BACKFILL.c.backfill_id.desc())
    rows = connection.execute(select(BACKFILL).order_by(*newest_first))
    return [BackfillProgress(_as_backfill(row), numbers.get(row.backfill_id, {})) for row in rows]


def _is_open() -> ColumnElement[bool]:
    return BACKFILL.c.state.in_([state.value for state in BackfillState if state.is_open])


def _as_backfill(row: Row[Any]) -> Backfill:
    return Backfill(
        id=row.backfill_id,
        model=row.model,
        start=row.first,
        end=row.last,
        created_at=to_moment(row.created_at),
        state=BackfillState(row.state),
        finished_at=parse_time(row.finished_at),
        user=row.user_name,
    )
