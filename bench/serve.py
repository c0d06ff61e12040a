"""How soon `penstock serve` sees, decides and starts, and what it takes while nothing happens.

DuckDB commits from a process of its own, again when SQLite is locked. A firing appends a row
without Spark in place of a run: what is measured is the time around runs. The time of a commit is
in that from it to its reader. ``--rows`` is the number of idle models, ``--rounds`` of commits.
"""

from __future__ import annotations

import random
import statistics
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from itertools import count
from pathlib import Path

from tests.duckdb_process import DuckDBError, DuckDBProcess

from bench import harness
from penstock.model.time.cron import Cron
from penstock.project.project import Project
from penstock.scheduler.decide import decide
from penstock.scheduler.freshness import late_events
from penstock.scheduler.matching import Index
from penstock.scheduler.schedules import due_events
from penstock.scheduler.subscription import Source, Subscription
from penstock.scheduler.values import Agenda, EventKind, Firing, FiringState, TriggerEvent
from penstock.server.firing_pool import FiringPool
from penstock.server.firing_runner import FiringEnd
from penstock.server.service import ServiceSettings
from penstock.server.serving import ServeOptions, Server

CONFIG = """\
[project]
name = "serve"
[lakes.main]
catalog = "sqlite:lake/meta.sqlite"
data_path = "lake/data"
"""
MODEL = "-- pipeline\n-- on ducklake://main/{source}\n-- materialize ducklake://main/{name}\n"
IDLE_SECONDS = 20.0
EVENTS = 100


@dataclass
class Runs:
    """What stands for runs: it appends a row to the table of the model."""

    project: Project
    began: dict[str, float] = field(default_factory=dict)
    ended: dict[str, float] = field(default_factory=dict)
    done: threading.Event = field(default_factory=threading.Event)

    def __call__(self, firing: Firing, _: threading.Event) -> FiringEnd:
        """Run a firing; the end of that of the last model sets `done`."""
        self.began[firing.model] = time.perf_counter()
        self.project.lake("main").sql(f"INSERT INTO {firing.model} VALUES (1)")
        self.ended[firing.model] = time.perf_counter()
        if firing.model == "second":
            self.done.set()
        return FiringEnd(replace(firing, state=FiringState.DONE))


def write(root: Path, idle: int) -> Project:
    """Write a project: a chain of two models, and others whose table nobody writes."""
    (root / "models").mkdir(parents=True)
    (root / "penstock.toml").write_text(CONFIG)
    sources = {"first": "source", "second": "first"}
    sources |= {f"m{number:04}": f"t{number % 100:02}" for number in range(idle)}
    for name, source in sources.items():
        text = MODEL.format(source=source, name=name) + f"SELECT n FROM {source}\n"
        (root / "models" / f"{name}.sql").write_text(text)
    project = Project.load(root)
    for name in ("source", "first", "second"):
        project.lake("main").sql(f"CREATE TABLE {name} (n INTEGER)")
    return project


@contextmanager
def serving(project: Project, runs: Runs, poll: float) -> Iterator[None]:
    """Serve in a thread, as `penstock serve --no-http` does, with other runs."""
    server = Server(project.context, ServeOptions(has_http=False))
    server.service.pool = FiringPool(2, runs, server.wake)
    server.service.settings = ServiceSettings(poll=poll)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        yield
    finally:
        server.stop()
        thread.join()


def measure_latency(project: Project, rounds: int, poll: float) -> tuple[list[float], list[float]]:
    """Return seconds from commits to their reader, and from its end to the next model."""
    runs, duck = Runs(project), DuckDBProcess("")
    to_reader: list[float] = []
    to_next: list[float] = []
    duck.execute(f"ATTACH '{project.lake('main').catalog.uri}' AS lk")
    try:
        with serving(project, runs, poll):
            time.sleep(2.0)  # it begins to look
            for _ in range(rounds):
                time.sleep(random.random() * max(poll, 0.5))
                runs.done.clear()
                began = commit(duck)
                if not runs.done.wait(60):
                    raise SystemExit("an event was lost")
                to_reader.append(runs.began["first"] - began)
                to_next.append(runs.began["second"] - runs.ended["first"])
    finally:
        duck.close()
    return to_reader, to_next


def commit(duck: DuckDBProcess) -> float:
    """Commit a row; return when the attempt began that was not refused."""
    while True:
        began = time.perf_counter()
        try:
            duck.execute("INSERT INTO lk.source VALUES (1)")
        except DuckDBError as error:
            if "database is locked" not in str(error):
                raise
            print("  DuckDB found the catalog locked", flush=True)
            continue
        return began


def measure_idle(project: Project) -> float:
    """Return CPU seconds per second while nothing happens."""
    with serving(project, Runs(project), 1.0):
        time.sleep(3.0)
        began, cpu = time.perf_counter(), time.process_time()
        time.sleep(IDLE_SECONDS)
        return (time.process_time() - cpu) / (time.perf_counter() - began)


def make_decision(models: int) -> Callable[[], object]:
    """Return a decision over models, every tenth with a schedule, and events of their tables."""
    crons = (Cron("*/5 * * * *"), *[None] * 9)
    subscriptions = {
        f"m{n}": Subscription(
            f"m{n}", f"main.main.m{n}", sources=(Source(f"main.main.t{n}"),), cron=crons[n % 10]
        )
        for n in range(models)
    }
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    events = [
        TriggerEvent(f"asset:t{number}@1", EventKind.ASSET, f"main.main.t{number}", moment)
        for number in range(EVENTS)
    ]
    ids = partial(next, map(str, count()))
    producers = (due_events, late_events)
    index = Index.of(subscriptions)
    return partial(decide, index, Agenda(), events, moment, ids, producers=producers)


def quantile(seconds: Sequence[float], share: float) -> float:
    """Return the value that a share of the values is not above."""
    return sorted(seconds)[max(0, round(share * len(seconds)) - 1)]


def main() -> None:
    """Measure, print and write the figures."""
    options = harness.options("serve", __doc__, rows=1000, rounds=40)
    before = harness.load()
    seconds: dict[str, Sequence[float]] = {}
    figures: list[harness.Figure] = []

    def add(title: str, value: float, goal: float, unit: str) -> None:
        figures.append(harness.Figure(title, value, goal, unit))

    with harness.scratch(options.work) as work:
        project = write(work / "chain", 0)
        for poll in (1.0, 0.2):
            name, steps = f"commit to reader, poll {poll:g} s", f"step to step, poll {poll:g} s"
            seconds[name], seconds[steps] = measure_latency(project, options.rounds, poll)
            add(f"{name}, p95", quantile(seconds[name], 0.95), 1.5, "s")
            add(f"{steps}, p50", statistics.median(seconds[steps]), 0.1, "s")
        share = measure_idle(write(work / "idle", options.rows))
        add(f"{options.rows} idle models, share of a core", 100 * share, 1, "%")
    decision = harness.Side("decision", run=make_decision(options.rows))
    seconds |= harness.race([decision], options.rounds)
    add(f"decision, {EVENTS} events", 1000 * statistics.median(seconds["decision"]), 50, "ms")
    report = harness.Report(
        "serve", tuple(figures), seconds, options.rows, options.rounds, before, harness.load()
    )
    harness.publish(report, options.out)


if __name__ == "__main__":
    main()
