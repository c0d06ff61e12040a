"""Backfills: what a person asked for, how far it has come, and whether it goes on."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import Any

from sqlalchemy import Connection, Row, func, insert, select, update

from penstock.engine.state.agenda_tables import BACKFILL, FIRING
from penstock.engine.state.claims import database_time
from penstock.engine.state.tables import to_moment, to_text
from penstock.scheduler.values import FiringState
from penstock.server.agenda_rows import moment_or_none


class BackfillState(Enum):
    """The states of a backfill."""

    ACTIVE = "active"
    PAUSED = "paused"
    CANCELLED = "cancelled"
    DONE = "done"

    @property
    def is_open(self) -> bool:
        """Return whether slices of it may still run."""
        return self in {BackfillState.ACTIVE, BackfillState.PAUSED}


@dataclass(frozen=True, slots=True)
class Backfill:
    """Slices of a model that a person asked for.

    Attributes:
        id: A UUID of version 7.
        model: The name of the model.
        start: The key of its oldest slice.
        end: The key of its newest slice.
        created_at: When it was asked for.
        state: Where it stands.
        finished_at: When it was done or cancelled.
        user: Who asked for it.
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
    """A backfill, and how many of its firings are in each state.

    Attributes:
        backfill: The backfill.
        firings: The numbers of its firings, by their states.
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

    To cancel it cancels its firings that have not started, too.

    Args:
        connection: The catalog, in a transaction that writes.
        backfill_id: The backfill.
        state: Its new state.

    Returns:
        False where no open backfill has this id.
    """
    moment = to_text(database_time(connection))
    is_open = BACKFILL.c.state.in_([kind.value for kind in BackfillState if kind.is_open])
    values = {"state": state.value, "finished_at": None if state.is_open else moment}
    query = update(BACKFILL).where(BACKFILL.c.backfill_id == backfill_id, is_open)
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


def find_cancelled(connection: Connection, backfill_ids: Collection[str]) -> frozenset[str]:
    """Return which backfills were cancelled.

    Args:
        connection: The catalog.
        backfill_ids: A few backfills.

    Returns:
        The ids of those that were.
    """
    is_cancelled = BACKFILL.c.state == BackfillState.CANCELLED.value
    query = select(BACKFILL.c.backfill_id).where(BACKFILL.c.backfill_id.in_(backfill_ids))
    return frozenset(connection.execute(query.where(is_cancelled)).scalars())


def list_backfills(connection: Connection) -> list[BackfillProgress]:
    """Return all backfills, the newest first.

    Args:
        connection: The catalog.

    Returns:
        The backfills with the numbers of their firings.
    """
    numbers: dict[str, dict[FiringState, int]] = defaultdict(dict)
    groups = (FIRING.c.backfill_id, FIRING.c.state)
    query = select(*groups, func.count()).where(FIRING.c.backfill_id.is_not(None))
    for backfill_id, state, number in connection.execute(query.group_by(*groups)):
        numbers[backfill_id][FiringState(state)] = number
    newest_first = (BACKFILL.c.created_at.desc(), BACKFILL.c.backfill_id.desc())
    rows = connection.execute(select(BACKFILL).order_by(*newest_first))
    return [BackfillProgress(_as_backfill(row), numbers.get(row.backfill_id, {})) for row in rows]


def _as_backfill(row: Row[Any]) -> Backfill:
    return Backfill(
        id=row.backfill_id,
        model=row.model,
        start=row.first,
        end=row.last,
        created_at=to_moment(row.created_at),
        state=BackfillState(row.state),
        finished_at=moment_or_none(row.finished_at),
        user=row.user_name,
    )
