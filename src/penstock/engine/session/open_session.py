"""Open the session of a project: one of a warm server, or one of this process."""

from __future__ import annotations

import os
import re
import sys
from contextlib import suppress
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
_SAID = "said-warm-packages"  # in the cache: that packages are missing is said once


def open_session(settings: Settings, warm: bool | None, sink: EventSink) -> SparkSession:
    """The session of a project. ``warm``: whether it is one of a server that stays; None: where
    somebody watches, and a server can be had.

    Raises ArgumentError and EnvironmentMissing where a warm one is asked for and cannot be had, and
    what `start_session` raises.
    """
    if warm is None:
        # Whether somebody is there to run the next command, or cell.
        is_watched = not settings.spark.ci and (sys.stdout.isatty() or "ipykernel" in sys.modules)
        if not is_watched:
            warm = False
    session = None if warm is False else _warm_session(settings, sink, asked=warm is not None)
    return session or start_session(settings.spark, settings.name)


def _warm_session(settings: Settings, sink: EventSink, *, asked: bool) -> SparkSession | None:
    """A session of a warm server; None where none can be had and none was ``asked`` for."""
    spark = settings.spark
    if (reason := unfit(settings)) is not None:
        if asked:
            raise ArgumentError(f"there is no warm session: {reason}", hint="leave out --warm")
        return None
    from penstock.engine.session.warm import WarmSession, missing_packages

    if lacks := missing_packages():
        if asked:
            raise EnvironmentMissing(
                f"a warm session needs {', '.join(lacks)}, which cannot be imported", hint=INSTALL
            )
        _say_once(settings, sink)
        return None
    assert spark.warm is not None, "otherwise it is unfit"
    try:
        warm = WarmSession(spark, spark.warm)
        session = warm.open()
    except PenstockError as error:
        if asked:
            raise
        sink(Notice(f"Spark runs in this process: {error}"))
        return None
    if warm.started:
        sink(Notice(stays(spark.warm)))
    return session


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
