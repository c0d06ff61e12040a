"""Kill processes that serve a project at random moments; compare what the next ones leave.

    python -m tests.server.killed_serve --times 200 [--seed 1] [--catalog postgres] [--pairs]

In each trial messages, commits and backfills arrive while processes serve and are killed, one after
the other, or one of two. Then one serves until nothing is left to do. Each table is what it is from
scratch, each event has an outcome, and an append has the rows of each message once.
"""

from __future__ import annotations

import argparse
import logging
import multiprocessing
import os
import random
import shutil
import signal
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from multiprocessing.process import BaseProcess
from pathlib import Path

import psycopg

from penstock.errors import CatalogLocked
from penstock.project.project import Project
from penstock.scheduler.values import FiringState
from penstock.server.serving import ServeOptions, Server
from tests import postgres
from tests.conftest import JVM
from tests.server.killed_project import Served
from tests.server.sparkless import install

_PROCESSES = multiprocessing.get_context("forkserver")
_PRELOADED = ["tests.server.killed_serve"]
SETTLES = 180.0  # seconds, on a full machine


@dataclass(frozen=True)
class Death:
    """When a process kills itself: so many seconds after so many lines of its log."""

    lines: int
    seconds: float


class _Deadly(logging.Handler):
    """Kills this process."""

    def __init__(self, death: Death) -> None:
        super().__init__()
        self._death, self._lines = death, 0

    def emit(self, record: logging.LogRecord) -> None:
        self._lines += 1
        if self._lines == self._death.lines:
            if self._death.seconds < 0.001:
                os.kill(os.getpid(), signal.SIGKILL)
            timer = threading.Timer(self._death.seconds, os.kill, (os.getpid(), signal.SIGKILL))
            timer.daemon = True
            timer.start()


def serve(root: str, log: str, death: Death | None, spark: bool, slow: float) -> None:
    """Serve a project in this process until a signal, or its death.

    Each slice takes some seconds where it is ``slow``.
    """
    overrides = {"spark.master": "local[1]", "spark.conf.spark.driver.memory": "512m"}
    logger = logging.getLogger("penstock.serve")
    logger.setLevel(logging.DEBUG)
    handler = logging.FileHandler(log)
    handler.setFormatter(logging.Formatter(f"%(asctime)s {os.getpid()} %(message).200s"))
    logger.addHandler(handler)
    if death is not None:
        logger.addHandler(_Deadly(death))
    if not spark:
        install(slow)
    project = Project.load(root, overrides=overrides)
    server = Server(project.context, ServeOptions(has_http=False))
    server.service.settings = replace(server.service.settings, poll=0.1)
    signal.signal(signal.SIGTERM, lambda *_: server.stop())
    server.run()
    project.close()


@dataclass
class Trial:
    """One project, whose servers are killed. ``kills`` counts those that were."""

    served: Served
    chance: random.Random
    spark: bool = False
    slow: float = 0.0
    kills: int = 0
    lives: dict[int, BaseProcess] = field(default_factory=dict)
    story: list[str] = field(default_factory=list)
    _started: int = 0

    def play(self, victims: int, pairs: bool) -> list[str]:
        """Kill so many processes; return what is wrong in the end."""
        try:
            self._start(None)
            problems = self.served.settle(SETTLES)  # it has begun to look
            self._end()
            if pairs:
                self._start(self._death())
            for _ in range(victims):
                if not problems:
                    self._start(self._death())
                    self._kill_one()
            self._start(None)
            problems = problems or self.served.settle(SETTLES * (3 if self.spark else 1))
            return problems + list(self.served.check())
        finally:
            self._end()
            self.served.close()

    def pause(self, seconds: float) -> list[str]:
        """Let the leader of two processes sleep while a firing runs in it; return what is wrong."""
        try:
            for _ in range(2):
                self._start(None)
            problems = self.served.settle(SETTLES)
            for _ in range(10):
                self.story.append(self.served.act())
            pid = self._wait_for_runs()
            self.story.append(f"{pid} sleeps while it runs {self.served.open_work()}")
            os.kill(pid, signal.SIGSTOP)
            begin = time.monotonic()
            while time.monotonic() - begin < seconds:
                with suppress(CatalogLocked):  # by the process that sleeps
                    self.story.append(self.served.act())
                time.sleep(3)
            os.kill(pid, signal.SIGCONT)
            problems += self.served.settle(2 * SETTLES)
            self.kills += 1
            return problems + list(self.served.check())
        finally:
            self._end()
            self.served.close()

    def _wait_for_runs(self) -> int:
        """Return the process that runs firings."""
        for _ in range(200):
            for record in self.served.store.list_firings(20):
                if record.firing.state is FiringState.RUNNING and record.process is not None:
                    return record.process.pid
            time.sleep(0.05)
        raise AssertionError("no firing has started")

    def _death(self) -> Death:
        delay = self.chance.choice((0.0, 0.02, 0.2)) * self.chance.random()
        return Death(self.chance.randrange(2, 60), delay * (10 if self.spark else 1))

    def _start(self, death: Death | None) -> None:
        self._started += 1
        log = str(self.served.root / f"log-{self._started}.txt")
        root = str(self.served.root)
        given = (root, log, death, self.spark, self.slow)
        process = _PROCESSES.Process(target=serve, args=given)
        process.start()
        self.lives[process.pid or 0] = process
        self.story.append(f"start {self._started} {death}")

    def _kill_one(self) -> None:
        """Send events until a process has killed itself, or kill one that does nothing."""
        for _ in range(self.chance.randrange(4, 14)):
            if self._bury():
                return
            self.story.append(self.served.act())
            time.sleep(self.chance.choice((0.0, 0.05, 0.3)) * (4 if self.spark else 1))
        pid = self.chance.choice(sorted(self.lives))
        self.story.append(f"kill {pid}")
        self.lives[pid].kill()
        self.lives[pid].join(10)
        assert self._bury()

    def _bury(self) -> bool:
        """Forget a process that has ended; whether there was one."""
        for pid, process in list(self.lives.items()):
            if process.exitcode is not None:
                self.kills += process.exitcode == -signal.SIGKILL
                self.story.append(f"process {pid} ended with {process.exitcode}")
                process.close()
                del self.lives[pid]
                return True
        return False

    def _end(self) -> None:
        """Stop all processes."""
        for pid, process in self.lives.items():
            process.terminate()
            process.join(20)
            if process.exitcode is None:
                self.story.append(f"process {pid} does not end")
                process.kill()
                process.join()
            process.close()
        self.lives.clear()


