"""Let processes of Penstock and DuckDB commit to the same lake at once, then check the totals.

    python -m tests.lakes.concurrent.run --catalog postgres --writers 4 --commits 50 --tables 4

Every commit must be there once or have been reported failed; nothing is lost, nothing is there
twice, and ``ducklake_table_stats`` is exact. Ends with 1, and says what is wrong, when anything is.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tests import duck, postgres
from tests.lakes.catalog import staging
from tests.lakes.catalog.conftest import Place
from tests.lakes.concurrent.work import Outcome, Task, outcome
from tests.lakes.differential import places

_ROOT = Path(__file__).parents[3]
_META = "__ducklake_metadata_lk"
DUCKDB = 99  # its number among the writers


@dataclass(frozen=True)
class Race:
    """``commits`` are those of each process."""

    place: Place
    writers: int
    commits: int
    tables: int
    with_duckdb: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"t{at}" for at in range(self.tables))


@dataclass(frozen=True)
class Result:
    outcomes: tuple[Outcome, ...]
    problems: tuple[str, ...]
    seconds: float

    def __str__(self) -> str:
        states = Counter(
            ("DuckDB " if each.writer == DUCKDB else "") + each.state for each in self.outcomes
        )
        said = ", ".join(f"{count} {state}" for state, count in sorted(states.items()))
        errors = {each.error.splitlines()[0] for each in self.outcomes if each.error}
        rate = states["committed"] / self.seconds
        head = f"{said} in {self.seconds:.1f} s ({rate:.0f} commits/s of Penstock's)"
        return "\n".join([head, *(f"  {error}" for error in sorted(errors)), *self.problems])


def run(race: Race, folder: Path, timeout: float = 600) -> Result:
    with race.place.open() as catalog:
        for name in race.names:
            staging.create(catalog, name, staging.columns(id="int64"))
        before = catalog.latest().id
    started = time.monotonic()
    processes = [start(race, folder, at) for at in range(race.writers)]
    if race.with_duckdb:
        processes.append(start(race, folder, DUCKDB))
    codes = [process.wait(timeout) for process in processes]
    seconds = time.monotonic() - started
    outcomes = tuple(
        outcome(line)
        for path in sorted(folder.glob("*.log"))
        for line in path.read_text().splitlines()
    )
    problems = [f"a writer ended with {code}" for code in codes if code]
    if len(outcomes) != race.commits * len(processes):
        problems.append(f"{len(outcomes)} outcomes of {race.commits * len(processes)} commits")
    return Result(outcomes, (*problems, *balance(race, outcomes, before)), seconds)


def start(race: Race, folder: Path, number: int) -> subprocess.Popen[bytes]:
    program = "duckdb_work" if number == DUCKDB else "work"
    log = str(folder / f"{number}.log")
    task = Task(race.place.uri, race.place.data_path, log, number, race.commits, race.names)
    command = [sys.executable, "-m", f"tests.lakes.concurrent.{program}", json.dumps(asdict(task))]
    return subprocess.Popen(command, cwd=_ROOT)


def balance(race: Race, outcomes: Sequence[Outcome], before: int) -> list[str]:
    """Differences between the lake and the outcomes that writers got; none may be unknown."""
    committed = [each for each in outcomes if each.state == "committed"]
    problems = [f"unknown: {each.error}" for each in outcomes if each.state == "unknown"]
    with duck.attach(race.place.uri) as connection:

        def rows(query: str) -> list[tuple[Any, ...]]:
            return connection.execute(query).fetchall()

        problems += _snapshots(
            committed, before, rows(f"SELECT snapshot_id FROM {_META}.ducklake_snapshot")
        )
        for name in race.names:
            mine = [each for each in committed if each.table == name]
            problems += [f"{name}: {problem}" for problem in _table(name, mine, rows)]
    return problems


def _snapshots(
    committed: Sequence[Outcome], before: int, rows: list[tuple[Any, ...]]
) -> Iterator[str]:
    ids = sorted(snapshot_id for (snapshot_id,) in rows)
    if ids != list(range(before + len(committed) + 1)):
        yield f"{len(committed)} commits after snapshot {before}, but the snapshots are {ids}"
    reported = Counter(each.snapshot for each in committed if each.snapshot is not None)
    twice = [snapshot_id for snapshot_id, count in reported.items() if count > 1]
    if twice:
        yield f"snapshots {twice} were told to two commits"


def _table(name: str, committed: Sequence[Outcome], rows: Any) -> Iterator[str]:
    inserted = [key for each in committed for key in each.inserted]
    deleted = [key for each in committed for key in each.deleted]
    wanted = Counter(inserted) - Counter(deleted)
    there = rows(f"SELECT id, rowid FROM {name}")
    present = Counter(key for key, _ in there)
    if present != wanted:
        yield f"lost rows {sorted(wanted - present)}, rows too many {sorted(present - wanted)}"
    if len({row_id for _, row_id in there}) != len(there):
        yield "row ids come twice"
    table = f"(SELECT table_id FROM {_META}.ducklake_table WHERE table_name = '{name}')"
    ((count, next_id, size),) = rows(
        "SELECT record_count, next_row_id, file_size_bytes "
        f"FROM {_META}.ducklake_table_stats WHERE table_id = {table}"
    )
    if (count, next_id) != (len(inserted), len(inserted)):
        yield f"stats count {count} rows and {next_id} row ids, {len(inserted)} were inserted"
    ((files,),) = rows(
        f"SELECT sum(file_size_bytes) FROM {_META}.ducklake_data_file WHERE table_id = {table}"
    )
    if size != (files or 0):
        yield f"stats have {size} bytes of files, there are {files}"
    ((least, most),) = rows(
        "SELECT min_value::BIGINT, max_value::BIGINT "
        f"FROM {_META}.ducklake_table_column_stats WHERE table_id = {table}"
    )
    if inserted and (least, most) != (min(inserted), max(inserted)):
        yield f"bounds are {least} to {most}, rows {min(inserted)} to {max(inserted)}"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--catalog", choices=("sqlite", "postgres"), action="append")
    parser.add_argument("--writers", type=int, default=4)
    parser.add_argument("--commits", type=int, default=50)
    parser.add_argument("--tables", type=int, action="append")
    options = parser.parse_args(arguments)
    wrong = 0
    for kind in options.catalog or ("sqlite", "postgres"):
        with postgres.server() if kind == "postgres" else nullcontext("") as conninfo:
            for tables in options.tables or (1, 4):
                with tempfile.TemporaryDirectory(prefix="race-") as folder:
                    home = places.make(kind, Path(folder) / "lake", conninfo)
                    place = Place(home.uri, home.data_path)
                    race = Race(place, options.writers, options.commits, tables, kind == "postgres")
                    result = run(race, Path(folder))
                    if home.kind == "postgres":
                        places.drop(home)
                print(f"{kind}, {tables} tables: {result}", flush=True)
                wrong += len(result.problems)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
