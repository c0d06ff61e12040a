"""``read_csv`` of one large file against plain Spark with a schema.

Both sides count and sum all columns of a file of ``--rows`` rows: two whole numbers, a decimal, a
double, a date, a timestamp and two texts. Plain Spark reads it with the same types; Penstock looks
the file through first, reads texts, and converts them strictly. The other file has quoted texts.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from bench import harness
from penstock.engine.inputs.csv_files import csv_files
from penstock.engine.inputs.csv_form import CsvOptions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

COLUMNS = (
    ("id", "BIGINT"),
    ("number", "INT"),
    ("price", "DECIMAL(9, 2)"),
    ("share", "DOUBLE"),
    ("day", "DATE"),
    ("time", "TIMESTAMP_NTZ"),
    ("name", "STRING"),
    ("note", "STRING"),
)
SUMS = (
    "sum(id)",
    "sum(number)",
    "sum(price)",
    "sum(share)",
    "max(day)",
    "max(time)",
    "sum(length(name))",
    "sum(length(note))",
)
QUOTES = {"plain": "", "quoted": '"'}


def write(spark: SparkSession, work: Path, rows: int, quote: str) -> Path:
    """Write a file of ``rows`` rows, the texts in quotes where ``quote`` is one."""
    texts = spark.range(0, rows, 1, 1).selectExpr(
        "concat_ws(',', id, id % 1000, cast(id % 100000 / 100 AS DECIMAL(9, 2)), "
        "cast(id % 777 / 7 AS DOUBLE), date_add(DATE '2020-01-01', cast(id % 2000 AS INT)), "
        "date_format(timestamp_seconds(1600000000 + id), 'yyyy-MM-dd HH:mm:ss'), "
        f"concat('{quote}', 'name ', id % 9999, '{quote}'), "
        f"concat('{quote}', 'a note of some words ', id % 77, '{quote}')) AS value"
    )
    folder = work / f"csv{len(quote)}"
    texts.write.text(str(folder))
    path = work / f"data{len(quote)}.csv"
    with path.open("wb") as file:
        file.write((",".join(name for name, _ in COLUMNS) + "\n").encode())
        for part in sorted(folder.glob("part-*")):
            with part.open("rb") as source:
                while block := source.read(1 << 20):
                    file.write(block)
    return path


def plain(spark: SparkSession, path: Path) -> DataFrame:
    schema = ", ".join(f"{name} {kind}" for name, kind in COLUMNS)
    reader = spark.read.options(header="true", mode="FAILFAST", escape='"')
    return reader.schema(schema).csv(str(path))


def penstock(spark: SparkSession, path: Path) -> DataFrame:
    path.touch()  # nothing is known of it
    return csv_files([str(path)], CsvOptions(columns=COLUMNS), path.parent).read(spark)


def sides(spark: SparkSession, work: Path, rows: int) -> list[harness.Side]:
    made = []
    for name, quote in QUOTES.items():
        path = write(spark, work, rows, quote)
        for label, read in (("spark", plain), ("penstock", penstock)):

            def run(path: Path = path, read: object = read) -> None:
                assert callable(read)
                read(spark, path).selectExpr(*SUMS).collect()

            made.append(harness.Side(f"{label}_{name}", run))
    return made


def main() -> None:
    options = harness.options("read_csv", __doc__, rows=10_000_000, rounds=3)
    before = harness.load()
    with harness.scratch(options.work) as work, harness.session(work) as spark:
        seconds = harness.race(sides(spark, work, options.rows), options.rounds)
    figures = tuple(
        harness.Figure(
            f"read_csv of {options.rows:,} rows against plain Spark with a schema, {name}",
            harness.ratio(seconds, f"penstock_{name}", f"spark_{name}"),
            1.25,
        )
        for name in QUOTES
    )
    report = harness.Report(
        "read_csv", figures, seconds, options.rows, options.rounds, before, harness.load()
    )
    harness.publish(report, options.out)


if __name__ == "__main__":
    main()
