"""Warm sessions: Spark in a server that later commands of the same user and settings join.

Which server that is, and when it ends: `warm_files` and `warm_server`. Whatever goes wrong ends in
a session of this process, with a notice, unless a warm one was asked for.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib.util
import os
import secrets
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable
from typing import IO, TYPE_CHECKING, TypeVar

from penstock.engine.session.class_archive import with_archive
from penstock.engine.session.spark import (
    CLIENT,
    REMOTE,
    class_archive,
    session_conf,
    warm_address,
)
from penstock.engine.session.warm_files import (
    ServerPlace,
    ServerRecord,
    key_of,
    places,
)
from penstock.engine.session.warm_server import OCCUPIED, TOKEN, answers, order
from penstock.errors import ConfigError, EnvironmentMissing
from penstock.settings.config import SparkSettings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MODULES = ("pandas", "grpc", "grpc_status", "google.rpc", "zstandard")  # of Spark's own client
_ANSWER = 10.0  # seconds in which a server answers that does not hang
_START = 120.0  # seconds that Spark may take to start
_END = 15.0  # seconds in which a server ends that is told to
_POLL = 0.05
_TRIES = 3
_SERVER = "penstock.engine.session.warm_server"

T = TypeVar("T")


def missing_packages() -> list[str]:
    """The modules that Spark's client lacks, without loading any."""
    return [name for name in _MODULES if not _is_there(name)]


