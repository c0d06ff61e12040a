"""Four writers on one PostgreSQL catalog against one: commits a second in all.

Each writer is a process and appends one-row commits to a table of its own, then all to one table.
No Spark is started. PostgreSQL runs without fsync, as in `bench.commits`, and then as users
have it, where a commit waits for the disk.
"""

from __future__ import annotations

import multiprocessing
import statistics
import time
from collections.abc import Sequence
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

from tests import postgres

from bench import harness
from bench.commits import _database
from penstock import Lake
from penstock.lakes.format.schema import Column, TableSchema

COMMITS = 400  # of all writers
WRITERS = 4
_SCHEMA = TableSchema((Column("id", "int64"), Column("name", "varchar"), Column("v", "float64")))


def rate(uri: str, tables: Sequence[str], each: int) -> float:
    """Commits a second while a process for each of ``tables`` appends ``each`` rows to it."""
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(len(tables) + 1)
    done: Any = context.Queue()
    writers = [
        context.Process(target=_write, args=(uri, name, each, barrier, done)) for name in tables
    ]
    for writer in writers:
        writer.start()
    barrier.wait(120)
    began = time.perf_counter()
    ended = [done.get(timeout=600) for _ in writers]
    took = time.perf_counter() - began
    for writer in writers:
        writer.join(60)
    if ended != [each] * len(writers):
        raise RuntimeError(f"a writer failed: {ended}")
    return each * len(tables) / took


def _write(uri: str, name: str, count: int, barrier: Barrier, done: Any) -> None:
    """Two commits before the clock starts: connections and compiled statements are there then."""
    written = 0
    with Lake.attach(uri) as lake:
        table = lake.table(name)
        for warm in range(2):
            table.append([{"id": -warm, "name": "warm", "v": 0.0}])
        barrier.wait(120)
        try:
            for number in range(count):
                table.append([{"id": number, "name": f"name {number}", "v": number / 4}])
                written += 1
        finally:
            done.put(written)


def measure(uri: str, data: Path, count: int, rounds: int) -> dict[str, list[float]]:
    """Commits a second by side, one for each round."""
    names = [f"t{number}" for number in range(WRITERS)]
    with Lake.attach(uri, data_path=str(data)) as lake, lake.transaction() as transaction:
        for name in names:
            transaction.create_table(name, _SCHEMA)
    sides = {
        "1 writer": names[:1],
        f"{WRITERS} writers, a table each": names,
        f"{WRITERS} writers, one table": names[:1] * WRITERS,
    }
    by_side: dict[str, list[float]] = {side: [] for side in sides}
    for number in range(rounds):
        for side, tables in sides.items():
            by_side[side].append(rate(uri, tables, count // len(tables)))
            print(
                f"  round {number + 1}  {side:<26} {by_side[side][-1]:8.1f} commits/s", flush=True
            )
    return by_side


def main() -> None:
    options = harness.options("commits_parallel", __doc__, rows=COMMITS, rounds=3)
    before = harness.load()
    rates: dict[str, list[float]] = {}
    figures: list[harness.Figure] = []
    for note, durable in (("", False), (", fsync", True)):
        with harness.scratch(options.work) as work, postgres.server(durable=durable) as conninfo:
            uri = f"ducklake:postgres:{_database(conninfo, 'parallel')}"
            by_side = measure(uri, work, options.rows, options.rounds)
        one_writer, *several = (statistics.median(each) for each in by_side.values())
        figures += [
            harness.Figure(
                f"One writer's commits/s against {side} on PostgreSQL{note}", one_writer / rate, 0.5
            )
            for side, rate in zip(list(by_side)[1:], several, strict=True)
        ]
        rates |= {f"{side}{note}": each for side, each in by_side.items()}
    seconds = {side: [options.rows / rate for rate in of_side] for side, of_side in rates.items()}
    report = harness.Report(
        *("commits_parallel", tuple(figures), seconds, options.rows, options.rounds),
        *(before, harness.load()),
    )
    harness.publish(report, options.out)


if __name__ == "__main__":
    main()
