"""Firings that run: who runs them, signs of life, their end, and those whose process has died.

A firing is started by one process. It belongs to that process until it ends, or until the process
is gone or silent for too long.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, select, update

from penstock.engine.state.agenda_tables import FIRING
from penstock.engine.state.claims import database_time, is_owner_gone, owner_values
from penstock.engine.state.records import ProcessId, this_process
from penstock.engine.state.run_history import batches
from penstock.engine.state.tables import to_moment, to_text
from penstock.scheduler.values import Firing, FiringState
from penstock.server import backfill_store
from penstock.server.agenda_rows import as_firing, storable
from penstock.server.leases import LEADER, check_fence

_OPEN = [state.value for state in FiringState if state.is_open]
_NOBODY = dict.fromkeys(("host", "pid", "process_started", "machine", "heartbeat_at"))


def start(
    connection: Connection,
    firing_ids: Sequence[str],
    process: ProcessId,
    fence: int | None = None,
) -> list[str]:
    """Claim queued firings for a process.

    Args:
        connection: The catalog, in a transaction that writes.
        firing_ids: The firings.
        process: The process, of this machine.
        fence: The fence of the leader; None if no other process decides.

    Returns:
        The ids of those that were queued.
    """
    if fence is not None:
        check_fence(connection, LEADER, fence)
    moment = to_text(database_time(connection))
    values = {"state": FiringState.RUNNING.value, "started_at": moment, "heartbeat_at": moment}
    is_queued = [FIRING.c.state == FiringState.QUEUED.value]
    return _update(connection, firing_ids, is_queued, values | owner_values(process))


def beat(connection: Connection, firing_ids: Sequence[str], process: ProcessId) -> list[str]:
    """Record a sign of life of a process.

    Args:
        connection: The catalog, in a transaction that writes.
        firing_ids: The firings that it runs.
        process: The process.

    Returns:
        The ids of those that it still runs.
    """
    values = {"heartbeat_at": to_text(database_time(connection))}
    return _update(connection, firing_ids, [_runs(), *_belongs_to(process)], values)


def finish(
    connection: Connection,
    firing_id: str,
    state: FiringState,
    reason: str | None,
    process: ProcessId | None,
) -> bool:
    """Record the end of a firing, and of its backfill if nothing of that is open any more.

    Args:
        connection: The catalog, in a transaction that writes.
        firing_id: The firing.
        state: How it ended.
        reason: Why.
        process: Only if this process runs it; None for any.

    Returns:
        False where it had ended before, or another process runs it.

    Raises:
        ValueError: The state is not one of an ended firing.
    """
    if state.is_open:
        raise ValueError(f"a firing does not end as {state.value}")
    conditions = [FIRING.c.state.in_(_OPEN), *([] if process is None else _belongs_to(process))]
    values = {"state": state.value, "reason": storable(reason)}
    moment = database_time(connection)
    values["finished_at"] = to_text(moment)
    if not _update(connection, [firing_id], conditions, values):
        return False
    query = select(FIRING.c.backfill_id).where(FIRING.c.firing_id == firing_id)
    backfill_store.end_backfills(connection, [connection.execute(query).scalar()], moment)
    return True


def find_orphans(
    connection: Connection, moment: datetime | None, lease_seconds: float
) -> list[Firing]:
    """Return the firings whose process is gone for certain, or was silent for too long.

    Args:
        connection: The catalog.
        moment: The time; None for that of the database.
        lease_seconds: How long a process may be silent.

    Returns:
        The firings, the oldest first.
    """
    oldest_beat = _oldest_beat(connection, moment, lease_seconds)
    rows = connection.execute(select(FIRING).where(_runs()).order_by(FIRING.c.firing_id))
    return [as_firing(row) for row in rows if _is_orphan(row, oldest_beat)]


def requeue(
    connection: Connection, firing_id: str, moment: datetime | None, lease_seconds: float
) -> bool:
    """Queue a firing again that this process runs, or whose process is gone.

    Args:
        connection: The catalog, in a transaction that writes.
        firing_id: The firing.
        moment: The time; None for that of the database.
        lease_seconds: How long a process may be silent.

    Returns:
        False where the firing does not run, or a process that lives runs it.
    """
    if not _is_free(connection, firing_id, moment, lease_seconds):
        return False
    # It keeps its place in the queue: firings of one slice run in the order of their events.
    values = {"state": FiringState.QUEUED.value, "started_at": None}
    return bool(_update(connection, [firing_id], [_runs()], values | _NOBODY))


def take_over(
    connection: Connection, firing_id: str, moment: datetime | None, lease_seconds: float
) -> bool:
    """Make this process the one that runs a firing, whose process is gone.

    Args:
        connection: The catalog, in a transaction that writes.
        firing_id: The firing.
        moment: The time; None for that of the database.
        lease_seconds: How long a process may be silent.

    Returns:
        False where the firing does not run, or a process that lives runs it.
    """
    if not _is_free(connection, firing_id, moment, lease_seconds):
        return False
    values = owner_values(this_process())
    values["heartbeat_at"] = to_text(database_time(connection))
    return bool(_update(connection, [firing_id], [_runs()], values))


def _is_free(
    connection: Connection, firing_id: str, moment: datetime | None, lease_seconds: float
) -> bool:
    """Return whether a firing runs, in this process or in one that is gone."""
    row = connection.execute(select(FIRING).where(FIRING.c.firing_id == firing_id, _runs())).first()
    if row is None:
        return False
    if ProcessId(row.host, row.pid, row.process_started) == this_process():
        return True
    return _is_orphan(row, _oldest_beat(connection, moment, lease_seconds))


def _oldest_beat(connection: Connection, moment: datetime | None, lease_seconds: float) -> datetime:
    return (moment or database_time(connection)) - timedelta(seconds=lease_seconds)


def _is_orphan(row: Row[Any], oldest_beat: datetime) -> bool:
    return to_moment(row.heartbeat_at) <= oldest_beat or is_owner_gone(row)


def _runs() -> ColumnElement[bool]:
    return FIRING.c.state == FiringState.RUNNING.value


def _belongs_to(process: ProcessId) -> list[ColumnElement[bool]]:
    return [FIRING.c[name] == value for name, value in owner_values(process).items()]


def _update(
    connection: Connection,
    firing_ids: Sequence[str],
    conditions: Sequence[ColumnElement[bool]],
    values: dict[str, Any],
) -> list[str]:
    """Update those of the firings for which the conditions hold; return their ids."""
    updated: list[str] = []
    for batch in batches(firing_ids):
        query = select(FIRING.c.firing_id).where(FIRING.c.firing_id.in_(batch), *conditions)
        ids = set(connection.execute(query).scalars())
        connection.execute(update(FIRING).where(FIRING.c.firing_id.in_(ids)).values(**values))
        updated += [firing_id for firing_id in batch if firing_id in ids]
    return updated
