"""365 daily slices of a model from empty by one run of the range, against plain Spark.

Plain Spark runs the same query once over all days and writes its rows as Parquet files partitioned
by day. The other side is one run a day, of some days: its time is that of as many as the range has.
The source is a table of the lake that neither of them makes.
"""

from __future__ import annotations

import shutil
from datetime import date, timedelta
from pathlib import Path

from pyspark.sql import SparkSession

from bench import harness
from penstock.events import ignore
from penstock.lakes.lake import Lake
from penstock.project.project import Project

FIRST = date(2025, 1, 1)
DAYS, SAMPLE = 365, 5
LAST = FIRST + timedelta(days=DAYS - 1)
CONFIG = """
[project]
name = "backfill"
[lakes.main]
catalog = "sqlite:lake/meta.sqlite"
data_path = "lake/data"
"""
MODEL = """-- pipeline
-- partitioned daily
-- materialize ducklake://main/daily
-- data_test not_null id
SELECT id, account, amount FROM events WHERE day = '{partition}'
"""
JOINT, PLAIN, APART = "range", "plain Spark", "a day at a time"


def project(work: Path) -> Path:
    root = work / "project"
    (root / "models").mkdir(parents=True)
    (root / "penstock.toml").write_text(CONFIG)
    (root / "models" / "daily.sql").write_text(MODEL)
    return root


def fill(spark: SparkSession, root: Path, rows: int) -> None:
    """The source: as many rows of each day, in no order of days."""
    frame = spark.range(rows).selectExpr(
        "id",
        "id % 1000 AS account",
        "CAST(id % 99991 AS DOUBLE) / 7 AS amount",
        f"CAST(date_add(DATE '{FIRST}', CAST(id % {DAYS} AS INT)) AS STRING) AS day",
    )
    with Lake.attach(
        f"ducklake:sqlite:{root / 'lake' / 'meta.sqlite'}",
        data_path=str(root / "lake" / "data"),
        spark=spark,
    ) as lake:
        lake.table("events").append(frame)


def sides(spark: SparkSession, work: Path, rows: int) -> list[harness.Side]:
    root = project(work)
    (root / "lake").mkdir()
    fill(spark, root, rows)
    files = work / "plain"

    def joint() -> None:
        with Project.load(root, spark=spark) as loaded:
            result = loaded.run(from_=FIRST, to=LAST, on_event=ignore)
        wrong = [str(step.error) for step in result.steps if step.error]
        require(len(result.steps) == DAYS and not wrong, f"the range was not made: {wrong[:1]}")

    def apart() -> None:
        with Project.load(root, spark=spark) as loaded:
            for day in range(SAMPLE):
                result = loaded.run(FIRST + timedelta(days=day), on_event=ignore)
                require(result.state == "done", "a day was not made")

    def plain() -> None:
        with Lake.attach(
            f"ducklake:sqlite:{root / 'lake' / 'meta.sqlite'}", read_only=True, spark=spark
        ) as lake:
            source = lake.table("events").to_df()
            chosen = source.where(f"day BETWEEN '{FIRST}' AND '{LAST}'")
            rows_ = chosen.select("id", "account", "amount", "day")
            rows_.repartition("day").write.partitionBy("day").parquet(str(files))

    def empty() -> None:
        with Project.load(root, spark=spark) as loaded:
            if loaded.status("daily")[0].slices:
                loaded.drop("daily")

    return [
        harness.Side(JOINT, joint, prepare=empty),
        harness.Side(PLAIN, plain, prepare=lambda: shutil.rmtree(files, ignore_errors=True)),
        harness.Side(APART, apart, prepare=empty),
    ]


def require(good: bool, what: str) -> None:
    if not good:
        raise SystemExit(what)


def main() -> None:
    options = harness.options("backfill", __doc__, rows=10_000_000, rounds=3)
    before = harness.load()
    with harness.scratch(options.work) as work, harness.session(work) as spark:
        seconds = harness.race(sides(spark, work, options.rows), options.rounds)
    whole = {**seconds, APART: [each * DAYS / SAMPLE for each in seconds[APART]]}
    figures = (
        harness.Figure(
            f"{DAYS} daily slices from empty against one plain Spark job",
            harness.ratio(whole, JOINT, PLAIN),
            1.30,
        ),
        harness.Figure(
            f"{DAYS} daily slices from empty against one run a day",
            harness.ratio(whole, JOINT, APART),
            0.10,
            note=f"a run a day is measured on {SAMPLE} days",
        ),
    )
    report = harness.Report(
        "backfill", figures, seconds, options.rows, options.rounds, before, harness.load()
    )
    harness.publish(report, options.out)


if __name__ == "__main__":
    main()
