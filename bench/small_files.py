"""Scan and aggregate a table of 1,000 small files against ``spark.read.parquet`` of its directory.

Both sides plan each time: the table asks its catalog, Spark lists the directory.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from bench import data, harness, scan
from penstock import Lake

OURS, SPARK = "penstock scan", "spark.read.parquet"
FILES = 1_000


def fill(spark: SparkSession, work: Path, rows: int, files: int) -> Lake:
    lake = Lake.attach(
        f"ducklake:sqlite:{work / 'meta.sqlite'}", data_path=str(work / "lake"), spark=spark
    )
    spread = data.orders(spark, 0, rows).repartition(files)
    lake.table("main.orders").append(spread)
    return lake


def readers(spark: SparkSession, lake: Lake) -> dict[str, Callable[[], DataFrame]]:
    """The write's own directory is the table's only one."""
    directories = {path.rpartition("/")[0] for path in scan.paths(lake)}
    if len(directories) != 1:
        raise SystemExit(f"the files lie in {len(directories)} directories")
    (directory,) = directories
    return {OURS: lake.table("main.orders").to_df, SPARK: lambda: spark.read.parquet(directory)}


def main() -> None:
    options = harness.options("small_files", __doc__, rows=1_000_000, rounds=9)
    before = harness.load()
    with harness.scratch(options.work) as work, harness.session(work) as spark:
        lake = fill(spark, work, options.rows, FILES)
        sides = readers(spark, lake)
        answers = [scan.aggregate(read()) for read in sides.values()]
        if answers[0] != answers[1] or len(scan.paths(lake)) != FILES:
            raise SystemExit(f"the sides do not agree, or there are not {FILES} files")
        racers = [scan.side(name, make) for name, make in sides.items()]
        seconds = harness.race(racers, options.rounds, warmup=3)
    figure = harness.Figure(
        f"Scan of {FILES:,} small files against spark.read.parquet of their directory",
        harness.ratio(seconds, OURS, SPARK),
        1.1,
    )
    report = harness.Report(
        "small_files", (figure,), seconds, options.rows, options.rounds, before, harness.load()
    )
    harness.publish(report, options.out)


if __name__ == "__main__":
    main()
