"""A PostgreSQL server for the tests: the one that is given, or a throwaway of their own."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

VARIABLE = "PENSTOCK_TEST_POSTGRES"
_SETTINGS = ("listen_addresses=", "max_connections=60", "shared_buffers=32MB")
_FORGETFUL = ("fsync=off", "synchronous_commit=off", "full_page_writes=off")


def binaries() -> Path | None:
    """Where Debian keeps the server's programs, the newest version if there are several."""
    found = [path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/initdb")]
    on_path = shutil.which("initdb")
    if on_path is not None:
        found.append(Path(on_path).resolve().parent)
    return max(found, default=None, key=lambda path: path.parent.name.rjust(4))


def why_not() -> str | None:
    """Why no server can be had, or ``None``."""
    if os.environ.get(VARIABLE) or (binaries() is not None and server_user() is not None):
        return None
    return f"no PostgreSQL: install the package postgresql, or set {VARIABLE} to a libpq string"


@contextmanager
def server(*, durable: bool = False) -> Iterator[str]:
    """A libpq string (without ``dbname``) of a server that is up inside the block.

    ``durable``: a commit is on the disk when it is answered, as users have it; a server that is
    given stays as it is.
    """
    given = os.environ.get(VARIABLE)
    if given:
        yield given
        return
    folder = Path(tempfile.mkdtemp(prefix="penstock-pg-"))
    try:
        with _running(folder, durable) as conninfo:
            yield conninfo
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _running(folder: Path, durable: bool) -> Iterator[str]:
    user = server_user()
    if os.geteuid() == 0 and user is not None:
        shutil.chown(folder, user)
    data = folder / "data"
    settings = _SETTINGS if durable else (*_SETTINGS, *_FORGETFUL)
    options = " ".join(f"-c {setting}" for setting in settings)
    control = ("pg_ctl", "-D", str(data), "-w", "-l", str(folder / "log"))
    _run("initdb", "-D", str(data), "-A", "trust", "-U", "penstock", "--no-sync", "-E", "UTF8")
    _run(*control, "-o", f"-k {folder} {options}", "start")
    try:
        yield f"host={folder} user=penstock"
    finally:
        _run(*control, "-m", "immediate", "stop")


def server_user() -> str | None:
    """PostgreSQL refuses to run as root, so root runs it as the user of Debian's package."""
    if os.geteuid() != 0:
        return pwd.getpwuid(os.geteuid()).pw_name
    try:
        return pwd.getpwnam("postgres").pw_name
    except KeyError:
        return None


def _run(program: str, *arguments: str) -> None:
    folder = binaries()
    assert folder is not None
    command: Sequence[str] = (str(folder / program), *arguments)
    if os.geteuid() == 0:
        command = ("runuser", "-u", str(server_user()), "--", *command)
    subprocess.run(command, check=True, cwd="/", stdout=subprocess.DEVNULL)
