"""Kill a history that is made day by day at random moments; look at what each leaves.

    python -m tests.engine.strategies.killed_history --times 20 [--seed 1]

After each kill the table has the versions that the days which are recorded make by the reference:
none is lost, none is there twice, and the next run goes on with the day after.
"""

from __future__ import annotations

import argparse
import random
import signal
import tempfile
from collections.abc import Iterator, Sequence
from datetime import datetime, time, timedelta
from pathlib import Path
from typing import Any

from penstock.project import Project
from tests.engine.killed_backfill import FIRST, kill_once
from tests.engine.strategies import history_reference as reference
from tests.engine.toy import write_project

DAYS, KEYS = 60, 5
LAST = FIRST + timedelta(days=DAYS - 1)
RULES = reference.Rules(by_time=False, timed=False, track=("v",), closes=True, start="epoch")
EVENTS = f"""
-- pipeline
-- materialize ducklake://main/events
SELECT DATE '{FIRST}' + day AS ds, id, CAST((day + 2 * id) DIV 3 AS STRING) AS v
FROM (SELECT CAST(id DIV {KEYS} AS INT) AS day, CAST(id % {KEYS} AS INT) AS id
      FROM range({DAYS * KEYS}))
WHERE (day + id) % 7 <> 0
"""
DAILY = f"""
MODEL (name main.daily, kind SCD_TYPE_2_BY_COLUMN (unique_key id, columns (v), batch_size 1,
  invalidate_hard_deletes true), start '{FIRST}');
SELECT id, v FROM events WHERE ds = @start_date
"""


def write(root: Path) -> Path:
    return write_project(root, {"models/events": EVENTS, "models/daily": DAILY})


def expected(days: int) -> list[tuple[Any, ...]]:
    """The versions after the first ``days``."""
    made = reference.History(RULES)
    for day in range(days):
        keys = (key for key in range(KEYS) if (day + key) % 7)
        rows = [{"id": key, "v": str((day + 2 * key) // 3)} for key in keys]
        made.load(rows, datetime.combine(FIRST + timedelta(days=day + 1), time()))
    return reference.rows_of(made)


def problems(root: Path) -> tuple[int, list[str]]:
    """How many days are recorded, and whether the table is what these make."""
    with Project.load(root) as project:
        status = next(each for each in project.status() if each.model == "daily")
        days = sum(1 for each in status.slices if each.rows is not None)
        if not days:
            return 0, []
        there = project.query("SELECT id, v, valid_from, valid_to FROM daily", limit=10_000).rows
    return days, list(_differences(sorted(map(tuple, there), key=repr), expected(days)))


def _differences(there: Sequence[Any], wanted: Sequence[Any]) -> Iterator[str]:
    if there != wanted:
        yield f"{len(there)} versions, not {len(wanted)}: {set(there) ^ set(wanted)}"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    chance, found, kills = random.Random(options.seed), list[str](), 0
    while kills < options.times:
        with tempfile.TemporaryDirectory(prefix="killed-") as folder:
            root, days = write(Path(folder) / "p"), 0
            while kills < options.times and days < DAYS:
                code = kill_once(root, chance.randrange(1, 40), chance.random(), LAST)
                kills += code == -signal.SIGKILL
                days, wrong = problems(root)
                found += [f"kill {kills}: {each}" for each in wrong]
                print(f"kill {kills}: {days} days, ended with {code}", *wrong, flush=True)
    print(f"{kills} kills", *found, sep="\n", flush=True)
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main())
