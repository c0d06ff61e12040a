"""Scan and aggregate a table with 1% of its rows deleted against the same table with all of them.

The deletes are spread evenly over every file: the position of each row is looked up.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from bench import harness, scan
from penstock import Lake
from penstock.lakes.reading.scan import FILE, POSITION, Scan, read
from penstock.lakes.rows.deletes import remove

DELETED, WHOLE = "penstock scan, 1% deleted", "penstock scan"
SHARE = 100  # one row of so many goes


def fill(spark: SparkSession, work: Path, rows: int) -> Lake:
    """A lake whose snapshot before the last has all rows."""
    lake = scan.fill(spark, work, rows)
    at = lake.catalog.latest()
    table = lake.table("main.orders").info()
    source = Scan("main.orders", table.schema, lake.catalog.files(table, at.id), at.id)
    gone = read(spark, source, positions=True).where(f"id % {SHARE} = 7").select(FILE, POSITION)
    counts = {row[FILE]: row["count"] for row in gone.groupBy(FILE).count().collect()}
    removed = remove(spark, source, gone, counts, table.path)
    with lake.transaction() as transaction:
        one = transaction.table("main.orders")
        one.stage(one.candidate.without(removed.files, removed.deletes))
    return lake


def readers(lake: Lake) -> dict[str, Callable[[], DataFrame]]:
    table, last = lake.table("main.orders"), lake.catalog.latest().id
    return {DELETED: table.to_df, WHOLE: lambda: table.to_df(version=last - 1)}


def main() -> None:
    options = harness.options("scan_deletes", __doc__, rows=10_000_000, rounds=9)
    before = harness.load()
    with harness.scratch(options.work) as work, harness.session(work) as spark:
        sides = readers(fill(spark, work, options.rows))
        left = sides[DELETED]().count()
        if left != options.rows - options.rows // SHARE:
            raise SystemExit(f"{left} of {options.rows} rows are left")
        racers = [scan.side(name, make) for name, make in sides.items()]
        seconds = harness.race(racers, options.rounds, warmup=3)
    figure = harness.Figure(
        "Scan with 1% of rows deleted against the scan without",
        harness.ratio(seconds, DELETED, WHOLE),
        1.6,
    )
    report = harness.Report(
        "scan_deletes", (figure,), seconds, options.rows, options.rounds, before, harness.load()
    )
    harness.publish(report, options.out)


if __name__ == "__main__":
    main()
