"""Kill a history that is made day by day at random moments; look at what each leaves.

    python -m tests.engine.strategies.killed_history --times 20 [--seed 1]

After each kill the table has the versions that the days which are recorded make by the reference:
none is lost, none is there twice, and the next run continues with the day after. Sources are
random; histories by column and by time take turns.
"""

from __future__ import annotations

import argparse
import random
import signal
import tempfile
from collections.abc import Iterator, Sequence
from datetime import datetime, time, timedelta
from itertools import cycle
from pathlib import Path
from typing import Any

from penstock.project.project import Project
from tests.engine.killed_backfill import FIRST, kill_once
from tests.engine.strategies import history_reference as reference
from tests.engine.toy import write_project

DAYS, KEYS = 60, 5
LAST = FIRST + timedelta(days=DAYS - 1)
RULES = {
    "SCD_TYPE_2_BY_COLUMN": reference.Rules(False, False, ("v",), True, "epoch"),
    "SCD_TYPE_2_BY_TIME": reference.Rules(True, True, ("v",), True, "epoch"),
}
OPTIONS = {"SCD_TYPE_2_BY_COLUMN": "columns (v)", "SCD_TYPE_2_BY_TIME": "updated_at_name at"}
EVENTS = """
-- pipeline
-- materialize ducklake://main/events
SELECT DATE '{first}' + day AS ds, id, v, TIMESTAMP_NTZ '{first}' + MAKE_DT_INTERVAL(at) AS at
FROM VALUES {rows} AS e(day, id, v, at)
"""
DAILY = """
MODEL (name main.daily, kind {kind} (unique_key id, {option}, batch_size 1,
  invalidate_hard_deletes true), start '{first}');
SELECT id, v{at} FROM events WHERE ds = @start_date
"""
Source = list[list[dict[str, Any]]]  # the rows of each day


def source(seed: int, kind: str) -> Source:
    """By time a key may have several rows a day, some of which come late."""
    choose = random.Random(seed)
    return [list(_day(choose, day, timed=RULES[kind].timed)) for day in range(DAYS)]


def _day(choose: random.Random, day: int, *, timed: bool) -> Iterator[dict[str, Any]]:
    for key in range(KEYS):
        late = choose.sample(range(day + 1), min(day + 1, choose.choice((0, 1, 1, 2))))
        for at in late if timed else late[:1]:
            row = {"id": key, "v": choose.choice("abc")}
            moment = datetime.combine(FIRST + timedelta(days=at), time())
            yield {**row, "at": moment} if timed else row


def write(root: Path, days: Source, kind: str) -> Path:
    def text(day: int, row: dict[str, Any]) -> str:
        at = row["at"].date() - FIRST if "at" in row else timedelta(0)
        return f"({day}, {row['id']}, '{row['v']}', {at.days})"

    rows = ", ".join(text(day, row) for day, load in enumerate(days) for row in load)
    at = ", at" if RULES[kind].timed else ""
    daily = DAILY.format(kind=kind, option=OPTIONS[kind], first=FIRST, at=at)
    events = EVENTS.format(first=FIRST, rows=rows)
    return write_project(root, {"models/events": events, "models/daily": daily})


def expected(days: Source, kind: str) -> list[tuple[Any, ...]]:
    """The versions after these days, each of which is loaded at its end."""
    made = reference.History(RULES[kind])
    for day, load in enumerate(days):
        made.load(load, datetime.combine(FIRST + timedelta(days=day + 1), time()))
    return reference.rows_of(made)


def problems(root: Path, loads: Source, kind: str) -> tuple[int, list[str]]:
    """How many days are recorded, and whether the table is what these make."""
    with Project.load(root) as project:
        status = next(each for each in project.status() if each.model == "daily")
        days = sum(1 for each in status.slices if each.rows is not None)
        if not days:
            return 0, []
        there = project.query("SELECT * FROM daily", limit=10_000).rows
    wanted = expected(loads[:days], kind)
    return days, list(_differences(sorted(map(tuple, there), key=repr), wanted))


def _differences(there: Sequence[Any], wanted: Sequence[Any]) -> Iterator[str]:
    if there != wanted:
        yield f"{len(there)} versions, not {len(wanted)}: {set(there) ^ set(wanted)}"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    chance, found, kills = random.Random(options.seed), list[str](), 0
    kinds = cycle(RULES)
    while kills < options.times:
        with tempfile.TemporaryDirectory(prefix="killed-") as folder:
            kind, days = next(kinds), 0
            loads = source(chance.randrange(1000), kind)
            root = write(Path(folder) / "p", loads, kind)
            while kills < options.times and days < DAYS:
                code = kill_once(root, chance.randrange(1, 40), chance.random(), LAST)
                kills += code != 0
                days, wrong = problems(root, loads, kind)
                if code not in {0, -signal.SIGKILL}:
                    wrong.append(f"the run ended with {code}")
                found += [f"{kind}, kill {kills}: {each}" for each in wrong]
                print(f"kill {kills}: {days} days, ended with {code}", *wrong, flush=True)
    print(f"{kills} kills", *found, sep="\n", flush=True)
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main())
