"""Leases: which of the processes that serve a project leads, and until when.

A lease expires some time after its last renewal, by the clock of the database. It ends at once if
its process is known to have ended. Each new holder gets a higher fencing number. The transaction of
each decision checks this number. So a process that was suspended and lost the lease records
nothing.
"""

from __future__ import annotations

import contextlib
import threading
import time
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Self

from sqlalchemy import Connection, insert, select, update

from penstock.engine.state.agenda_tables import LEASE
from penstock.engine.state.claims import Timing, database_time, has_ended, owner_values
from penstock.engine.state.records import ProcessId, this_process
from penstock.engine.state.tables import to_moment, to_text
from penstock.errors import ClaimLost, PenstockError
from penstock.server.state_access import StateAccess

if TYPE_CHECKING:
    from penstock.destinations.catalog import Catalog

LEADER = "leader"
"""The name of the lease of the process that decides what runs."""


@dataclass(frozen=True, slots=True)
class Lease:
    """A lease that a process holds.

    Attributes:
        name: The name of the lease.
        holder: The id of the holder.
        process: The process of the holder.
        fence: The fencing number. It grows with each new holder.
        expires_at: When the lease expires without a renewal, by the clock of the database.
    """

    name: str
    holder: str
    process: ProcessId
    fence: int
    expires_at: datetime


def find_lease(connection: Connection, name: str) -> Lease | None:
    """Find a lease that has not expired.

    Args:
        connection: The catalog.
        name: The name of the lease.

    Returns:
        The lease; None if no process holds it.
    """
    row = connection.execute(select(LEASE).where(LEASE.c.name == name)).one_or_none()
    if row is None or has_ended(row, database_time(connection)):
        return None
    process = ProcessId(row.host, row.pid, row.process_started)
    return Lease(row.name, row.holder, process, row.fence, to_moment(row.expires_at))


def take(connection: Connection, name: str, holder: str, seconds: float) -> int | None:
    """Take a lease that no other process holds.

    Args:
        connection: The catalog, in a transaction that writes.
        name: The name of the lease.
        holder: The id of the process that takes the lease.
        seconds: The time after which the lease expires without a renewal.

    Returns:
        The fencing number, higher than all before; None if another process holds the lease.
    """
    moment = database_time(connection)
    row = connection.execute(select(LEASE).where(LEASE.c.name == name)).one_or_none()
    if row is not None and row.holder != holder and not has_ended(row, moment):
        return None
    fence = 1 if row is None else row.fence + 1
    values = {
        "holder": holder,
        **owner_values(this_process()),
        "fence": fence,
        "expires_at": to_text(moment + timedelta(seconds=seconds)),
    }
    if row is None:
        connection.execute(insert(LEASE).values(name=name, **values))
    else:
        connection.execute(update(LEASE).where(LEASE.c.name == name).values(**values))
    return fence


def renew(connection: Connection, name: str, fence: int, seconds: float) -> bool:
    """Renew a lease that no other process has taken over.

    Args:
        connection: The catalog, in a transaction that writes.
        name: The name of the lease.
        fence: The fencing number of the holder.
        seconds: The time after which the lease expires without another renewal.

    Returns:
        False if another process has taken it over.
    """
    expires_at = database_time(connection) + timedelta(seconds=seconds)
    return _set_expiry(connection, name, fence, expires_at)


def release(connection: Connection, name: str, fence: int) -> bool:
    """Release a lease, so that another process can take it at once.

    Args:
        connection: The catalog, in a transaction that writes.
        name: The name of the lease.
        fence: The fencing number of the holder.

    Returns:
        False if another process has taken it over.
    """
    return _set_expiry(connection, name, fence, database_time(connection))


def _set_expiry(connection: Connection, name: str, fence: int, moment: datetime) -> bool:
    query = update(LEASE).where(LEASE.c.name == name, LEASE.c.fence == fence)
    return connection.execute(query.values(expires_at=to_text(moment))).rowcount == 1


def check_fence(connection: Connection, name: str, fence: int) -> None:
    """Check in the transaction of a holder that it still holds its lease.

    Args:
        connection: The catalog, in a transaction that writes.
        name: The name of the lease.
        fence: The fencing number of the holder.

    Raises:
        ClaimLost: If another process has taken the lease over.
    """
    query = select(LEASE.c.fence, LEASE.c.holder).where(LEASE.c.name == name)
    row = connection.execute(query).one_or_none()
    if row is not None and row.fence == fence:
        return
    holder = "nobody" if row is None else row.holder
    raise ClaimLost(
        f"the lease {name!r} was not renewed in time, and {holder} has taken it over",
        hint="nothing was recorded; this process waits until it leads again",
        data={"lease": name, "fence": fence},
    )


class Leadership:
    """The lease of this process. A thread renews it until the `with` block ends.

    Attributes:
        lost: Set when another process may have the lease. Then this process must not decide.
    """

    def __init__(
        self,
        catalog: Catalog,
        holder: str,
        *,
        name: str = LEADER,
        timing: Timing | None = None,
    ) -> None:
        """Create a leadership without the lease. `take` takes it.

        Args:
            catalog: The catalog that stores the lease.
            holder: The unique id of this process.
            name: The name of the lease.
            timing: The time between renewals, and the time until the lease expires.
        """
        self.lost = threading.Event()
        self._access = StateAccess(catalog)
        self._holder = holder
        self._name = name
        self._timing = timing or Timing()
        self._fence: int | None = None
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        """Return this leadership, without taking the lease.

        Returns:
            This object.
        """
        return self

    def __exit__(self, *_: object) -> None:
        """Stop renewing, and release the lease."""
        self._stop()
        fence, self._fence = self._fence, None
        if fence is not None:
            with contextlib.suppress(PenstockError):  # the lease expires anyway
                self._access.write(lambda connection: release(connection, self._name, fence))

    @property
    def fence(self) -> int | None:
        """Return the fencing number of this process; None if it does not lead."""
        return None if self.lost.is_set() else self._fence

    def take(self) -> int | None:
        """Take the lease if no other process holds it, and start to renew it.

        Returns:
            The fencing number; None if another process leads.
        """
        if self.fence is not None:
            return self.fence
        self._stop()
        taken_at = time.monotonic()
        seconds = self._timing.lease
        fence = self._access.write(
            lambda connection: take(connection, self._name, self._holder, seconds)
        )
        self._fence = fence
        if fence is not None:
            self.lost.clear()
            self._stopped.clear()
            self._thread = threading.Thread(
                target=self._renew, args=(fence, taken_at), name="penstock-lease", daemon=True
            )
            self._thread.start()
        return fence

    def _stop(self) -> None:
        self._stopped.set()
        if self._thread is not None:
            self._thread.join(self._timing.lease)
            self._thread = None

    def _renew(self, fence: int, renewed_at: float) -> None:
        """Renew the lease until the thread is stopped or the lease is lost."""
        seconds = self._timing.lease
        try:
            while not self._stopped.wait(self._timing.beat):
                attempted_at = time.monotonic()
                try:
                    is_held = self._access.write(
                        lambda connection: renew(connection, self._name, fence, seconds)
                    )
                except PenstockError:  # try again, until the lease has expired
                    if time.monotonic() - renewed_at < seconds:
                        continue
                    is_held = False
                if not is_held:
                    return
                renewed_at = attempted_at
        finally:
            if not self._stopped.is_set():
                self.lost.set()
