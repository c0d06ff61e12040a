"""Open the session of a project: one of a warm server, or one of this process.

A process that serves a project uses a warm server, and marks it: other runs of the project join it.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING

from penstock.engine.session.spark import (
    REMOTE,
    called,
    has_session,
    is_warm_address,
    start_session,
)
from penstock.errors import ArgumentError, EnvironmentMissing, PenstockError
from penstock.events import EventSink, Notice
from penstock.rendering.text import seconds
from penstock.settings.config import Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

INSTALL = "pip install 'penstock-spark[warm]'"
_AFTER_SERVING = 60.0  # seconds for which a server stays after `penstock serve`: for a restart
_SHARED = "Spark is that of `penstock serve` of this project; --no-warm starts another"
_SAID = "said-warm-packages"  # in the cache: that packages are missing is said once


def open_session(
    settings: Settings,
    warm: bool | None,
    sink: EventSink,
    uses: ExitStack | None = None,
    *,
    is_serving: bool = False,
) -> SparkSession:
    """Open the session of a project.

    Args:
        settings: The settings of the project.
        warm: Whether to use a warm server. None uses one if it is available, and a user watches or
            a process serves the project.
        sink: Receives notices.
        uses: Closing it leaves the warm server before this process ends.
        is_serving: Whether this process serves the project and shares its server with other runs.

    Returns:
        The session.

    Raises:
        ArgumentError: The caller requires a warm server, and the settings allow none.
        EnvironmentMissing: The required warm server is not available, or Spark cannot start.
        ConfigError: Spark does not start with these settings.
    """
    uses = ExitStack() if uses is None else uses
    session = None
    if warm is None and not (is_serving or _is_watched(settings)):
        session = _join_serving(settings, sink, uses)
    elif warm is not False:
        asks = warm is not None
        if _can_be_warm(settings, sink, asks=asks, is_serving=is_serving):
            session = _warm_session(settings, sink, uses, asks=asks, is_serving=is_serving)
    return session or start_session(settings.spark, settings.name)


def _is_watched(settings: Settings) -> bool:
    """Return whether somebody is there to run the next command, or cell."""
    return not settings.spark.ci and (sys.stdout.isatty() or "ipykernel" in sys.modules)


def why_alone(settings: Settings) -> str | None:
    """Return why other runs of a project cannot join the process that serves it.

    Args:
        settings: The settings of the project.

    Returns:
        The reason; None where they can.
    """
    from penstock.engine.session.warm import missing_packages

    if (reason := unfit(settings)) is not None:
        return reason
    if missing_packages():
        return f"the extra `warm` is missing: {INSTALL}"
    return None


def _join_serving(settings: Settings, sink: EventSink, uses: ExitStack) -> SparkSession | None:
    """Return a session of the server with which a process serves the project, if one does."""
    from penstock.engine.session.warm import WarmSession, find_serving

    spark = settings.spark
    if spark.warm is None or why_alone(settings) is not None:
        return None
    try:
        if find_serving(spark, _key_of(settings)) is None:
            return None
        warm = WarmSession(spark, spark.warm, leaves_idle=True)
        session = warm.join()
    except PenstockError as error:
        sink(Notice(f"Spark runs in this process: {error}"))
        return None
    if session is not None:
        uses.callback(warm.close)
        sink(Notice(_SHARED))
    return session


def _can_be_warm(settings: Settings, sink: EventSink, *, asks: bool, is_serving: bool) -> bool:
    """Return whether a warm session can be had; raise for one that is asked for and cannot."""
    if (reason := unfit(settings)) is not None:
        if asks:
            raise ArgumentError(f"there is no warm session: {reason}", hint="leave out --warm")
        return False
    from penstock.engine.session.warm import missing_packages

    if lacks := missing_packages():
        if asks:
            raise EnvironmentMissing(
                f"a warm session needs {', '.join(lacks)}, which cannot be imported", hint=INSTALL
            )
        if not is_serving:
            _say_once(settings, sink)
        return False
    return True


def _warm_session(
    settings: Settings, sink: EventSink, uses: ExitStack, *, asks: bool, is_serving: bool
) -> SparkSession | None:
    """Return a session of a warm server; None where there is trouble and nobody asks for one."""
    from penstock.engine.session.warm import WarmSession

    spark, project = settings.spark, _key_of(settings)
    assert spark.warm is not None, "otherwise it is unfit"
    idle = min(spark.warm, _AFTER_SERVING) if is_serving else spark.warm
    try:
        warm = WarmSession(spark, idle, leaves_idle=is_serving)
        session = warm.open()
        uses.callback(warm.close)
        if is_serving:
            uses.enter_context(warm.place.serve(project))
    except PenstockError as error:
        if asks:
            raise
        sink(Notice(f"Spark runs in this process: {error}"))
        return None
    if not is_serving and warm.place.is_serving(project):
        sink(Notice(_SHARED))
    elif warm.started and not is_serving:
        sink(Notice(stays(spark.warm)))
    return session


def _key_of(settings: Settings) -> str:
    """Return what names a project in its environment among the projects of this user."""
    text = f"{settings.root.resolve()}\0{settings.environment or ''}"
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def stays(idle: float) -> str:
    """Return what to say of a server that has been started."""
    return (
        f"Spark stays until it is idle for {lasting(idle)}, so that the next command has it at "
        "once; `penstock spark stop` ends it"
    )


def lasting(duration: float) -> str:
    """``15 min``, ``2 h`` or ``90 s``."""
    for unit, length in (("h", 3600), ("min", 60)):
        if duration >= length and duration % length == 0:
            return f"{int(duration // length)} {unit}"
    return seconds(duration)


def unfit(settings: Settings) -> str | None:
    """Return why a project has no warm session, whatever is asked for."""
    spark = settings.spark
    if spark.warm is None:
        return "spark.warm is false in the settings"
    if spark.master is not None and not re.match(r"local(\[|$)", spark.master):
        return f"the master is {called(spark.master)}"
    if os.name != "posix":
        return "it needs locks of files, which this system lacks"
    remote = spark.environ.get(REMOTE)
    if remote is not None and not is_warm_address(remote):
        return "SPARK_REMOTE names a server"
    if has_session():  # the user's other code shares it
        return "this process has a Spark session already"
    return None


def _say_once(settings: Settings, sink: EventSink) -> None:
    if settings.cache is None:
        return
    said = settings.cache / _SAID
    if not said.exists():
        sink(
            Notice(
                f"install the extra `warm` to keep Spark running between commands: {INSTALL}; "
                "`penstock spark prepare` makes every start shorter"
            )
        )
        with suppress(OSError):
            said.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            said.touch()
