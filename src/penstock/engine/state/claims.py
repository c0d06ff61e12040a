"""Claims: which run is making which slices of a table, under which number, and until when.

A claim is taken for all slices of a batch at once, so that nobody holds some while waiting for
others, and two runs cannot wait for each other. A thread extends the claims of a run while it
lives; a claim that was not extended ends by the clock of the database, and another run takes over.
The number of a claim, which only grows, is checked in the transaction of the data: a process that
was paused meanwhile publishes nothing.
"""

from __future__ import annotations

import contextlib
import getpass
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self

from sqlalchemy import Row, delete, func, insert, select, update

from penstock.engine.state.records import WHOLE, ProcessId, is_gone, this_process
from penstock.engine.state.tables import CLAIM, META, to_moment, to_text
from penstock.errors import ClaimLost, CommitConflict, PenstockError
from penstock.model.time.interval import interval_of
from penstock.model.time.slice import shown

if TYPE_CHECKING:
    from sqlalchemy import Connection

_FENCE = "claim_fence"  # in penstock_meta: the number of the last claim


class Writes(Protocol):
    def write(self, act: Callable[[Connection], None], /) -> None: ...


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds: between two signs of life, after the last of which a claim ends, between two looks
    at a claim that is waited for.
    """

    beat: float = 10.0
    lease: float = 30.0
    look: float = 0.5


@dataclass(frozen=True, slots=True)
class Holding:
    """The run that holds a slice. ``since`` is by the clock of the database."""

    run_id: str
    process: ProcessId
    user: str
    since: datetime

    def __str__(self) -> str:
        """``run 0198 (ann on db1, pid 4242) since 2026-01-02 02:30:05 UTC``."""
        process = self.process
        who = f"{self.user} on {process.host}, pid {process.pid}"
        return f"run {self.run_id} ({who}) since {self.since:%Y-%m-%d %H:%M:%S} UTC"


@dataclass(frozen=True, slots=True)
class Claim:
    """``slices`` of a target, by their texts, that a run holds under the number ``fence``."""

    lake: str
    target: str
    slices: tuple[str, ...]
    run_id: str
    fence: int

    def check(self, connection: Connection) -> None:
        """Raise ClaimLost unless all of it is held still. Called in the transaction of the data."""
        own = (CLAIM.c.target == self.target, CLAIM.c.fence == self.fence)
        held = set(connection.execute(select(CLAIM.c.slice).where(*own)).scalars())
        lost = [text for text in self.slices if text not in held]
        if not lost:
            return
        what = f"{shown(lost[0]) or 'all'} of {self.target}"
        raise ClaimLost(
            f"the run gave no sign of life for too long, and its claim of {what} has ended: "
            "another run may have made it",
            hint="nothing was published; penstock status shows what is there",
            data={"table": self.target, "slices": tuple(lost)},
        )


@dataclass(frozen=True, slots=True)
class Asked:
    """Slices that a run wants to hold. ``all_or_none``: none unless all are free."""

    lake: str
    target: str
    slices: tuple[str, ...]
    run_id: str
    all_or_none: bool = True


Held = Mapping[str, Holding]  # the slices that other runs hold, by their texts
Holders = Callable[[str, Sequence[str]], Held]  # of a target and slices
NOBODY: Holders = lambda _, __: {}  # noqa: E731 - a value of this type


def take(connection: Connection, asked: Asked, lease: float) -> tuple[Claim | None, Held]:
    """Claim what no other run holds, and say who holds the rest."""
    at = database_time(connection)
    of_target = (CLAIM.c.target == asked.target, CLAIM.c.run_id != asked.run_id)
    rows = connection.execute(select(CLAIM).where(*of_target)).all()
    held = _held(asked.slices, [row for row in rows if not has_ended(row, at)])
    free = [text for text in asked.slices if text not in held]
    if not free or (held and asked.all_or_none):
        return None, held
    gone = [
        row.slice
        for row in rows
        if has_ended(row, at) and any(_meet(row.slice, text) for text in free)
    ]
    for text in {*gone, *free}:
        connection.execute(
            delete(CLAIM).where(CLAIM.c.target == asked.target, CLAIM.c.slice == text)
        )
    fence = _next_fence(connection)
    same = {
        "target": asked.target,
        "run_id": asked.run_id,
        "fence": fence,
        **owner_values(this_process()),
        "user_name": user_name(),
        "claimed_at": to_text(at),
        "expires_at": to_text(at + timedelta(seconds=lease)),
    }
    connection.execute(insert(CLAIM), [{**same, "slice": text} for text in free])
    return Claim(asked.lake, asked.target, tuple(free), asked.run_id, fence), held


def release(connection: Connection, run_id: str, fence: int | None = None) -> None:
    """Give up a claim of a run, or all that it holds."""
    own = [CLAIM.c.run_id == run_id, *([] if fence is None else [CLAIM.c.fence == fence])]
    connection.execute(delete(CLAIM).where(*own))


def extend(connection: Connection, run_id: str, lease: float) -> None:
    """Extend all claims of a run that nobody has taken over."""
    until = to_text(database_time(connection) + timedelta(seconds=lease))
    connection.execute(update(CLAIM).where(CLAIM.c.run_id == run_id).values(expires_at=until))


def holders(connection: Connection) -> Holders:
    """Return which slices runs hold now, of all targets."""
    by_target: dict[str, list[Row[Any]]] = {}
    at: datetime | None = None
    for row in connection.execute(select(CLAIM)):
        at = at or database_time(connection)
        if not has_ended(row, at):
            by_target.setdefault(row.target, []).append(row)
    return lambda target, slices: _held(slices, by_target.get(target, ()))


def _held(slices: Sequence[str], rows: Sequence[Row[Any]]) -> dict[str, Holding]:
    found: dict[str, Holding] = {}
    for row in rows:
        process = ProcessId(row.host, row.pid, row.process_started)
        holding = Holding(row.run_id, process, row.user_name, to_moment(row.claimed_at))
        found |= {text: holding for text in slices if _meet(text, row.slice)}
    return found


def _meet(text: str, other: str) -> bool:
    """Tell whether two slices have rows in common: a whole table has some with each."""
    if text == other or WHOLE in (text, other):
        return True
    first, second = interval_of(text), interval_of(other)
    return first is not None and second is not None and first.overlap(second) is not None


def owner_values(process: ProcessId) -> dict[str, str | int]:
    """Return the columns that identify a process of this machine.

    Args:
        process: The process.

    Returns:
        The values, by the names of the columns.
    """
    return {
        "host": process.host,
        "pid": process.pid,
        "process_started": process.started,
        "machine": _machine(),
    }


def is_owner_gone(row: Row[Any]) -> bool:
    """Return whether the process that a row names has ended for certain.

    Args:
        row: A row with the columns of `owner_values`.

    Returns:
        False also for a process of another machine.
    """
    is_here = bool(row.machine) and row.machine == _machine()
    return is_here and is_gone(ProcessId(row.host, row.pid, row.process_started))


def has_ended(row: Row[Any], moment: datetime) -> bool:
    """Return whether a claim or a lease has expired, or its process is gone for certain.

    Args:
        row: A row with the columns of `owner_values` and ``expires_at``.
        moment: The time of the database.

    Returns:
        True if another process may take it.
    """
    return to_moment(row.expires_at) <= moment or is_owner_gone(row)


def database_time(connection: Connection) -> datetime:
    """Return the time of the server; of this machine where the database is a file.

    Args:
        connection: The catalog.

    Returns:
        The time, in UTC.
    """
    if connection.dialect.name == "postgresql":
        moment: datetime = connection.execute(select(func.clock_timestamp())).scalar_one()
        return moment.astimezone(UTC)
    return datetime.now(UTC)


def _next_fence(connection: Connection) -> int:
    last = connection.execute(select(META.c.value).where(META.c.key == _FENCE)).scalar()
    fence = int(last or 0) + 1
    if last is None:
        connection.execute(insert(META).values(key=_FENCE, value=str(fence)))
    else:
        connection.execute(update(META).where(META.c.key == _FENCE).values(value=str(fence)))
    return fence


@cache
def _machine() -> str:
    """Identify the boot and the namespace in which the numbers of processes are unique: containers
    may have the same host name. Empty where the system does not tell; then nothing is certain.
    """
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return ""


@cache
def user_name() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # no such user here, as in some containers
        return str(os.getuid())


@contextlib.contextmanager
def whole_table(
    state: Writes, asked: Asked, claims: Claims, say: Callable[[str], None]
) -> Iterator[None]:
    """Hold a table while something beside a run changes it: a run that makes some of it is waited
    for, and said, unless ``claims`` do not wait. Raises CommitConflict then.
    """
    said = ""
    while True:
        claim, held = claims.take(state, asked)
        if claim is not None:
            break
        now = ", ".join(dict.fromkeys(map(str, held.values())))
        if not claims.waits:
            error = CommitConflict(
                f"{now} is making {asked.target}", hint="nothing was changed; leave out --no-wait"
            )
            error.exit_code = 3  # as of a run that leaves out what others hold
            raise error
        if now != said:
            said = now
            say(f"waits for {asked.target}: {now}")
        time.sleep(claims.timing.look)
    try:
        yield
    finally:
        claims.release(claim)


class Claims:
    """The claims of one run, extended by a thread that ends with the `with` block."""

    def __init__(self, *, waits: bool = True, timing: Timing | None = None) -> None:
        self.waits = waits
        self.timing = timing or Timing()
        self._ends = threading.Event()
        self._lock = threading.Lock()
        self._states: dict[str, tuple[Writes, str]] = {}  # with the run, by lakes
        self._held: dict[tuple[str, int], Claim] = {}
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        if self._thread is not None:
            self._thread.join(self.timing.lease)

    def take(self, state: Writes, asked: Asked) -> tuple[Claim | None, Held]:
        """As the function `take`, in a transaction of its own."""
        found: list[tuple[Claim | None, Held]] = []
        state.write(lambda connection: found.append(take(connection, asked, self.timing.lease)))
        claim, held = found[-1]
        if claim is not None:
            with self._lock:
                self._held[claim.lake, claim.fence] = claim
                self._states[claim.lake] = (state, claim.run_id)
                if self._thread is None:
                    self._thread = threading.Thread(
                        target=self._beat, name="penstock-claims", daemon=True
                    )
                    self._thread.start()
        return claim, held

    def release(self, claim: Claim | None) -> None:
        if claim is None:
            return
        with self._lock:
            self._held.pop((claim.lake, claim.fence), None)
        state, run_id = self._states[claim.lake]
        with contextlib.suppress(PenstockError):  # it ends by itself
            state.write(lambda connection: release(connection, run_id, claim.fence))

    def _beat(self) -> None:
        while not self._ends.wait(self.timing.beat):
            with self._lock:
                lakes = {lake for lake, _ in self._held}
            for lake in lakes:
                state, run_id = self._states[lake]
                act = partial(extend, run_id=run_id, lease=self.timing.lease)
                with contextlib.suppress(PenstockError):  # the commit will tell
                    state.write(act)
