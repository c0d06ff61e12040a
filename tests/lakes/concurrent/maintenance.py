"""Maintenance of a lake while others write: the lake must agree with the outcomes they got.

    python -m tests.lakes.concurrent.maintenance --catalog postgres --writers 3 --commits 50

Merges, rewrites, flushes, expiry and cleanup run in turn until the writers have ended (on
PostgreSQL DuckDB is one of them). A compaction may be refused because of a delete in the same
table; nothing else may fail. No file that is needed may be missing, and no orphan may remain.
"""

from __future__ import annotations

import argparse
import datetime as dt
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from penstock.errors import CommitConflict
from penstock.lakes.lake import Lake
from penstock.lakes.maintenance.calls import CALLS
from penstock.lakes.maintenance.scope import Removed
from tests import duck, postgres
from tests.lakes.catalog import staging
from tests.lakes.catalog.conftest import Place
from tests.lakes.concurrent.run import DUCKDB, Race, start
from tests.lakes.concurrent.work import Outcome, outcome
from tests.lakes.differential import places
from tests.lakes.maintenance.lakes import files_needed, on_disk

_ROUND: tuple[tuple[str, dict[str, Any]], ...] = (
    ("merge_adjacent_files", {}),
    ("rewrite_data_files", {"delete_threshold": 0.1}),
    ("flush_inlined_data", {}),
    ("cleanup_old_files", {"cleanup_all": True}),
)


@dataclass
class Maintained:
    """How often each function did something, and what was refused."""

    done: Counter[str] = field(default_factory=Counter)
    refused: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def maintain_beside(race: Race, folder: Path) -> Maintained:
    """Start the writers, and look after the lake until they have ended, and once more then."""
    maintained = Maintained()
    with Lake.attach(race.place.uri, data_path=race.place.data_path) as lake:
        for name in race.names:
            staging.create(lake.catalog, name, staging.columns(id="int64"))
        processes = [start(race, folder, at) for at in range(race.writers)]
        if race.with_duckdb:
            processes.append(start(race, folder, DUCKDB))
        try:
            while any(process.poll() is None for process in processes):
                _round(lake, maintained)
        finally:
            for process in processes:
                process.kill()
        codes = [process.wait() for process in processes]
        maintained.problems += [f"a writer ended with {code}" for code in codes if code]
        _round(lake, maintained)
        before = dt.datetime.now(dt.UTC)
        lake.expire_snapshots(older_than=before)
        lake.cleanup_old_files(cleanup_all=True)
        maintained.problems += [f"nobody knows {orphan.path}" for orphan in orphans(lake)]
    lost = files_needed(race.place) - on_disk(race.place)
    maintained.problems += [f"lost: {path}" for path in sorted(lost)]
    outcomes = [
        outcome(line)
        for path in sorted(folder.glob("*.log"))
        for line in path.read_text().splitlines()
    ]
    maintained.problems += balance(race, outcomes)
    return maintained


def orphans(lake: Lake) -> Sequence[Removed]:
    return lake.delete_orphaned_files(cleanup_all=True, dry_run=True)


def _round(lake: Lake, maintained: Maintained) -> None:
    for name, arguments in _ROUND:
        try:
            maintained.done[name] += bool(CALLS[name].function(lake, **arguments))
        except CommitConflict as error:
            maintained.refused.append(f"{name}: {error}")


def balance(race: Race, outcomes: Sequence[Outcome]) -> list[str]:
    """Each committed row exists once, under a row id of its own."""
    problems = [f"unknown: {written.error}" for written in outcomes if written.state == "unknown"]
    with duck.attach(race.place.uri) as connection:
        for name in race.names:
            mine = [
                written
                for written in outcomes
                if (written.table, written.state) == (name, "committed")
            ]
            wanted = Counter(row for written in mine for row in written.inserted)
            wanted -= Counter(row for written in mine for row in written.deleted)
            rows = connection.execute(f"SELECT id, rowid FROM {name}").fetchall()
            there = Counter(key for key, _ in rows)
            if there != wanted:
                lost, more = sorted(wanted - there), sorted(there - wanted)
                problems.append(f"{name}: lost rows {lost}, rows too many {more}")
            if len({row_id for _, row_id in rows}) != len(rows):
                problems.append(f"{name}: row ids come twice")
    return problems


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--catalog", choices=("sqlite", "postgres"), default="postgres")
    parser.add_argument("--writers", type=int, default=3)
    parser.add_argument("--commits", type=int, default=50)
    parser.add_argument("--tables", type=int, default=2)
    options = parser.parse_args(arguments)
    server = postgres.server() if options.catalog == "postgres" else nullcontext("")
    with server as conninfo, tempfile.TemporaryDirectory(prefix="maintenance-") as folder:
        home = places.make(options.catalog, Path(folder) / "lake", conninfo)
        place = Place(home.uri, home.data_path)
        counts = (options.writers, options.commits, options.tables)
        maintained = maintain_beside(
            Race(place, *counts, options.catalog == "postgres"), Path(folder)
        )
    print(
        dict(maintained.done),
        f"{len(maintained.refused)} refused",
        *set(maintained.refused),
        sep="\n",
    )
    print(*maintained.problems, sep="\n", flush=True)
    return 1 if maintained.problems else 0


if __name__ == "__main__":
    sys.exit(main())
