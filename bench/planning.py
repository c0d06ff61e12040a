"""Planning: from attaching a lake of very many files to a DataFrame, no Spark job among it.

The catalogs are on SQLite and, where a server can be had, on PostgreSQL (the tests' own).
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from tests import postgres

from bench import catalogs, harness
from penstock import Lake

MATCHING = 10
WIDE, NARROW = 40, 4  # columns, of the smaller and of the ten times larger lake


def predicate(files: int) -> str:
    first = files // 2
    low, high = first * catalogs.PER_FILE, (first + MATCHING) * catalogs.PER_FILE
    return f"id >= {low} AND id < {high}"


@contextmanager
def uris(work: Path) -> Iterator[dict[str, str]]:
    """A way to a catalog by the name of its database; ``{}`` is the lake's name."""
    catalogs = {"SQLite": f"ducklake:sqlite:{work}/{{}}.sqlite"}
    reason = postgres.why_not()
    if reason is not None:
        print(f"not measured: {reason}")
        yield catalogs
        return
    with postgres.server() as conninfo:
        schema = f"ducklake:postgres:dbname=postgres {conninfo}"
        yield {**catalogs, "PostgreSQL": schema}


def plan(spark: SparkSession, uri: str, schema: str, data: Path, where: str | None) -> DataFrame:
    catalog_schema = schema if "postgres:" in uri else None
    with Lake.attach(
        uri.format(schema), data_path=str(data), spark=spark, metadata_schema=catalog_schema
    ) as lake:
        if where is None:
            return lake.table("events").to_df()
        return lake.sql(f"SELECT id FROM events WHERE {where}")


def measure(title: str, run: Callable[[], DataFrame], rounds: int) -> list[float]:
    seconds: list[float] = []
    for number in range(-1, rounds):
        began = time.perf_counter()
        df = run()
        took = time.perf_counter() - began
        print(f"  {title}: {took:.3f} s", flush=True)
        if "predicate" in title and len(df.inputFiles()) != MATCHING:
            raise SystemExit(f"{len(df.inputFiles())} files are left instead of {MATCHING}")
        if number >= 0:
            seconds.append(took)
    return seconds


def main() -> None:
    options = harness.options("planning", __doc__, rows=100_000, rounds=5)
    many, more = options.rows, options.rows * 10
    before = harness.load()
    with harness.scratch(options.work) as work, uris(work) as found, harness.session(work) as spark:
        catalogs.link(work / "many", range(many), WIDE)
        catalogs.link(work / "more", range(more // 2, more // 2 + MATCHING), NARROW)
        seconds: dict[str, Sequence[float]] = {}
        for name, uri in found.items():
            for schema, files, columns in (("many", many, WIDE), ("more", more, NARROW)):
                _make(uri, schema, work / schema, files, columns)
            for title, schema, where in (
                (f"{name}, {many:,} files, predicate", "many", predicate(many)),
                (f"{name}, {more:,} files, predicate", "more", predicate(more)),
                (f"{name}, {many:,} files", "many", None),
            ):
                run = partial(plan, spark, uri, schema, work / schema, where)
                seconds[title] = measure(title, run, options.rounds)
        memory = harness.peak_memory_mb()
    report = harness.Report(
        "planning", _figures(seconds, many, memory), seconds, many, options.rounds, before,
        harness.load(),
    )  # fmt: skip
    harness.publish(report, options.out)


def _make(uri: str, schema: str, data: Path, files: int, columns: int) -> None:
    began = time.perf_counter()
    catalogs.make(uri.format(schema), data, schema=schema, files=files, columns=columns)
    print(f"made {schema} in {time.perf_counter() - began:.0f} s", flush=True)


def _figures(
    seconds: dict[str, Sequence[float]], many: int, memory: float
) -> tuple[harness.Figure, ...]:
    figures: list[harness.Figure] = []
    for title, took in seconds.items():
        goal = 3.0 if "predicate" not in title else 0.5 if f"{many:,} " in title else 1.0
        value = statistics.median(took)
        figures.append(harness.Figure(f"Planning: {title}", value, goal, unit="s"))
    figures.append(harness.Figure("Planning: peak memory of Python", memory, 300, unit="MB"))
    return tuple(figures)


if __name__ == "__main__":
    main()