def _is_there(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:  # its package
        return False


def place_of(settings: SparkSettings) -> ServerPlace:
    """Return the place of the server of these settings. Raises EnvironmentMissing."""
    return ServerPlace.of(_key_of(settings))


def find_serving(settings: SparkSettings, project: str) -> ServerPlace | None:
    """Return the place of the server with these settings if it serves a project. Makes nothing.

    Args:
        settings: The settings of Spark.
        project: The name of the project among those of this user.

    Returns:
        The place; None where no such server serves it.
    """
    key = _key_of(settings)
    matches = (place for place in places() if place.key == key and place.is_serving(project))
    return next(matches, None)


def _key_of(settings: SparkSettings) -> str:
    environ = {k: text for k, text in settings.environ.items() if not k.startswith(_MODE)}
    if environ.get(_PYTHON) == sys.executable:  # set by a start of Spark in this process
        del environ[_PYTHON]
    return key_of(session_conf(settings), environ)


class WarmSession:
    """A session of a warm server, which this process uses until it closes it, or ends."""

    def __init__(self, settings: SparkSettings, idle: float, *, leaves_idle: bool = False) -> None:
        """Open nothing yet.

        Args:
            settings: The settings of Spark.
            idle: Seconds without use after which the server ends.
            leaves_idle: Whether a server that is there keeps its own.
        """
        self._settings = settings
        self._idle = idle
        self._leaves_idle = leaves_idle
        self.place = place_of(settings)
        self._session: SparkSession | None = None
        self._use: IO[bytes] | None = None
        self.started = False  # whether the server is new

    def open(self) -> SparkSession:
        """Join the server, or start it. Raises EnvironmentMissing where neither is possible."""
        for _ in range(_TRIES):
            session = self.join()
            if session is not None:
                return session
            self._begin()
        raise EnvironmentMissing(
            "the warm Spark server ended again and again",
            hint=f"its log is {self.place.log}; --no-warm does without it",
        )

    def join(self) -> SparkSession | None:
        """Join the server that lives.

        One that does not answer, and that others use, is an EnvironmentMissing.

        Returns:
            A session; None where none lives, or it was of no use.
        """
        use = self.place.use()
        record = self.place.record()
        session = None if record is None else self._connect(record)
        if session is None:
            use.close()
            if record is not None:
                self._end_useless(record)
            return None
        if self.started or not self._leaves_idle:
            with contextlib.suppress(OSError):  # a full disk: the server's own time counts
                self.place.set_idle(self._idle)
        assert record is not None, "there is a session of it"
        os.environ[REMOTE] = warm_address(record.port, self.place.key)
        self._session, self._use = session, use
        atexit.register(self.close)
        return session

    def close(self) -> None:
        """End the session, and use the server no longer: it may end."""
        atexit.unregister(self.close)
        session, use = self._session, self._use
        self._session = self._use = None
        if session is not None:
            with contextlib.suppress(Exception):  # the server may be gone
                _within(2.0, session.stop)
        if use is not None:
            use.close()

    def _connect(self, record: ServerRecord) -> SparkSession | None:
        if not answers(record.port):
            return None
        before = os.environ.get(CLIENT)
        try:
            return _within(_ANSWER, lambda: connect(record))
        except Exception:  # refused, cut off or too late: whatever it is, the server is of no use
            if before is None:  # the next session may be one of this process
                os.environ.pop(CLIENT, None)
            return None

    def _end_useless(self, record: ServerRecord) -> None:
        """End a server that does not answer, unless others use it."""
        with self.place.alone() as unused:
            if unused:
                end_server(self.place, record)
                return
        raise EnvironmentMissing(
            f"the warm Spark server (process {record.pid}) does not answer, and others use it",
            hint="`penstock spark stop --force` ends it; --no-warm does without it",
        )

    def _begin(self) -> None:
        """Start the server, unless another process does so meanwhile."""
        with self.place.starting(_START) as mine:
            if not mine:
                raise EnvironmentMissing(
                    "another command has been starting the warm Spark server for too long",
                    hint="--no-warm does without it",
                )
            if self.place.record() is None:
                start_server(self.place, self._settings, self._idle)
                self.started = True


def start_server(place: ServerPlace, settings: SparkSettings, idle: float) -> ServerRecord:
    """Start a server and return how to reach it. Raises ConfigError where Spark does not start.

    Another one that lives there without a record is about to end, or was started by a process that
    was killed meanwhile: whichever it is, it is waited for. Call it as the only one that starts.
    """
    until = time.monotonic() + _START
    while True:
        if not place.is_alive():
            place.remove_record()  # a killed server's, which would be taken for that of the new one
        process = _launch(place, settings, idle)
        record = _await_record(place, process, until)
        if record is not None:
            return record
        if process.returncode != OCCUPIED or time.monotonic() >= until:
            raise ConfigError(
                f"the warm Spark server does not start: {_last_words(place)}",
                location=settings.origin,
                hint=f"its log is {place.log}; --no-warm does without it",
            )


def _launch(place: ServerPlace, settings: SparkSettings, idle: float) -> subprocess.Popen[str]:
    """Raises EnvironmentMissing where no process can be started, or its files not be written."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith(_MODE)}
    environ.setdefault(_PYTHON, sys.executable)
    try:
        log = os.open(place.log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(log, "wb") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", _SERVER],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
                cwd=place.path,
                env=environ,
                start_new_session=True,  # neither the terminal's signals nor its end are its own
                text=True,
            )
        with contextlib.suppress(BrokenPipeError):  # it has ended; why is in its log
            assert process.stdin is not None
            with process.stdin as source:
                conf = with_archive(session_conf(settings), class_archive(settings))
                source.write(order(place, conf, secrets.token_hex(16), idle))
    except OSError as error:
        raise EnvironmentMissing(
            f"the warm Spark server cannot be started: {error.strerror}",
            hint=f"make room in {place.path}, or let TMPDIR name another directory",
        ) from None
    # Whoever started it hears that it ended: a notebook would keep it as a zombie.
    threading.Thread(target=process.wait, daemon=True).start()
    return process


# What makes a process one of Spark Connect's clients: the server is none.
_MODE = (REMOTE, "SPARK_LOCAL_REMOTE", CLIENT, TOKEN)
_PYTHON = "PYSPARK_PYTHON"


def _await_record(
    place: ServerPlace, process: subprocess.Popen[str], until: float
) -> ServerRecord | None:
    """Return the record of the server that lives; None where none does, or it takes too long."""
    while time.monotonic() < until:
        record = place.record()
        if record is not None:
            return record
        code = process.poll()
        if code is not None and not (code == OCCUPIED and place.is_alive()):
            return None
        time.sleep(_POLL)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)  # Java too: what hangs does not end with its parent
    process.wait()  # the kernel takes a moment, in which the next one would find the place taken
    return None


def _last_words(place: ServerPlace) -> str:
    try:
        lines = [line for line in place.log.read_text(errors="replace").splitlines() if line]
    except OSError:
        lines = []
    said = next((line for line in reversed(lines) if not line.startswith(("\t", " "))), "")
    return said[:300] or f"it neither said why nor was there after {_START:.0f} s"


def connect(record: ServerRecord) -> SparkSession:
    """A session of its own on a server that answers. Raises what Spark's client raises."""
    from pyspark.sql import SparkSession
    from pyspark.sql.connect.client.retries import DefaultPolicy

    # "localhost": only for that name does the client send its token without TLS.
    url = f"sc://localhost:{record.port}/;token={record.token}"
    session = SparkSession.builder.remote(url).create()
    # What its client warns of, the error says as well.
    warnings.filterwarnings("ignore", r"\[RETRIES_EXCEEDED\]")
    # The server is on this machine: when it does not answer it is gone, and not for ten minutes.
    session.client.set_retry_policies([DefaultPolicy(max_retries=3, max_backoff=500, jitter=50)])
    if session.version != record.spark:
        raise EnvironmentMissing(f"the server runs Spark {session.version}")
    return session


def _within(seconds: float, call: Callable[[], T]) -> T:
    """Return what ``call`` returns. Raises what it raises, and TimeoutError when it is slow."""
    outcome: list[T] = []
    raised: list[BaseException] = []

    def run() -> None:
        try:
            outcome.append(call())
        except BaseException as error:  # handed to the thread that waits
            raised.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    if raised:
        raise raised[0]
    if not outcome:
        raise TimeoutError
    return outcome[0]


def end_server(place: ServerPlace, record: ServerRecord, seconds: float = _END) -> None:
    """End a server: politely, and after ``seconds`` at once. Its lock says when it is gone."""
    place.remove_record()
    for sent, wait in ((signal.SIGTERM, seconds), (signal.SIGKILL, 5.0)):
        if not place.is_alive():
            return
        with contextlib.suppress(ProcessLookupError):
            # Java is in the group of the server: it may hang, and then does not end with that.
            (os.killpg if sent is signal.SIGKILL else os.kill)(record.pid, sent)
        until = time.monotonic() + wait
        while place.is_alive() and time.monotonic() < until:
            time.sleep(_POLL)
