"""Registering many files that are there: 24,000 of them in one call, on PostgreSQL and SQLite.

The files are hard links to some small ones, as what is measured is footers and the catalog.
"""

from __future__ import annotations

import os
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
from tests import duck, postgres

from bench import harness
from penstock.lakes.catalog.catalog import Catalog
from penstock.lakes.catalog.commits.retry import RetryPolicy
from penstock.lakes.methods import add_data_files

FILES = 24_000
SOURCES = 10
PER_FILE = 100
COLUMNS = ("id BIGINT", "ts TIMESTAMP", *(f"v{n} DOUBLE" for n in range(4)), "name VARCHAR")
COLUMNS_MORE = ("flag BOOLEAN", "day DATE", "price DECIMAL(10, 2)")


def files(folder: Path, count: int) -> str:
    """So many files below ``folder``; the pattern that finds them."""
    folder.mkdir(parents=True)
    for source in range(SOURCES):
        pq.write_table(_content(source), folder / f"source-{source}")
    for number in range(count):
        os.link(folder / f"source-{number % SOURCES}", folder / f"{number:06d}.parquet")
    return f"{folder}/*.parquet"


def _content(source: int) -> pa.Table:
    start = source * PER_FILE
    ids = pa.array(range(start, start + PER_FILE), pa.int64())
    random = Random(source)
    return pa.table(
        {
            "id": ids,
            "ts": ids.cast(pa.timestamp("us")),
            **{f"v{n}": [random.random() for _ in range(PER_FILE)] for n in range(4)},
            "name": [f"name {n % 7}" for n in range(PER_FILE)],
            "flag": [n % 2 == 0 for n in range(PER_FILE)],
            "day": pa.array([source * 10 + n % 10 for n in range(PER_FILE)], pa.int32()).cast(
                pa.date32()
            ),
            "price": ids.cast(pa.decimal128(19, 0))
            .cast(pa.decimal128(21, 2))
            .cast(pa.decimal128(10, 2)),
        }
    )


def lake(uri: str, data: Path) -> Catalog:
    """An empty table that the files fit."""
    Catalog.open(uri, data_path=str(data)).close()
    with duck.attach(uri) as connection:
        connection.execute(f"CREATE TABLE t ({', '.join((*COLUMNS, *COLUMNS_MORE))})")
    return Catalog.open(uri, retry=RetryPolicy(retries=0))


def main() -> None:
    options = harness.options("add_files", __doc__, rows=FILES, rounds=1)
    before = harness.load()
    with harness.scratch(options.work) as work, postgres.server() as conninfo:
        paths = files(work / "files", options.rows)
        places = {
            "Penstock, PostgreSQL": f"ducklake:postgres:dbname=postgres {conninfo}",
            "Penstock, SQLite": f"ducklake:sqlite:{work / 'meta.sqlite'}",
        }
        work.chmod(0o755)
        sides = [_side(name, uri, work, paths, options.rows) for name, uri in places.items()]
        seconds = harness.race(sides, 1, warmup=0)
    figures = tuple(
        harness.Figure(f"{options.rows:,} files added, {name}", times[0], 60.0, "s")
        for name, times in seconds.items()
    )
    report = harness.Report(
        "add_files",
        figures,
        seconds,
        None,
        1,
        before,
        harness.load(),
        {"files": options.rows, "peak_memory_mb": harness.peak_memory_mb()},
    )
    harness.publish(report, options.out)


def _side(name: str, uri: str, work: Path, paths: str, count: int) -> harness.Side:
    catalog = lake(uri, work / "data" / name)

    def run() -> None:
        added = add_data_files(catalog, "t", paths)
        if len(added.files) != count:
            raise SystemExit(f"{len(added.files)} files were added, not {count}")

    return harness.Side(name, run, clean=catalog.close)


if __name__ == "__main__":
    main()
