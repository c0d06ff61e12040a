"""Scan and aggregate a table against ``spark.read.parquet`` of the same files."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from bench import data, harness
from penstock import Lake

OURS, SPARK, SCHEMA_GIVEN = (
    "penstock scan",
    "spark.read.parquet",
    "spark.read.parquet, schema given",
)
APPENDS = 4  # so that the table is several files of several snapshots


def fill(spark: SparkSession, work: Path, rows: int) -> Lake:
    lake = Lake.attach(
        f"ducklake:sqlite:{work / 'meta.sqlite'}", data_path=str(work / "lake"), spark=spark
    )
    bounds = [rows * part // APPENDS for part in range(APPENDS + 1)]
    for first, end in itertools.pairwise(bounds):
        lake.table("main.orders").append(data.orders(spark, first, end))
    return lake


def paths(lake: Lake) -> list[str]:
    """The files of the table, from the catalog: both sides read the same."""
    snapshot = lake.catalog.latest()
    table = lake.catalog.table("main", "orders", snapshot.id)
    return [file.path for file in lake.catalog.files(table, snapshot.id).files]


def aggregate(frame: DataFrame) -> list[tuple[object, ...]]:
    totals = frame.groupBy("state").agg({"amount": "sum", "account": "max", "id": "count"})
    return sorted(tuple(row) for row in totals.collect())


def readers(spark: SparkSession, lake: Lake) -> dict[str, Callable[[], DataFrame]]:
    """By side. With the schema given Spark reads no footer to infer one: the harder peer."""
    files = paths(lake)
    schema = lake.table("main.orders").to_df().schema
    return {
        OURS: lake.table("main.orders").to_df,
        SPARK: lambda: spark.read.parquet(*files),
        SCHEMA_GIVEN: lambda: spark.read.schema(schema).parquet(*files),
    }


def side(name: str, read: Callable[[], DataFrame]) -> harness.Side:
    return harness.Side(name, lambda: aggregate(read()))


def main() -> None:
    options = harness.options("scan", __doc__, rows=10_000_000, rounds=9)
    before = harness.load()
    with harness.scratch(options.work) as work, harness.session(work) as spark:
        sides = readers(spark, fill(spark, work, options.rows))
        answers = {name: aggregate(read()) for name, read in sides.items()}
        if any(answer != answers[SPARK] for answer in answers.values()):
            raise SystemExit(f"the sides do not agree: {answers}")
        racers = [side(name, read) for name, read in sides.items()]
        seconds = harness.race(racers, options.rounds, warmup=3)
    ratio = harness.ratio(seconds, OURS, SCHEMA_GIVEN)
    figure = harness.Figure(
        "Scan and aggregate against spark.read.parquet",
        harness.ratio(seconds, OURS, SPARK),
        1.05,
        note=f"{ratio:.2f} x with the schema given to Spark",
    )
    report = harness.Report(
        "scan", (figure,), seconds, options.rows, options.rounds, before, harness.load()
    )
    harness.publish(report, options.out)


if __name__ == "__main__":
    main()
