"""Delta tables against Spark's plain Parquet, and their merge against delta-rs.

Each round starts from a fresh copy of the same table; only the work named is timed. delta-rs
(``deltalake`` of the extra ``bench``) merges the same source into a copy of the same files.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable
from pyarrow import parquet
from pyspark.sql import SparkSession

from bench import data, harness, scan
from penstock import Delta

APPEND, PARQUET = "penstock append", "spark write parquet"
VECTORS, COPY, DELTA_RS = "merge, deletion vectors", "merge, copy on write", "delta-rs merge"
READ, SCAN = "penstock read", "spark.read.parquet"
NAME = "main.orders"


@dataclass(slots=True)
class Merge:
    """A copy of a table each round, merged into by Penstock or by delta-rs."""

    spark: SparkSession
    work: Path
    original: Path
    source: Path
    by_delta_rs: bool = False
    rows_after: int = 0
    options: dict[str, str] = field(default_factory=dict)

    @property
    def table(self) -> Any:
        return Delta.attach(self.work / "copy", spark=self.spark).table(NAME)

    def prepare(self) -> None:
        shutil.copytree(self.original, self.work / "copy")
        if self.options:
            self.table.set_options(self.options)

    def run(self) -> None:
        if self.by_delta_rs:
            self._delta_rs()
        else:
            self.table.merge(self.spark.read.parquet(str(self.source)), ["id"])

    def _delta_rs(self) -> None:
        source = pa.RecordBatchReader.from_batches(
            parquet.read_schema(next(self.source.glob("*.parquet"))),
            (
                b
                for f in self.source.glob("*.parquet")
                for b in parquet.ParquetFile(f).iter_batches()
            ),
        )
        merged = DeltaTable(self.table.place.uri).merge(
            source, "t.id = s.id", source_alias="s", target_alias="t"
        )
        merged.when_matched_update_all().when_not_matched_insert_all().execute()

    def clean(self) -> None:
        self.rows_after = self.table.to_df().count()
        shutil.rmtree(self.work / "copy")


def appends(spark: SparkSession, work: Path, rows: int) -> list[harness.Side]:
    """The same rows, made by Spark, as a table and as plain files."""
    source = data.orders(spark, 0, rows)

    def append() -> None:
        Delta.attach(work / "appended", spark=spark).table(NAME).append(source)

    def write() -> None:
        source.write.parquet(str(work / "plain"))

    def clean() -> None:
        for name in ("appended", "plain"):
            shutil.rmtree(work / name, ignore_errors=True)

    return [harness.Side(APPEND, append, clean=clean), harness.Side(PARQUET, write, clean=clean)]


def reads(spark: SparkSession, original: Path) -> list[harness.Side]:
    table = Delta.attach(original, spark=spark).table(NAME)
    files = table.files()
    schema = table.to_df().schema
    return [
        scan.side(READ, table.to_df),
        scan.side(SCAN, lambda: spark.read.schema(schema).parquet(*files)),
    ]


def merges(spark: SparkSession, work: Path, original: Path, source: Path) -> dict[str, Merge]:
    on = {"delta.enableDeletionVectors": "true"}
    return {
        VECTORS: Merge(spark, work, original, source, options=on),
        COPY: Merge(spark, work, original, source),
        DELTA_RS: Merge(spark, work, original, source, by_delta_rs=True),
    }


def fill(spark: SparkSession, work: Path, rows: int) -> tuple[Path, Path]:
    """A table of four appends, and changes of a tenth as many rows: half of them new."""
    original, source = work / "original", work / "source"
    table = Delta.attach(original, spark=spark).table(NAME)
    for part in range(scan.APPENDS):
        first, end = rows * part // scan.APPENDS, rows * (part + 1) // scan.APPENDS
        table.append(data.orders(spark, first, end))
    data.changes(spark, rows, rows // 10).write.parquet(str(source))
    return original, source


GOALS = (
    ("Append against Spark's Parquet write", APPEND, PARQUET, 1.15),
    ("Read against Spark's Parquet scan", READ, SCAN, 1.1),
    ("Merge with deletion vectors against delta-rs", VECTORS, DELTA_RS, 1.0),
    ("Merge by copy on write against delta-rs", COPY, DELTA_RS, 1.5),
)


def main() -> None:
    options = harness.options("delta", __doc__, rows=10_000_000, rounds=5)
    before = harness.load()
    with harness.scratch(options.work) as work, harness.session(work) as spark:
        original, source = fill(spark, work, options.rows)
        by_name = merges(spark, work, original, source)
        seconds = harness.race(appends(spark, work, options.rows), options.rounds)
        seconds |= harness.race(reads(spark, original), options.rounds)
        sides = [harness.Side(n, m.run, m.prepare, m.clean) for n, m in by_name.items()]
        seconds |= harness.race(sides, options.rounds)
    counts = {name: merge.rows_after for name, merge in by_name.items()}
    if len(set(counts.values())) > 1:
        raise SystemExit(f"the merges do not agree: {counts}")
    figures = tuple(
        harness.Figure(title, harness.ratio(seconds, ours, theirs), goal)
        for title, ours, theirs, goal in GOALS
    )
    report = harness.Report(
        "delta", figures, seconds, options.rows, options.rounds, before, harness.load()
    )
    harness.publish(report, options.out)


if __name__ == "__main__":
    main()
