"""Serve a project for some time under random events; compare what is there, and the memory.

    python -m tests.server.soak --minutes 60 [--seed 1] [--catalog postgres]

Messages and backfills arrive, DuckDB commits in a process of its own, and a schedule is due every
few seconds. Then no event is lost, and each table is what it is from scratch. The memory of the
process that serves is told at a sixth of the time and at the end. No Spark is needed.
"""

from __future__ import annotations

import argparse
import logging
import multiprocessing
import os
import random
import re
import signal
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path

import duckdb

from penstock.project.project import Project
from penstock.scheduler.subscription import Subscription
from penstock.scheduler.values import Agenda, EventKind, ScheduleMark, TriggerEvent
from penstock.server.serving import ServeOptions, Server
from tests import duck
from tests.server.killed_project import DAYS, Served
from tests.server.killed_serve import catalogs
from tests.server.sparkless import COLUMNS, install

_PROCESSES = multiprocessing.get_context("forkserver")
_EVERY = 3  # seconds between two times of the schedule
_SETTLES = 180.0
_GROWTH = 0.10


@dataclass(frozen=True)
class Ticks:
    """What the time brings: ``events``, and when there are more."""

    events: tuple[TriggerEvent, ...]
    wakes_at: datetime
    marks: tuple[ScheduleMark, ...] = ()


class Ticker:
    """Produces an event of a schedule every few seconds, which cron cannot say."""

    def __init__(self) -> None:
        self._ticks = 0

    def __call__(
        self, subscriptions: Mapping[str, Subscription], agenda: Agenda, moment: datetime, /
    ) -> Ticks:
        tick = int(moment.timestamp()) // _EVERY
        time_ = datetime.fromtimestamp(tick * _EVERY, moment.tzinfo)
        wakes_at = time_ + timedelta(seconds=_EVERY)
        if tick == self._ticks:
            return Ticks((), wakes_at)
        self._ticks = tick
        day = DAYS[tick % len(DAYS)]
        event = TriggerEvent(
            f"schedule:costs@{tick}", EventKind.SCHEDULE, "costs", time_, partition=day
        )
        return Ticks((event,), wakes_at)


def serve(root: str) -> None:
    """Serve a project in this process until a signal."""
    logger = logging.getLogger("penstock.serve")
    logger.setLevel(logging.INFO)
    logger.addHandler(logging.FileHandler(f"{root}/log.txt"))
    install()
    project = Project.load(root)
    server = Server(project.context, ServeOptions(has_http=False))
    server.service.settings = replace(server.service.settings, poll=0.1)
    server.service.producers = (*server.service.producers, Ticker())
    signal.signal(signal.SIGTERM, lambda *_: server.stop())
    server.run()
    project.close()


def write(uri: str, data_path: str, statements: Connection) -> None:
    """Run statements by DuckDB in this process, until there are no more."""
    with duck.attach(uri, data_path, inline=10) as connection:
        while (statement := statements.recv()) is not None:
            for attempt in range(1200):  # DuckDB does not wait for a lock of SQLite
                try:
                    connection.execute(statement)
                    break
                except duckdb.Error as error:
                    if attempt == 1199 or not re.search("lock|conflict|serializ", str(error), re.I):
                        raise
                    time.sleep(0.05)
            statements.send(None)


@dataclass
class Soaked(Served):
    """A project whose tables another engine writes."""

    duckdb: Connection | None = None

    def insert(self, name: str, *days: str) -> str:
        if self.duckdb is None:
            return super().insert(name, *days)
        rows = []
        for day in days:
            self.number += 1
            rows.append((tuple(self.number for _ in COLUMNS[name]), day))
        values = ", ".join(f"({', '.join(map(str, row))}, '{day}')" for row, day in rows)
        self.duckdb.send(f"INSERT INTO {name} VALUES {values}")
        self.duckdb.recv()
        self.tables[name] += rows
        self.events += [f"{name}/{day}" for day in days]
        return f"duckdb {name} {' '.join(days)}"


def resident(pid: int | None) -> float:
    """Return the memory of a process in MB."""
    text = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    match = re.search(r"VmRSS:\s+(\d+)", text)
    assert match is not None
    return int(match[1]) / 1024


def soak(root: Path, catalog: str, seed: int, seconds: float) -> list[str]:
    """Serve for some time; return what is wrong."""
    _PROCESSES.set_forkserver_preload(["tests.server.soak"])
    served = Soaked.create(root, catalog, random.Random(seed), spark=False)
    assert isinstance(served, Soaked)
    server = _PROCESSES.Process(target=serve, args=(str(root),))
    own, theirs = _PROCESSES.Pipe()
    kind, _, place = catalog.partition(":")
    uri = f"ducklake:{kind}:{root / place if kind == 'sqlite' else place}"
    writer = _PROCESSES.Process(target=write, args=(uri, str(root / "lake/data"), theirs))
    server.start()
    writer.start()
    try:
        problems = served.settle(_SETTLES)  # it has begun to look
        served.duckdb = own
        memory, acts = _act(served, server, seconds)
        problems += served.settle(_SETTLES)
        last = resident(server.pid)
        print(f"{acts} acts, {served.number} numbers, {len(served.events)} slices by DuckDB")
        print(f"memory: {memory:.1f} MB after {seconds / 6:.0f} s, {last:.1f} MB at the end")
        if last > memory * (1 + _GROWTH):
            problems.append(f"the memory grew by {last / memory - 1:.0%}")
        return problems + list(served.check())
    finally:
        own.send(None)
        server.terminate()
        for process in (writer, server):
            process.join(30)
        served.close()


def _act(served: Served, server: BaseProcess, seconds: float) -> tuple[float, int]:
    """Act for some time; return the memory of the server at a sixth of it, and how often."""
    memory, acts, begin = 0.0, 0, time.monotonic()
    while time.monotonic() - begin < seconds:
        served.act()
        acts += 1
        time.sleep(served.chance.choice((0.0, 0.5, 1.5)))
        while len(served.open_work()) > 100:
            time.sleep(0.5)
        if not memory and time.monotonic() - begin > seconds / 6:
            memory = resident(server.pid)
    return memory or resident(server.pid), acts


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--catalog", choices=("sqlite", "postgres"), default="sqlite")
    options = parser.parse_args(arguments)
    os.environ.setdefault("TZ", "UTC")
    with catalogs(options.catalog) as create:
        root = Path(tempfile.mkdtemp(prefix="soak-")) / "p"
        problems = soak(root, create(), options.seed, options.minutes * 60)
    print(*problems or ["nothing is wrong"], sep="\n")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
