"""Reading a table 5,000 snapshots back in a lake of 10,000, against reading the latest.

Each snapshot added one file and ended the one that was added 100 before, so that every read finds
as many files.
"""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession
from sqlalchemy import text

from bench import catalogs, harness
from penstock import Lake
from penstock.lakes.catalog.catalog import Catalog

LATEST, BACK = "the latest snapshot", "half of the snapshots back"
COLUMNS, IN_FORCE = 4, 100


def fill(uri: str, work: Path, snapshots: int) -> None:
    """File ``i`` is there from snapshot ``i + 1`` on, for so many snapshots."""
    catalogs.make(uri, work, schema="main", files=snapshots, columns=COLUMNS, snapshots=snapshots)
    with Catalog.open(uri) as catalog, catalog.writing() as connection:
        ends = f"UPDATE ducklake_data_file SET end_snapshot = data_file_id + {1 + IN_FORCE}"
        connection.execute(text(f"{ends} WHERE data_file_id < {snapshots - IN_FORCE}"))
    catalogs.link(work, range(snapshots), COLUMNS)


def read(spark: SparkSession, uri: str, version: int | None) -> int:
    """Attach, plan and count the rows; the count is Spark's, not the catalog's."""
    with Lake.attach(uri, spark=spark, read_only=True) as lake:
        return lake.table("events").to_df(version=version).count()


def main() -> None:
    options = harness.options("time_travel", __doc__, rows=10_000, rounds=15)
    before = harness.load()
    with harness.scratch(options.work) as work, harness.session(work) as spark:
        uri = f"ducklake:sqlite:{work / 'meta.sqlite'}"
        fill(uri, work / "data", options.rows)
        back = options.rows // 2
        totals = (read(spark, uri, None), read(spark, uri, back))
        if totals != (IN_FORCE, IN_FORCE):
            raise SystemExit(f"{totals} rows instead of {IN_FORCE} each")
        sides = [
            harness.Side(LATEST, lambda: read(spark, uri, None)),
            harness.Side(BACK, lambda: read(spark, uri, back)),
        ]
        seconds = harness.race(sides, options.rounds, warmup=3)
    figure = harness.Figure(
        f"A read {back:,} snapshots back in a lake of {options.rows:,}, against the latest",
        harness.ratio(seconds, BACK, LATEST),
        1.2,
    )
    report = harness.Report(
        "time_travel", (figure,), seconds, None, options.rounds, before, harness.load()
    )
    harness.publish(report, options.out)


if __name__ == "__main__":
    main()
