"""Write the state of running firings: owner, heartbeats, end, and recovery after a crash.

One process claims a firing and owns it until the firing ends. Another process may take it over if
the owner has died, or if its last heartbeat is too old.
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
_NO_OWNER = dict.fromkeys(("host", "pid", "process_started", "machine", "heartbeat_at"))


def claim_firings(
    connection: Connection,
    firing_ids: Sequence[str],
    process: ProcessId,
    fence: int | None = None,
) -> list[str]:
    """Claim queued firings for a process.

    Args:
        connection: The catalog, in a transaction that writes.
        firing_ids: The firings.
        process: The process. It is on this machine.
        fence: The fencing number of the leader; None if no other process decides.

    Returns:
        The ids of the firings that were queued.
    """
    if fence is not None:
        check_fence(connection, LEADER, fence)
    moment = to_text(database_time(connection))
    values = {"state": FiringState.RUNNING.value, "started_at": moment, "heartbeat_at": moment}
    is_queued = [FIRING.c.state == FiringState.QUEUED.value]
    return _update(connection, firing_ids, is_queued, values | owner_values(process))


def record_heartbeat(
    connection: Connection, firing_ids: Sequence[str], process: ProcessId
) -> list[str]:
    """Record a heartbeat of a process.

    Args:
        connection: The catalog, in a transaction that writes.
        firing_ids: The firings that the process runs.
        process: The process.

    Returns:
        The ids of the firings that the process still runs.
    """
    values = {"heartbeat_at": to_text(database_time(connection))}
    return _update(connection, firing_ids, [_is_running(), *_belongs_to(process)], values)


def finish_firing(
    connection: Connection,
    firing_id: str,
    state: FiringState,
    reason: str | None,
    process: ProcessId | None,
) -> bool:
    """Record the end of a firing. End its backfill too, if no other firing of it is open.

    Args:
        connection: The catalog, in a transaction that writes.
        firing_id: The firing.
        state: The final state.
        reason: Why the firing failed or was cancelled.
        process: Do nothing if this process does not run the firing; None for no check.

    Returns:
        False if the firing has already ended, or another process runs it.

    Raises:
        ValueError: The state is the state of an open firing.
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
    """Return the running firings whose process has died, or whose heartbeat is too old.

    Args:
        connection: The catalog.
        moment: The time; None for the time of the database.
        lease_seconds: The maximum age of the last heartbeat of a live process.

    Returns:
        The firings, the oldest first.
    """
    cutoff = _get_cutoff(connection, moment, lease_seconds)
    rows = connection.execute(select(FIRING).where(_is_running()).order_by(FIRING.c.firing_id))
    return [as_firing(row) for row in rows if _is_orphan(row, cutoff)]


def requeue_firing(
    connection: Connection, firing_id: str, moment: datetime | None, lease_seconds: float
) -> bool:
    """Queue a running firing again, if its process has died or is this process.

    Args:
        connection: The catalog, in a transaction that writes.
        firing_id: The firing.
        moment: The time; None for the time of the database.
        lease_seconds: The maximum age of the last heartbeat of a live process.

    Returns:
        False if the firing is not running, or another live process runs it.
    """
    if not _can_take_over(connection, firing_id, moment, lease_seconds):
        return False
    # It keeps `queued_at`: the firings of a slice run in the order of their events.
    values = {"state": FiringState.QUEUED.value, "started_at": None}
    return bool(_update(connection, [firing_id], [_is_running()], values | _NO_OWNER))


def take_over_firing(
    connection: Connection, firing_id: str, moment: datetime | None, lease_seconds: float
) -> bool:
    """Make this process the owner of a running firing whose process has died.

    Args:
        connection: The catalog, in a transaction that writes.
        firing_id: The firing.
        moment: The time; None for the time of the database.
        lease_seconds: The maximum age of the last heartbeat of a live process.

    Returns:
        False if the firing is not running, or another live process runs it.
    """
    if not _can_take_over(connection, firing_id, moment, lease_seconds):
        return False
    values = owner_values(this_process())
    values["heartbeat_at"] = to_text(database_time(connection))
    return bool(_update(connection, [firing_id], [_is_running()], values))


def _can_take_over(
    connection: Connection, firing_id: str, moment: datetime | None, lease_seconds: float
) -> bool:
    """Return whether a firing is running, and its process is this process or has died."""
    query = select(FIRING).where(FIRING.c.firing_id == firing_id, _is_running())
    row = connection.execute(query).first()
    if row is None:
        return False
    if ProcessId(row.host, row.pid, row.process_started) == this_process():
        return True
    return _is_orphan(row, _get_cutoff(connection, moment, lease_seconds))


def _get_cutoff(connection: Connection, moment: datetime | None, lease_seconds: float) -> datetime:
    return (moment or database_time(connection)) - timedelta(seconds=lease_seconds)


def _is_orphan(row: Row[Any], cutoff: datetime) -> bool:
    return to_moment(row.heartbeat_at) <= cutoff or is_owner_gone(row)


def _is_running() -> ColumnElement[bool]:
    return FIRING.c.state == FiringState.RUNNING.value


def _belongs_to(process: ProcessId) -> list[ColumnElement[bool]]:
    return [FIRING.c[name] == value for name, value in owner_values(process).items()]


def _update(
    connection: Connection,
    firing_ids: Sequence[str],
    conditions: Sequence[ColumnElement[bool]],
    values: dict[str, Any],
) -> list[str]:
    """Update the firings that meet the conditions. Return their ids."""
    updated: list[str] = []
    for batch in batches(firing_ids):
        query = select(FIRING.c.firing_id).where(FIRING.c.firing_id.in_(batch), *conditions)
        ids = set(connection.execute(query).scalars())
        connection.execute(update(FIRING).where(FIRING.c.firing_id.in_(ids)).values(**values))
        updated += [firing_id for firing_id in batch if firing_id in ids]
    return updated
