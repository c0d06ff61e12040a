"""What happened, over 10,000 runs: lists of runs, one run, why a slice is as it is, a log.

Each is a process of its own from its start to its end, warm. ``--rows`` is the number of runs; each
has ten steps of one slice, and a log. No Spark.
"""

from __future__ import annotations

import json
import statistics
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

from sqlalchemy import insert

from bench import harness
from bench.no_spark import run
from penstock.engine.planning.recorded_plan import RecordedPlan
from penstock.engine.state.run_log import log_of
from penstock.engine.state.store import State
from penstock.engine.state.tables import RUN, SLICE, STEP, to_text
from penstock.project.project import Project

STEPS = 10
GOAL = 0.5  # seconds
COMMANDS = {
    "runs": ("runs",),
    "runs --failed --since 30d": ("runs", "--failed", "--since", "30d"),
    "runs --model m3": ("runs", "--model", "m3"),
    "runs show last": ("runs", "show", "last"),
    "why m3": ("why", "m3", "--partition", "2026-01-02"),
    "logs last": ("logs", "last"),
    "logs m3": ("logs", "m3"),
    "retry --failed --dry-run": ("retry", "--failed", "--dry-run", "--since", "24h"),
    "state prune --dry-run": ("state", "prune", "--dry-run"),
}
_CONFIG = '[lakes.main]\ncatalog = "sqlite:meta.sqlite"\ndata_path = "data"\n'
_MODEL = """-- pipeline
-- partitioned daily start=2026-01-01
-- materialize ducklake://main/{name}
SELECT '{{partition}}' AS day
"""


def write(root: Path, runs: int) -> None:
    """A project of ten models whose catalog has these runs, an hour apart, and their logs."""
    (root / "models").mkdir(parents=True)
    (root / "penstock.toml").write_text(_CONFIG)
    for number in range(STEPS):
        (root / "models" / f"m{number}.sql").write_text(_MODEL.format(name=f"m{number}"))
    first = datetime.now(UTC) - timedelta(hours=runs)
    with Project.load(root) as project:
        state = State(project.lake("main").catalog)
        state.prepare()
        asked = {"from_": "2026-01-01", "to": "2026-01-31"}
        plan = RecordedPlan.of(project.plan(from_=asked["from_"], to=asked["to"])).to_json()
        hashes = {model.name: model.definition_hash for model in project.models}
        with project.lake("main").catalog.writing() as connection:
            for start in range(0, runs, 1000):
                chunk = range(start, min(start + 1000, runs))
                moments = {number: first + timedelta(hours=number) for number in chunk}
                connection.execute(insert(RUN), [_run(n, at, plan) for n, at in moments.items()])
                connection.execute(
                    insert(STEP), [_step(n, at, s) for n, at in moments.items() for s in range(10)]
                )
            connection.execute(
                insert(SLICE), [_slice(number, runs - 1, hashes) for number in range(STEPS)]
            )
    directory = root / ".penstock" / "logs"
    directory.mkdir(parents=True)
    lines = "".join(json.dumps(each) + "\n" for each in _lines())
    for number in range(runs):
        log_of(directory, _id(number, first + timedelta(hours=number))).write_text(lines)


def _id(number: int, at: datetime) -> str:
    text = f"{int(at.timestamp() * 1000):012x}"
    return f"{text[:8]}-{text[8:]}-7000-8000-{number:012x}"


def _run(number: int, at: datetime, plan: str) -> dict[str, object]:
    return {
        "run_id": _id(number, at),
        "state": "failed" if number % 10 == 0 else "done",
        "partition_value": "2026-01-01 to 2026-01-31",
        "args": "{}",
        "trigger_kind": "manual",
        "started_at": to_text(at),
        "finished_at": to_text(at + timedelta(minutes=5)),
        "host": "db1",
        "pid": 1,
        "process_started": "1",
        "user_name": "ann",
        "exit_code": int(number % 10 == 0),
        "plan": plan,
    }


def _step(number: int, at: datetime, step: int) -> dict[str, object]:
    return {
        "run_id": _id(number, at),
        "step": f"m{step}",
        "target": f"main.m{step}",
        "slice": f"2026-01-{number % 28 + 1:02}",
        "state": "failed" if number % 10 == 0 and step == 3 else "done",
        "started_at": to_text(at + timedelta(seconds=step)),
        "finished_at": to_text(at + timedelta(minutes=4)),
        "row_count": 10,
        "snapshot_id": 0,
    }


def _slice(step: int, number: int, hashes: dict[str, str]) -> dict[str, object]:
    at = datetime.now(UTC)
    return {
        "target": f"main.m{step}",
        "slice": "2026-01-02",
        "run_id": _id(number, at),
        "step": f"m{step}",
        "strategy": "replace",
        "snapshot_id": 0,
        "row_count": 10,
        "definition_hash": hashes[f"m{step}"],
        "published_at": to_text(at),
        "slicing": "daily",
    }


def _lines() -> list[dict[str, object]]:
    at = "2026-01-01T00:00:00.000+00:00"
    names = ("StepStarted", "StepFinished")
    return [
        {"at": at, "event": name, "step": f"m{step}", "slice": None, "state": "done", "seconds": 1}
        for step in range(STEPS)
        for name in names
    ]


def sides(project: Path, cache: Path) -> list[harness.Side]:
    return [
        harness.Side(name, run=partial(run, project, cache, arguments))
        for name, arguments in COMMANDS.items()
    ]


def main() -> None:
    options = harness.options("runs", __doc__, rows=10_000, rounds=5)
    before = harness.load()
    with harness.scratch(options.work) as work:
        write(work / "project", options.rows)
        seconds = harness.race(sides(work / "project", work / "cache"), options.rounds)
    figures = tuple(
        harness.Figure(
            f"{options.rows:,} runs: {name}", statistics.median(seconds[name]), GOAL, unit="s"
        )
        for name in COMMANDS
    )
    harness.publish(
        harness.Report(
            "runs", figures, seconds, options.rows, options.rounds, before, harness.load(), {}
        ),
        options.out,
    )


if __name__ == "__main__":
    main()
