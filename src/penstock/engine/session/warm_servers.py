"""The warm Spark servers of this user: list, start and stop them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from penstock.engine.session.open_session import INSTALL, unfit
from penstock.engine.session.spark import require
from penstock.engine.session.warm import end_server, missing_packages, place_of, start_server
from penstock.engine.session.warm_files import ServerPlace, places
from penstock.errors import ArgumentError, EnvironmentMissing
from penstock.settings.config import Settings

_START = 120.0  # seconds that another command may take to start a server


@dataclass(frozen=True, slots=True)
class WarmServer:
    """A server that lives. ``state`` is ``used``, ``idle``, or ``silent`` where it does not say how
    to reach it: it starts, or is to end. ``memory`` is the size of its heap; ``idle`` are the
    seconds without use after which it ends.
    """

    key: str
    state: str
    pid: int | None
    master: str | None
    memory: str | None
    spark: str | None
    started: datetime | None
    idle: float | None
    log: str


def servers() -> tuple[WarmServer, ...]:
    """The servers of this user. Starts no Spark."""
    return tuple(_described(place) for place in places() if place.is_alive())


def _described(place: ServerPlace) -> WarmServer:
    record = place.record()
    if record is None:
        unknown = (None, None, None)
        return WarmServer(place.key, "silent", *unknown, *unknown, str(place.log))
    return WarmServer(
        place.key,
        "used" if place.is_used() else "idle",
        record.pid,
        record.master,
        record.memory or None,
        record.spark,
        datetime.fromtimestamp(record.started, UTC),
        place.idle(0.0) or None,
        str(place.log),
    )


def start(settings: Settings) -> tuple[WarmServer, bool]:
    """The server of a project, and whether it is new.

    Raises ArgumentError and EnvironmentMissing where it cannot have one, and ConfigError where
    Spark does not start.
    """
    spark = settings.spark
    if (reason := unfit(settings)) is not None:
        raise ArgumentError(f"there is no warm session: {reason}")
    if lacks := missing_packages():
        raise EnvironmentMissing(
            f"a warm session needs {', '.join(lacks)}, which cannot be imported", hint=INSTALL
        )
    require(spark)
    assert spark.warm is not None, "otherwise it is unfit"
    place = place_of(spark)
    with place.starting(_START) as mine:
        if not mine:
            raise EnvironmentMissing("another command has been starting the server for too long")
        new = place.record() is None
        if new:
            start_server(place, spark, spark.warm)
        place.set_idle(spark.warm)
    return _described(place), new


def stop(*, force: bool = False) -> tuple[WarmServer, ...]:
    """End the servers of this user; return those that were ended.

    Raises ArgumentError where one is used and ``force`` is not set; then the others have ended.
    """
    ended, used = [], []
    for place in places():
        described, record = _described(place), place.record()
        if record is None:
            continue
        with place.alone() as unused:
            if not unused and not force:
                used.append(described)
                continue
            end_server(place, record)
        ended.append(described)
    if used:
        pids = ", ".join(str(each.pid) for each in used)
        raise ArgumentError(
            f"another command uses the Spark server of process {pids}",
            hint="wait for it, or end both with --force",
        )
    return tuple(ended)
