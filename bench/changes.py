"""A merge that reads what changed of its source, against the same merge reading all of it.

Of a source of ``--rows`` rows, 5,000 are updated or inserted before each run, so that each side
sees 10,000 since its last. Two models with the same query run in turn, one of them with
``incremental changes``.
"""

from __future__ import annotations

import itertools
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from bench import harness
from penstock import Project
from penstock.events import ignore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CHANGED = 10_000
SETTINGS = """\
[project]
name = "changes"
[lakes.main]
catalog = "sqlite:lake/meta.sqlite"
data_path = "lake/data"
"""
MODEL = "-- pipeline\n-- materialize ducklake://main/{name} key=id\n{line}{query}\n"
QUERY = "SELECT id, upper(name) AS name, amount * 2 AS twice FROM source WHERE amount >= 0"
OURS, WHOLE = "penstock incremental changes", "penstock whole"
NAMES = {OURS: "some", WHOLE: "everything"}


def write(root: Path) -> Path:
    models = root / "models"
    models.mkdir(parents=True)
    (root / "penstock.toml").write_text(SETTINGS)
    for name, line in (("some", "-- incremental changes\n"), ("everything", "")):
        (models / f"{name}.sql").write_text(MODEL.format(name=name, line=line, query=QUERY))
    return root


def load(project: Project, spark: SparkSession, rows: int) -> None:
    source = spark.range(rows).selectExpr("id", "concat('name ', id) AS name", "id % 97 AS amount")
    project.lake("main").table("source").append(source)
    if project.run(on_event=ignore).state != "done":
        raise SystemExit("the first run failed")


def change(project: Project, spark: SparkSession, rows: int, number: int) -> None:
    """Half of the rows are known, half are new."""
    half = CHANGED // 4
    keys = spark.range(half).selectExpr(f"(id * 31 + {number}) % {rows} AS id")
    new = spark.range(rows + number * half, rows + (number + 1) * half)
    changed = keys.union(new).selectExpr("id", f"'round {number}' AS name", "id % 89 AS amount")
    project.lake("main").table("source").merge(changed.dropDuplicates(["id"]), ["id"])


def measure(
    project: Project, spark: SparkSession, options: harness.Options
) -> dict[str, list[float]]:
    """Rows change before each run of a side, so each sees those before its own and the other's."""
    numbers = itertools.count()

    def run(side: str) -> None:
        result = project.run(select=NAMES[side], on_event=ignore)
        if result.state != "done":
            raise SystemExit(f"{side}: {result.steps[0].reason}")

    sides = [
        harness.Side(
            name,
            partial(run, name),
            prepare=lambda: change(project, spark, options.rows, next(numbers)),
        )
        for name in NAMES
    ]
    return harness.race(sides, options.rounds)


def main() -> None:
    options = harness.options("changes", __doc__, rows=10_000_000)
    before = harness.load()
    with harness.scratch(options.work) as work, harness.session(work) as spark:
        with Project.load(write(work / "project"), spark=spark) as project:
            load(project, spark, options.rows)
            seconds = measure(project, spark, options)
            project.run(on_event=ignore)
            same = project.sql("SELECT * FROM some EXCEPT ALL SELECT * FROM everything").count()
        if same:
            raise SystemExit(f"the two tables differ by {same} rows")
    figure = harness.Figure(
        f"Change-driven merge of {CHANGED:,} changed rows against the whole run",
        harness.ratio(seconds, OURS, WHOLE),
        0.1,
    )
    report = harness.Report(
        "changes", (figure,), seconds, options.rows, options.rounds, before, harness.load()
    )
    harness.publish(report, options.out)


if __name__ == "__main__":
    main()