def play_trial(
    root: Path, catalog: str, seed: int, *, victims: int = 3, pairs: bool, spark: bool = False
) -> tuple[int, list[str]]:
    """Play the trial of a seed; return the number of kills, and what is wrong."""
    _PROCESSES.set_forkserver_preload(_PRELOADED)
    chance = random.Random(seed)
    served = Served.create(root, catalog, chance, spark=spark)
    trial = Trial(served, chance, spark)
    problems = trial.play(victims, pairs)
    return trial.kills, [*problems, *(trial.story if problems else [])]


def play_pause(root: Path, catalog: str, seed: int) -> tuple[int, list[str]]:
    """Play a trial whose leader sleeps for longer than its lease; return as `play_trial`."""
    _PROCESSES.set_forkserver_preload(_PRELOADED)
    chance = random.Random(seed)
    trial = Trial(Served.create(root, catalog, chance, spark=False), chance, slow=1.0)
    problems = trial.pause(40.0)
    return trial.kills, [*problems, *(trial.story if problems else [])]


@contextmanager
def catalogs(kind: str) -> Iterator[Callable[[], str]]:
    """Return catalogs of a kind that are empty."""
    if kind == "sqlite":
        yield lambda: "sqlite:lake/meta.sqlite"
        return
    with postgres.server() as conninfo:

        def create() -> str:
            name = f"lake_{uuid.uuid4().hex}"
            with psycopg.connect(f"{conninfo} dbname=postgres", autocommit=True) as connection:
                connection.execute(f"CREATE DATABASE {name}")
            return f"postgres:dbname={name} {conninfo}"

        yield create


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--times", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--catalog", choices=("sqlite", "postgres"), default="sqlite")
    parser.add_argument("--pairs", action="store_true")
    parser.add_argument("--spark", action="store_true")
    parser.add_argument("--pauses", action="store_true", help="SIGSTOP for 40 s, not SIGKILL")
    options = parser.parse_args(arguments)
    os.environ.setdefault("JDK_JAVA_OPTIONS", JVM)
    kills, seed, bad = 0, options.seed, list[int]()
    with catalogs(options.catalog) as create:
        while kills < options.times:
            folder = Path(tempfile.mkdtemp(prefix="killed-serve-"))
            if options.pauses:
                more, problems = play_pause(folder / "p", create(), seed)
            else:
                modes = {"pairs": options.pairs, "spark": options.spark}
                more, problems = play_trial(folder / "p", create(), seed, **modes)
            kills += more
            if problems:  # the folder stays, with the logs of the processes
                bad.append(seed)
                print(f"--- seed {seed} in {folder}", *problems, sep="\n", flush=True)
            else:
                shutil.rmtree(folder)
            print(f"seed {seed}: {kills} kills, {len(bad)} differ", flush=True)
            seed += 1
    print("seeds that differ:", *bad)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
