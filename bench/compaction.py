"""merge_adjacent_files over many small files, against DuckDB on a copy of the same lake."""

from __future__ import annotations

import itertools
import multiprocessing
import shutil
from collections.abc import Callable
from pathlib import Path

import duckdb
from tests import duck

from bench import harness
from penstock import Lake
from penstock.lakes.maintenance.writing import MEMORY

OURS, DUCKDB = "penstock merge_adjacent_files", "duckdb merge_adjacent_files"
FILES = 2_000
MEGABYTES = 400


def make(folder: Path, files: int, rows: int) -> Path:
    """A lake whose table has so many files of so many rows each, in as many snapshots."""
    with _attached(folder) as connection:
        connection.execute(
            "CREATE TABLE events("
            "id BIGINT, kind VARCHAR, note VARCHAR, value DOUBLE, moment TIMESTAMP)"
        )
        for number in range(files):
            connection.execute(
                "INSERT INTO events SELECT i, 'kind ' || i % 7, md5(i::VARCHAR), i / 3, "
                "TIMESTAMP '2026-01-01' + INTERVAL (i) SECOND "
                f"FROM range({number * rows}, {(number + 1) * rows}) t(i)"
            )
        _leave(connection)
    return folder


def _attached(folder: Path) -> duckdb.DuckDBPyConnection:
    folder.mkdir(parents=True, exist_ok=True)
    connection = duck.attach(_uri(folder), folder / "data", override_data_path=True)
    connection.execute("SET threads = 2")  # those of the machine
    return connection


def _uri(folder: Path) -> str:
    return f"ducklake:sqlite:{folder / 'meta.sqlite'}"


def _leave(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute("USE memory")
    connection.execute("DETACH lk")


def side(name: str, source: Path, work: Path, merge: Callable[[Path], object]) -> harness.Side:
    """Each time on a new copy of the lake."""
    copies = (work / f"{name.split(maxsplit=1)[0]}-{number}" for number in itertools.count())
    current: list[Path] = []

    def prepare() -> None:
        current.append(next(copies))
        shutil.copytree(source, current[-1])

    return harness.Side(
        name,
        run=lambda: merge(current[-1]),
        prepare=prepare,
        clean=lambda: shutil.rmtree(current.pop()),
    )


def ours(folder: Path) -> None:
    with Lake.attach(
        _uri(folder), data_path=f"{folder / 'data'}/", override_data_path=True
    ) as lake:
        done = lake.merge_adjacent_files()
    assert done, "there was something to merge"


def theirs(folder: Path) -> None:
    with _attached(folder) as connection:
        connection.execute("CALL ducklake_merge_adjacent_files('lk')")
        _leave(connection)


def in_process_of_its_own(run: Callable[..., object], *arguments: object) -> None:
    child = multiprocessing.get_context("spawn").Process(target=run, args=arguments)
    child.start()
    child.join()
    assert child.exitcode == 0, "it failed there"


def main(files: int = FILES) -> None:
    options = harness.options("compaction", __doc__, rows=100, rounds=3)
    before = harness.load()
    with harness.scratch(options.work) as work:
        source = work / "source"
        in_process_of_its_own(make, source, files, options.rows)
        first = side(OURS, source, work / "first", ours)
        first.prepare()
        first.run()
        peak = harness.peak_memory_mb()  # of ours alone: DuckDB has not run in this process yet
        sides = (side(OURS, source, work, ours), side(DUCKDB, source, work, theirs))
        seconds = harness.race(sides, options.rounds)
    figures = (
        harness.Figure(
            f"merge_adjacent_files over {files:,} small files against DuckDB",
            harness.ratio(seconds, OURS, DUCKDB),
            1.0,
        ),
        harness.Figure(
            f"Peak memory of that merge, the interpreter's included (setting: {MEMORY >> 20} MiB)",
            peak,
            MEGABYTES,
            "MB",
        ),
    )
    report = harness.Report(
        "compaction", figures, seconds, options.rows, options.rounds, before, harness.load()
    )
    harness.publish(report, options.out)


if __name__ == "__main__":
    main()
