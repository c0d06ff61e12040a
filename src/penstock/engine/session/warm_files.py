"""Files by which the processes of one user find, share and end warm Spark servers.

A server has a directory of its own, named by a key: whatever makes two sessions differ is part of
the key, so a command never joins a server with other settings. Three locks, which the system
releases when a process ends in whatever way, say what is true; the files only say how to connect:

- ``server.lock`` is held by the server as long as it lives;
- ``use.lock`` is shared by the processes that use it; a server that ends takes it alone, removes
  its record, and only then goes, so that nobody joins what is about to end;
- ``start.lock`` is held by the process that starts a server: two that start at once start one.

``served-KEY.lock`` is shared by the processes that serve a project with the session of the server.
Runs of that project then join it, whether or not somebody watches them.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import stat
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import IO, Any

from penstock.errors import EnvironmentMissing

_FORMAT = 2  # of these files: another one is another server
_LENGTH = 16  # characters of a key
_RECORD, _IDLE = "server.json", "idle"
_POLL = 0.05
_TRIES = 20


@dataclass(frozen=True, slots=True)
class ServerRecord:
    """The way to a server, as its file has it. ``started`` is a time in seconds, ``memory`` the
    size of its heap, as Spark has it; empty where nothing says it.
    """

    pid: int
    port: int
    token: str = field(repr=False)
    started: float
    spark: str
    master: str
    memory: str = ""


def key_of(conf: Mapping[str, str], environ: Mapping[str, str]) -> str:
    """The key of the servers with these settings, for this user and these versions.

    ``environ`` are the variables that Java and Spark read.
    """
    parts = {
        "format": _FORMAT,
        "user": os.getuid(),
        # Not the executable: commands run as `bin/python3`, and notebooks as `bin/python`.
        "python": [os.path.realpath(sys.prefix), sys.version],
        "spark": spark_version(),
        "conf": dict(conf),
        "environ": dict(environ),
    }
    text = json.dumps(parts, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:_LENGTH]


def spark_version() -> str:
    """The version of PySpark, without loading it; empty where it is not installed."""
    try:
        return version("pyspark")
    except PackageNotFoundError:
        return ""


def servers_directory() -> Path:
    """The directory of this user's servers, which nobody else can read; it is made when missing.

    Raises EnvironmentMissing where it cannot be made or belongs to somebody else.
    """
    path = _root()
    try:
        path.mkdir(mode=0o700, exist_ok=True)
        found = path.lstat()
    except OSError as error:
        raise EnvironmentMissing(
            f"{path} cannot be made: {error.strerror}",
            hint="make room in it, or let TMPDIR name another directory",
        ) from None
    _require_own(path, found)
    return path


def _root() -> Path:
    return Path(tempfile.gettempdir()) / f"penstock-spark-{os.getuid()}"


def _require_own(path: Path, found: os.stat_result) -> None:
    """Raise EnvironmentMissing for what somebody else may have made or may write."""
    if found.st_uid != os.getuid() or not stat.S_ISDIR(found.st_mode):
        raise EnvironmentMissing(
            f"{path} belongs to another user",
            hint="remove it, or let TMPDIR name a directory of your own",
        )
    if found.st_mode & 0o077:
        raise EnvironmentMissing(
            f"{path} is open to other users", hint=f"chmod 700 {path}, or remove it"
        )


@dataclass(frozen=True, slots=True)
class ServerPlace:
    """The directory of one server, whether or not there is one."""

    path: Path

    @classmethod
    def of(cls, key: str) -> ServerPlace:
        """The place of a key, made when it is missing. Raises EnvironmentMissing."""
        path = servers_directory() / key
        try:
            path.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise EnvironmentMissing(f"{path} cannot be made: {error.strerror}") from None
        _require_own(path, path.lstat())
        return cls(path)

    @property
    def key(self) -> str:
        return self.path.name

    @property
    def log(self) -> Path:
        return self.path / "server.log"

    def record(self) -> ServerRecord | None:
        """The server that lives here; None where there is none, or its file is not ours."""
        if not self.is_alive():
            return None
        try:
            found = (self.path / _RECORD).lstat()
            if found.st_uid != os.getuid() or found.st_mode & 0o077:
                return None
            content = json.loads((self.path / _RECORD).read_text())
            return ServerRecord(**content)
        except (OSError, ValueError, TypeError):
            return None

    def write_record(self, record: ServerRecord) -> None:
        """Say how to reach the server: readers see the whole file or none."""
        self._write(_RECORD, json.dumps(asdict(record)))

    def remove_record(self) -> None:
        (self.path / _RECORD).unlink(missing_ok=True)

    def has_record(self, record: ServerRecord) -> bool:
        """Return whether the file still names this server."""
        try:
            return bool(json.loads((self.path / _RECORD).read_text()) == asdict(record))
        except (OSError, ValueError):
            return False

    def set_idle(self, seconds: float) -> None:
        """Let the server end after so many seconds without use; the last to join decides."""
        self._write(_IDLE, str(seconds))

    def idle(self, default: float) -> float:
        try:
            return float((self.path / _IDLE).read_text())
        except (OSError, ValueError):
            return default

    def _write(self, name: str, text: str) -> None:
        handle, temporary = tempfile.mkstemp(dir=self.path, prefix=f".{name}.")  # 0600
        try:
            with os.fdopen(handle, "w") as file:
                file.write(text)
            Path(temporary).replace(self.path / name)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise

    def is_alive(self) -> bool:
        """Return whether a server process lives here, even if it does not answer."""
        return not self._is_free("server.lock")

    def is_used(self) -> bool:
        """Return whether a process uses the server."""
        return not self._is_free("use.lock")

    def _is_free(self, name: str) -> bool:
        try:
            file = _opened(self.path / name)
        except OSError:
            return True
        with file:
            return _lock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def hold_server(self) -> IO[bytes] | None:
        """For the server: the lock of its life, until it is closed; None where another lives."""
        file = _opened(self.path / "server.lock")
        for _ in range(_TRIES):  # who looks whether a server lives holds it for a moment
            if _lock(file, fcntl.LOCK_EX | fcntl.LOCK_NB):
                return file
            time.sleep(_POLL)
        file.close()
        return None

    def use(self) -> IO[bytes]:
        """Use the server until the file is closed, or this process ends."""
        file = _opened(self.path / "use.lock")
        _lock(file, fcntl.LOCK_SH)
        return file

    def serve(self, project: str) -> IO[bytes]:
        """Serve a project with the server until a file is closed, or this process ends.

        Args:
            project: The name of the project among those of this user.

        Returns:
            The file.
        """
        file = _opened(self.path / f"served-{project}.lock")
        _lock(file, fcntl.LOCK_SH)
        return file

    def is_serving(self, project: str) -> bool:
        """Return whether a process serves a project with this server. Makes nothing.

        Args:
            project: The name of the project among those of this user.

        Returns:
            True as long as the file of `serve` is open.
        """
        name = f"served-{project}.lock"
        return (self.path / name).exists() and not self._is_free(name)

    @contextmanager
    def alone(self) -> Iterator[bool]:
        """Yield whether nobody uses the server; if so nobody begins to, meanwhile."""
        with _opened(self.path / "use.lock") as file:
            yield _lock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)

    @contextmanager
    def starting(self, seconds: float) -> Iterator[bool]:
        """Yield whether this process may start a server: others wait, up to ``seconds``."""
        until = time.monotonic() + seconds
        with _opened(self.path / "start.lock") as file:
            while not (locked := _lock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)):
                if time.monotonic() > until:
                    break
                time.sleep(_POLL)
            yield locked


def places() -> tuple[ServerPlace, ...]:
    """The places of all servers of this user, in the order of their keys; makes nothing."""
    root = _root()
    with suppress(OSError, EnvironmentMissing):
        _require_own(root, root.lstat())
        return tuple(ServerPlace(path) for path in sorted(root.iterdir()) if path.is_dir())
    return ()


def _opened(path: Path) -> IO[bytes]:
    # Neither truncated nor inherited by the processes that this one starts.
    return os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600), "r+b")


def _lock(file: IO[Any], kind: int) -> bool:
    try:
        fcntl.flock(file, kind)
    except BlockingIOError:
        return False
    return True
