"""``penstock spark prepare``: make the archive of Spark's classes, by running a small project.

After a run that had none, a process in the background does the same, once: its log says that it
runs, or has failed, until there is an archive.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from importlib.resources import files
from pathlib import Path
from typing import IO, TYPE_CHECKING

import click

from penstock.cli.init import copy_project
from penstock.cli.options import debug_option, json_option, read_settings
from penstock.cli.output import print_json, say
from penstock.errors import EnvironmentMissing
from penstock.settings.quantities import size_text

if TYPE_CHECKING:
    from penstock.engine.session.class_archive import ClassArchive
    from penstock.settings.config import SparkSettings

# Twice: the second run changes tables that are there.
_RUNS = """
import sys
from penstock import Project
with Project.load(sys.argv[1], warm=False) as project:
    for _ in range(2):
        result = project.run(force=True)
        assert result.exit_code == 0, result
    project.sql("SELECT status, count(*) AS n FROM orders GROUP BY status ORDER BY n").collect()
"""
_LONGEST = 600.0  # seconds
_RETRY = 7 * 86_400.0  # seconds after which a build in the background that failed is tried again
_ROOM = 1 << 30  # bytes that are free where a build in the background begins
# The build outlives the run, and has neither its secrets nor its Spark's settings.
_PASSED_ON = (
    "PATH",
    "HOME",
    "LANG",
    "LC_ALL",
    "TMPDIR",
    "XDG_CACHE_HOME",
    "JAVA_HOME",
    "PYTHONPATH",
    "PENSTOCK_CACHE_DIR",
)
_CONTAINER_MARKS = (Path("/.dockerenv"), Path("/run/.containerenv"))
# The log goes when there is an archive.
_LATER = """
import os, signal, sys
os.nice(19)
signal.signal(signal.SIGTERM, lambda *_: sys.exit("terminated"))
from penstock.cli.main import main
main(["spark", "prepare"], standalone_mode=False) or os.unlink(sys.argv[1])
"""


@click.command(
    "prepare",
    epilog="""\b
Examples:
  penstock spark prepare
  penstock spark prepare --force --json""",
)
@click.option("--force", is_flag=True, help="Make the archive again, even if it is there.")
@json_option
@debug_option
def prepare(*, force: bool, as_json: bool) -> None:
    """Archive Spark's classes, so that Spark starts and runs its first queries sooner.

    Runs a small project in a temporary directory and keeps what Java has loaded, some 200 MB, in
    the user's cache. It is used by every project with the same Java and PySpark; after an update
    of either, prepare again. In an image of a container, prepare while it is built.
    """
    with tempfile.TemporaryDirectory(prefix="penstock-prepare-") as folder:
        root = Path(folder, "project")
        copy_project(files("penstock.cli") / "template", root)
        path, new = _archive(root, force=force)
    size = path.stat().st_size
    if as_json:
        print_json({"path": str(path), "bytes": size, "new": new})
    elif new:
        say(f"Archived Spark's classes: {path}, {size_text(size)}")
    else:
        say(f"The archive is there already: {path}, {size_text(size)}")


def prepare_later(settings: SparkSettings) -> subprocess.Popen[bytes] | None:
    """Archive Spark's classes in the background, unless there is an archive or none may be built.

    Args:
        settings: The settings of a run that has started Spark.

    Returns:
        The process, which outlives this one; None where none is started.

    Raises:
        OSError: The process cannot be started.
    """
    from penstock.engine.session.spark import class_archive
    from penstock.spark.memory import is_local

    if not may_prepare_later(settings) or not is_local(settings):
        return None
    archive = class_archive(settings)
    if archive is None or archive.path is not None:
        return None
    log = open_log(archive)
    if log is None:
        return None
    with log:
        try:
            return subprocess.Popen(
                [sys.executable, "-P", "-c", _LATER, log.name],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=archive.directory,
                env={name: os.environ[name] for name in _PASSED_ON if name in os.environ},
                start_new_session=True,  # neither the terminal's signals nor its end are its own
            )
        except OSError:
            Path(log.name).unlink()  # it does not claim a build that never began
            raise


def may_prepare_later(settings: SparkSettings) -> bool:
    """Tell whether an archive may be built in the background.

    Args:
        settings: The settings of a run.

    Returns:
        What the settings say; else False in CI and in containers, which end with the run.
    """
    from penstock.spark.memory import this_machine

    if settings.class_archive is not None:
        return settings.class_archive
    is_limited = settings.ci or this_machine().container is not None
    is_limited = is_limited or "KUBERNETES_SERVICE_HOST" in os.environ
    return not is_limited and not any(mark.exists() for mark in _CONTAINER_MARKS)


def open_log(archive: ClassArchive) -> IO[bytes] | None:
    """Create the log of a build in the background.

    Args:
        archive: The archive, which does not exist yet.

    Returns:
        The log; None where there is one, of a build that runs, or failed less than a week ago.
    """
    log, clock = archive.directory / f"spark-{archive.key}.log", time.time()
    with suppress(OSError):
        if clock - log.stat().st_mtime > _RETRY:
            log.unlink()
        for part in archive.directory.glob("new-*.jsa"):  # of a build that was killed
            if clock - part.stat().st_mtime > 2 * _LONGEST:
                part.unlink()
    with suppress(OSError):
        archive.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        if shutil.disk_usage(archive.directory).free > _ROOM:
            return log.open("xb")
    return None


def _archive(root: Path, *, force: bool) -> tuple[Path, bool]:
    """The archive, and whether it is new. Raises EnvironmentMissing."""
    from penstock.engine.session.spark import class_archive, require

    settings = read_settings(root)
    require(settings.spark)
    archive = class_archive(settings.spark)
    if archive is None:
        raise EnvironmentMissing(
            "there is nowhere to keep the archive, or SPARK_HOME names another Spark",
            hint="let PENSTOCK_CACHE_DIR name a directory, and unset SPARK_HOME",
        )
    if (path := archive.path) is not None and not force:
        return path, False
    with suppress(OSError):
        archive.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    made = archive.directory / f"new-{os.getpid()}.jsa"
    try:
        ended, said = _run(root, made)
        if ended != 0 or not made.exists():
            last = next((line for line in reversed(said.splitlines()) if line.strip()), "")
            raise EnvironmentMissing(
                f"Java has written no archive: {last or 'it did not say why'}",
                hint=f"is there room in {archive.directory}? Penstock runs without it, too",
            )
        return archive.keep(made), True
    finally:
        made.unlink(missing_ok=True)


def _run(root: Path, made: Path) -> tuple[int, str]:
    """Run the project in a process of its own. Return its exit code and what was printed, when Java
    has ended, too.
    """
    from penstock.engine.session.class_archive import OPTIONS, writing

    settings = root / "penstock.toml"
    options = json.dumps(writing(made))  # a text of JSON is one of TOML
    conf = f'\n[spark]\nmaster = "local[2]"\n\n[spark.conf]\n"{OPTIONS}" = {options}\n'
    settings.write_text(settings.read_text(encoding="utf-8") + conf, encoding="utf-8")
    # Java has the same output, so that it is read until Java has ended, too.
    command = [sys.executable, "-P", "-c", _RUNS, str(root)]
    environ = {k: v for k, v in os.environ.items() if not k.startswith("PENSTOCK_")}
    try:
        done = subprocess.run(
            command,
            env={**environ, "PENSTOCK_CACHE_DIR": ""},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=_LONGEST,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return 1, f"it took longer than {_LONGEST:.0f} s"
    return done.returncode, done.stdout
