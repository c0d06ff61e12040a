"""Append against Spark's own Parquet write of the same DataFrame; memory of the Python driver."""

from __future__ import annotations

import itertools
import shutil
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from bench import data, harness
from penstock import Lake

OURS, SPARK = "penstock append", "spark write.parquet"
MEGABYTES = 400


def contenders(spark: SparkSession, work: Path, frame: DataFrame) -> tuple[harness.Side, ...]:
    """Both write into a new place each time; what was written is removed outside the timing."""
    numbers = itertools.count()
    lake = Lake.attach(
        f"ducklake:sqlite:{work / 'meta.sqlite'}", data_path=str(work / "lake"), spark=spark
    )
    plain = work / "plain"

    def append() -> None:
        lake.table(f"main.orders_{next(numbers)}").append(frame)

    def write() -> None:
        frame.write.parquet(str(plain))

    return (
        harness.Side(OURS, append, clean=lambda: shutil.rmtree(work / "lake" / "main")),
        harness.Side(SPARK, write, clean=lambda: shutil.rmtree(plain)),
    )


def main() -> None:
    options = harness.options("append", __doc__, rows=10_000_000)
    before = harness.load()
    with harness.scratch(options.work) as work, harness.session(work) as spark:
        frame = data.orders(spark, 0, options.rows)
        seconds = harness.race(contenders(spark, work, frame), options.rounds)
        peak = harness.peak_memory_mb()
    figures = (
        harness.Figure(
            "Append against Spark's Parquet write", harness.ratio(seconds, OURS, SPARK), 1.15
        ),
        harness.Figure("Peak memory of the Python driver during append", peak, MEGABYTES, "MB"),
    )
    report = harness.Report(
        "append", figures, seconds, options.rows, options.rounds, before, harness.load()
    )
    harness.publish(report, options.out)


if __name__ == "__main__":
    main()
