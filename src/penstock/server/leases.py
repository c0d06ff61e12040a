"""Leases: which process leads the others that serve a project, and until when.

A lease ends some time after its last renewal by the clock of the database, and at once if its
process is gone for certain. The next holder has a higher fence. The fence is checked in the
transaction of what the holder decides, so a process that was paused meanwhile records nothing.
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
    """A lease that somebody holds.

    Attributes:
        name: What is led.
        holder: The id of the holder.
        process: Its process.
        fence: The number of the lease, which only grows.
        expires_at: When it ends without a renewal, by the clock of the database.
    """

    name: str
    holder: str
    process: ProcessId
    fence: int
    expires_at: datetime


def find_lease(connection: Connection, name: str) -> Lease | None:
    """Return who holds a lease.

    Args:
        connection: The catalog.
        name: The lease.

    Returns:
        The lease; None where nobody holds it.
    """
    row = connection.execute(select(LEASE).where(LEASE.c.name == name)).one_or_none()
    if row is None or has_ended(row, database_time(connection)):
        return None
    process = ProcessId(row.host, row.pid, row.process_started)
    return Lease(row.name, row.holder, process, row.fence, to_moment(row.expires_at))


def take(connection: Connection, name: str, holder: str, seconds: float) -> int | None:
    """Take a lease that nobody else holds.

    Args:
        connection: The catalog, in a transaction that writes.
        name: The lease.
        holder: The id of the process that takes it.
        seconds: When the lease ends without a renewal.

    Returns:
        The fence, higher than all before; None where another holds the lease.
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
    """Renew a lease that nobody has taken over.

    Args:
        connection: The catalog, in a transaction that writes.
        name: The lease.
        fence: Its number.
        seconds: When the lease ends without another renewal.

    Returns:
        False where another has taken it.
    """
    until = database_time(connection) + timedelta(seconds=seconds)
    return _expire(connection, name, fence, until)


def release(connection: Connection, name: str, fence: int) -> bool:
    """End a lease, so that another process takes it at once.

    Args:
        connection: The catalog, in a transaction that writes.
        name: The lease.
        fence: Its number.

    Returns:
        False where another has taken it.
    """
    return _expire(connection, name, fence, database_time(connection))


def _expire(connection: Connection, name: str, fence: int, moment: datetime) -> bool:
    row = update(LEASE).where(LEASE.c.name == name, LEASE.c.fence == fence)
    return connection.execute(row.values(expires_at=to_text(moment))).rowcount == 1


def check_fence(connection: Connection, name: str, fence: int) -> None:
    """Check that nobody has taken a lease over, in the transaction of what its holder writes.

    Args:
        connection: The catalog, in a transaction that writes.
        name: The lease.
        fence: The number under which the caller took it.

    Raises:
        ClaimLost: Another has taken it.
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
    """The lease of one process, renewed by a thread until the `with` block ends.

    Attributes:
        lost: Set when another process may lead: the holder stops deciding then.
    """

    def __init__(
        self,
        catalog: Catalog,
        holder: str,
        *,
        name: str = LEADER,
        timing: Timing | None = None,
    ) -> None:
        """Prepare to lead; `take` takes the lease.

        Args:
            catalog: The catalog that has the lease.
            holder: The id of this process, which no other has.
            name: The lease.
            timing: Between renewals, and until a lease ends.
        """
        self.lost = threading.Event()
        self._access = StateAccess(catalog)
        self._holder = holder
        self._name = name
        self._timing = timing or Timing()
        self._fence: int | None = None
        self._ends = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        """Begin, without taking the lease.

        Returns:
            Itself.
        """
        return self

    def __exit__(self, *_: object) -> None:
        """Stop renewing, and release the lease."""
        self._stop()
        fence, self._fence = self._fence, None
        if fence is not None:
            with contextlib.suppress(PenstockError):  # it ends by itself
                self._access.write(lambda connection: release(connection, self._name, fence))

    @property
    def fence(self) -> int | None:
        """Return the fence under which this process leads; None where it does not."""
        return None if self.lost.is_set() else self._fence

    def take(self) -> int | None:
        """Take the lease if nobody else holds it, and renew it from then on.

        Returns:
            The fence; None where another process leads.
        """
        if self.fence is not None:
            return self.fence
        self._stop()
        begin = time.monotonic()
        seconds = self._timing.lease
        fence = self._access.write(
            lambda connection: take(connection, self._name, self._holder, seconds)
        )
        self._fence = fence
        if fence is not None:
            self.lost.clear()
            self._ends.clear()
            self._thread = threading.Thread(
                target=self._renew, args=(fence, begin), name="penstock-lease", daemon=True
            )
            self._thread.start()
        return fence

    def _stop(self) -> None:
        self._ends.set()
        if self._thread is not None:
            self._thread.join(self._timing.lease)
            self._thread = None

    def _renew(self, fence: int, renewed_at: float) -> None:
        """Renew the lease until the end, or until it is lost."""
        seconds = self._timing.lease
        try:
            while not self._ends.wait(self._timing.beat):
                begin = time.monotonic()
                try:
                    is_held = self._access.write(
                        lambda connection: renew(connection, self._name, fence, seconds)
                    )
                except PenstockError:  # perhaps the next time, before the lease ends
                    if time.monotonic() - renewed_at < seconds:
                        continue
                    is_held = False
                if not is_held:
                    return
                renewed_at = begin
        finally:
            if not self._ends.is_set():
                self.lost.set()
