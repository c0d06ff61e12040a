"""Kill runs of a change feed and of a quarantine at random moments; compare what the next leaves.

    python -m tests.engine.strategies.killed_feeds --times 20 [--seed 1] [--catalog URI] [--at-once]

Each run is a process of its own, with Spark, that ends by SIGKILL after a random time. The feed's
table and its tombstones, and the rows of a slice and those set aside, have to fit each other after
every kill, and are what an undisturbed run leaves after the last one. ``--at-once`` starts two runs
beside each other instead. ``--catalog`` is ``sqlite:NAME``, ``duckdb:NAME`` or one of PostgreSQL.
"""

from __future__ import annotations

import argparse
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from penstock.project.project import Project

FEED = """-- pipeline
-- materialize ducklake://main/feed key=id sequence=seq deletes="op = 'D'"
SELECT * FROM read_csv('events.csv')
"""
ASIDE = """-- pipeline
-- partitioned daily
-- materialize ducklake://main/aside
-- data_test accepted_range seq min=10 severity=quarantine
SELECT id, seq FROM read_csv('events.csv') WHERE '{partition}' > '2026'
"""
TOML = """
[lakes.main]
catalog = "{catalog}"
[spark]
master = "local[2]"
warm = false
[spark.conf]
"spark.driver.memory" = "768m"
"spark.sql.shuffle.partitions" = "2"
"""
Event = tuple[int, int, str]
Rows = list[tuple[object, ...]]


def command(root: Path) -> list[str]:
    penstock = Path(sys.executable).with_name("penstock")
    return [str(penstock), "run", "--partition", "2026-01-02", "--force", "--project", str(root)]


def write_events(root: Path, events: Sequence[Event]) -> None:
    lines = ["id,seq,op", *(",".join(map(str, event)) for event in events)]
    (root / "events.csv").write_text("\n".join(lines) + "\n")


def expected(events: Sequence[Event]) -> dict[str, Rows]:
    """Return the rows that undisturbed runs leave, by the tables."""
    last = {event[0]: event for event in sorted(events, key=lambda event: event[1])}
    return {
        "feed": sorted(event for event in last.values() if event[2] != "D"),
        "feed_deleted": sorted(event[:2] for event in last.values() if event[2] == "D"),
        "aside": sorted(event[:2] for event in events if event[1] >= 10),
        "aside_rejected": sorted(event[:2] for event in events if event[1] < 10),
    }


def stored(root: Path) -> dict[str, Rows]:
    """Return the rows of the tables that exist."""
    queries = {
        "feed": "SELECT * FROM feed",
        "feed_deleted": "SELECT id, seq FROM feed_deleted",
        "aside": "SELECT id, seq FROM aside",
        "aside_rejected": "SELECT id, seq FROM aside_rejected",
    }
    with Project.load(root) as project:
        catalog = project.context.catalog("main")
        latest = None if catalog is None else catalog.latest().id
        if catalog is None or latest is None:
            return {}
        names = {table.name for table in catalog.tables(latest)}
        return {
            name: sorted(tuple(row) for row in project.query(query, limit=10_000).rows)
            for name, query in queries.items()
            if name in names
        }


def check(root: Path, versions: Sequence[Sequence[Event]], *, last_only: bool) -> None:
    """Require each pair of tables to be that of one version of the events."""
    rows = stored(root)
    wanted = [expected(events) for events in (versions[-1:] if last_only else versions)]
    for pair in (("feed", "feed_deleted"), ("aside", "aside_rejected")):
        if not last_only and pair[0] not in rows:
            assert pair[1] not in rows, f"{pair[1]} is there without {pair[0]}"
            continue
        found = [rows.get(name, []) for name in pair]
        assert found in [[want[name] for name in pair] for want in wanted], (pair, found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--catalog", default="sqlite:meta.sqlite")
    parser.add_argument("--at-once", action="store_true")
    options = parser.parse_args()
    choose = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "models").mkdir()
        (root / "models" / "feed.sql").write_text(FEED)
        (root / "models" / "aside.sql").write_text(ASIDE)
        (root / "penstock.toml").write_text(TOML.format(catalog=options.catalog))
        events: list[Event] = []
        versions: list[list[Event]] = []
        began = time.monotonic()
        write_events(root, [(0, 10, "U")])
        versions.append([(0, 10, "U")])
        subprocess.run(command(root), check=True, capture_output=True)
        length = time.monotonic() - began
        events = list(versions[0])
        for number in range(options.times):
            fresh = [
                (choose.randrange(8), 10 * number + choose.randrange(1, 15) + 20 * index, op)
                for index, op in enumerate(choose.choices("UUD", k=4))
            ]
            fresh = [event for event in fresh if event[1] not in {each[1] for each in events}]
            events = [*events, *fresh]
            versions.append(events)
            write_events(root, events)
            if options.at_once:
                runs = [subprocess.Popen(command(root)) for _ in range(2)]
                codes = [run.wait() for run in runs]
                assert 0 in codes, codes
            else:
                run = subprocess.Popen(
                    command(root), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
                )
                time.sleep(length * choose.uniform(0.4, 1.02))
                run.send_signal(signal.SIGKILL)
                run.wait()
                check(root, versions, last_only=False)
                began = time.monotonic()
                subprocess.run(command(root), check=True, capture_output=True)
                length = time.monotonic() - began
            check(root, versions, last_only=True)
            print(f"{number + 1} of {options.times} right", flush=True)


if __name__ == "__main__":
    main()
