"""Fixtures that rooms share. One Spark session serves a whole worker: it takes seconds to start."""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from tests import s3
from tests.quick import QUICK

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from penstock.settings.config import SparkSettings


_SETTINGS = pytest.StashKey[dict[str, str]]()  # of the session, as it started

# How long an example takes says how busy the machine is, nothing about the code.
settings.register_profile("penstock", deadline=None)
settings.load_profile("penstock")


# Thousands of small queries, each planned once: a compiler that optimises for later, and the
# collector's threads, take what the tests themselves need (66 of them took 182 s instead of 245,
# once, beside other work on 2 cores). Without the second compiler Java has 48 MB for compiled code,
# which Spark's generated classes fill in minutes: then nothing is compiled, and the session dies.
JVM = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC"


# A commit waits for the disk: 16 times in a small lake's test on SQLite, 17 times on a DuckDB file.
# Files of a test that passed are removed after it, so that this room is more than they need.
_MEMORY = Path("/dev/shm")
_ROOM, _RAM = 4 << 30, 12 << 30


# They start sessions or servers of their own, or try sequences by chance.
_SLOW = (
    "tests/adapters/",
    "tests/bench_smoke/",
    "tests/cli/test_json.py",
    "tests/engine/python/test_runners.py",
    "tests/engine/running/test_drop.py",
    "tests/engine/session/test_warm_process.py",
    "tests/engine/state/test_claims.py",
    "tests/engine/strategies/",
    "tests/lakes/catalog/test_pruning_never_drops.py",
    "tests/lakes/catalog/test_races.py",
    "tests/lakes/catalog/test_restore_across.py",
    "tests/lakes/catalog/test_rollback.py",
    "tests/lakes/catalog/test_size.py",
    "tests/lakes/concurrent/",
    "tests/lakes/killed/",
    "tests/lakes/maintenance/test_flush_inlined_data.py",
)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--warm", action="store_true", help="use a session of a warm server (tests marked warm)"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Also for the processes that tests start: Java takes it from the environment."""
    os.environ.setdefault("JDK_JAVA_OPTIONS", JVM)
    os.environ["PENSTOCK_SPARK_CLASS_ARCHIVE"] = "false"  # no run of a test builds one later
    if "TMPDIR" not in os.environ and _has_room():
        os.environ["TMPDIR"], tempfile.tempdir = str(_MEMORY), None
    if "PENSTOCK_CACHE_DIR" not in os.environ:  # workers have that of the process that starts them
        cache = tempfile.mkdtemp(prefix="penstock-cache-")
        os.environ["PENSTOCK_CACHE_DIR"] = cache
        atexit.register(shutil.rmtree, cache, ignore_errors=True)
        _prepare(config, Path(cache))


def _prepare(config: pytest.Config, cache: Path) -> None:
    """Archive Spark's classes once: each process that tests start saves 4 CPU seconds by it.

    The archive stays in pytest's own cache. A run of all tests makes it beside the first ones;
    until it is complete, and in shorter runs without one, Spark starts as ever.
    """
    if not hasattr(config, "cache") or config.cache is None:
        return
    (cache / "java").symlink_to(config.cache.mkdir("java"))
    if not getattr(config.option, "numprocesses", None) or config.option.markexpr:
        return
    program = "from penstock.cli.main import main; main()"
    process = subprocess.Popen(
        [sys.executable, "-c", program, "spark", "prepare"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "TMPDIR": str(cache)},  # removed with it, however the process ends
        start_new_session=True,
    )
    config.add_cleanup(partial(_end, process))


def _end(process: subprocess.Popen[bytes]) -> None:
    """With the Java that it has started."""
    if process.poll() is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _has_room() -> bool:
    try:
        ram = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        return ram >= _RAM and shutil.disk_usage(_MEMORY).free >= _ROOM
    except (OSError, ValueError):  # another system than Linux
        return False


@pytest.hookimpl(tryfirst=True)  # before the workers read the marks
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Start with what needs a session, the comparisons with DuckDB first: they take longest.

    Tests of one file that need a session run in one worker, as they share what they set up, and
    each worker takes the next file when it is done with one. The short tests without a session
    come last, so that the workers end together.
    """
    if not os.environ.get("PENSTOCK_TEST_EXTENDED"):
        left_out = [item for item in items if item.get_closest_marker("extended") is not None]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item.get_closest_marker("extended") is None]
    for item in items:
        if item.nodeid.startswith(_SLOW):
            item.add_marker(pytest.mark.slow)
        if _needs_session(item):
            item.add_marker(pytest.mark.spark)
            item.add_marker(pytest.mark.xdist_group(item.path.as_posix()))
    items.sort(key=lambda item: (not _needs_session(item), "differential" not in item.path.parts))


def _needs_session(item: pytest.Item) -> bool:
    return "spark" in getattr(item, "fixturenames", ())


@pytest.hookimpl(trylast=True)  # after the fixtures of the file
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Leave nothing of a file in the session: the next one has its settings as they were."""
    settings = item.config.stash.get(_SETTINGS, None)
    is_last = nextitem is None or nextitem.path != item.path
    if settings is not None and is_last and _needs_session(item):
        _clear(settings)


def _clear(settings: dict[str, str]) -> None:
    from pyspark.sql import SparkSession

    session = SparkSession.getActiveSession()
    if session is None:  # a test has ended it
        return
    for table in session.catalog.listTables():
        if table.isTemporary:
            session.catalog.dropTempView(table.name)
    now = session.conf.getAll
    for key in {key for key, _ in settings.items() ^ now.items() if session.conf.isModifiable(key)}:
        if key in settings:
            session.conf.set(key, settings[key])
        else:
            session.conf.unset(key)


@pytest.fixture(scope="session")
def spark(pytestconfig: pytest.Config) -> Iterator[SparkSession]:
    """A local session of two threads, with the engine's settings and those of `tests.quick`."""
    from penstock.engine.session.spark import start_session
    from penstock.settings.config import SparkSettings

    # A join keeps a page of each side: small ones, as tests join dozens of tables in one job.
    pages = {"spark.buffer.pageSize": "1m"}
    conf = {"spark.driver.memory": "1g", **pages, **QUICK}
    if jars := s3.spark_jars():
        conf["spark.jars"] = ",".join(jars)
    settings = SparkSettings(master="local[2]", conf=conf)
    if pytestconfig.getoption("--warm"):
        yield from _warm(settings, pytestconfig)
        return
    session = start_session(settings, "penstock-tests")
    pytestconfig.stash[_SETTINGS] = dict(session.conf.getAll)
    yield session
    session.stop()


def _warm(settings: SparkSettings, config: pytest.Config) -> Iterator[SparkSession]:
    """A session of a server that ends with the tests."""
    from penstock.engine.session.warm import WarmSession, end_server, place_of

    session = WarmSession(settings, 60).open()
    config.stash[_SETTINGS] = dict(session.conf.getAll)
    yield session
    session.stop()
    place = place_of(settings)
    record = place.record()
    assert record is not None, "the server has ended"
    end_server(place, record)
