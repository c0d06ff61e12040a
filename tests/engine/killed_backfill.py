"""Kill a backfill of 64 slices at random moments, again and again; look at what each leaves.

    python -m tests.engine.killed_backfill --times 50 [--seed 1]

After each kill a slice is recorded exactly where its rows are, once; at the end no slice is lost.
One slice fails each time, so that the joint job is made by halves, in many commits.
"""

from __future__ import annotations

import argparse
import random
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from datetime import date, timedelta
from pathlib import Path

from penstock.project.project import Project
from tests.engine.toy import write_project

FIRST, SLICES, OF_EACH = date(2026, 1, 1), 64, 3
LAST = FIRST + timedelta(days=SLICES - 1)
BAD = str(FIRST + timedelta(days=49))
_LONGEST = 0.4  # seconds that a run lives in its last phase
EVENTS = f"""
-- pipeline
-- materialize ducklake://main/events
SELECT id, CAST(DATE '{FIRST}' + CAST(id % {SLICES} AS INT) AS STRING) AS day
FROM range({SLICES * OF_EACH})
"""
DAILY = """
-- pipeline
-- partitioned daily
-- materialize ducklake://main/daily{strategy}
-- data_test not_null id
SELECT CASE WHEN day = '{bad}' THEN CAST(raise_error('bad') AS BIGINT) ELSE id END AS id
FROM events WHERE day = '{{partition}}'
"""
# Runs the range, and kills itself so many seconds after so many phases of its slices have begun.
CHILD = """
import os, signal, sys, threading
from penstock.events import StepProgress
from penstock.project.project import Project

root, first, last, phases, delay = sys.argv[1:]
begun = []

def sink(event):
    if isinstance(event, StepProgress) and event.step == "daily":
        begun.append(event)
        if len(begun) == int(phases):
            threading.Timer(float(delay), lambda: os.kill(os.getpid(), signal.SIGKILL)).start()

overrides = {"spark.master": "local[2]", "spark.conf.spark.driver.memory": "512m"}
result = Project.load(root, overrides=overrides).run(from_=first, to=last, on_event=sink)
sys.exit(result.exit_code)
"""


def write(root: Path, strategy: str, *, bad: str) -> Path:
    daily = DAILY.format(strategy=strategy, bad=bad)
    return write_project(root, {"models/events": EVENTS, "models/daily": daily})


def kill_once(root: Path, phases: int, delay: float, last: date = LAST) -> int:
    """How the run ended: killed ``delay`` seconds after so many phases, or on its own before.

    A slice, and a job of many, has four: querying, writing, testing, publishing.
    """
    command = [sys.executable, "-c", CHILD, str(root), str(FIRST), str(last)]
    done = subprocess.run(
        [*command, str(phases), str(delay)], capture_output=True, timeout=600, check=False
    )
    return done.returncode


def problems(root: Path) -> tuple[int, list[str]]:
    """How many slices are recorded, and where rows and records are not the same."""
    with Project.load(root) as project:
        status = next(each for each in project.status() if each.model == "daily")
        recorded = {each.slice: each.rows for each in status.slices if each.rows is not None}
        if not recorded:
            return 0, []
        query = "SELECT _wm_partition AS day, count(*) AS n, count(DISTINCT id) AS ids FROM daily"
        there = project.query(f"{query} GROUP BY 1", limit=10_000).rows
    counts = {day: n for day, n, _ in there}
    found = [f"{day}: {n} rows, {ids} of them different" for day, n, ids in there if n != ids]
    found += [f"{day}: not {OF_EACH} rows" for day, n in counts.items() if n != OF_EACH]
    if counts != recorded:
        found.append(f"recorded and there differ: {sorted(counts.items() ^ recorded.items())[:5]}")
    return len(recorded), found


def finish(root: Path, strategy: str) -> list[str]:
    """The rest by an undisturbed run, without the slice that fails."""
    write(root, strategy, bad="none")
    with Project.load(root) as project:
        state = project.run(from_=FIRST, to=LAST).state
    count, found = problems(root)
    found += [] if state == "done" else [f"the last run ended as {state}"]
    return [*found, *([] if count == SLICES else [f"{count} of {SLICES} slices in the end"])]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--times", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    chance, found, kills, number = random.Random(options.seed), list[str](), 0, 0
    while kills < options.times:
        strategy = " append" if number % 2 else ""
        with tempfile.TemporaryDirectory(prefix="killed-") as folder:
            root, count = write(Path(folder) / "p", strategy, bad=BAD), 0
            while kills < options.times and count < SLICES - 1:
                code = kill_once(root, chance.randrange(1, 32), chance.random() * _LONGEST)
                kills += code == -signal.SIGKILL
                count, wrong = problems(root)
                found += [f"{strategy or 'replace'}, kill {kills}: {each}" for each in wrong]
                print(f"kill {kills}: {count} slices, ended with {code}", *wrong, flush=True)
            found += finish(root, strategy)
        number += 1
    print(f"{kills} kills in {number} backfills", *found, sep="\n", flush=True)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
