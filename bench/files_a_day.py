"""60 small files a day in one job, against the same slices made one by one.

Both sides are one run of the range in one session: a model whose slices are made together, and the
same query with a LIMIT above all rows, which has them made one by one. The files are CSV, with
declared columns and with inferred ones.
"""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from bench import harness
from penstock.events import ignore
from penstock.project.project import Project

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FIRST = date(2026, 1, 1)
DAYS = 60
LAST = FIRST + timedelta(days=DAYS - 1)
CONFIG = """
[project]
name = "files"
[lakes.main]
catalog = "sqlite:lake/meta.sqlite"
data_path = "lake/data"
"""
HEAD = """-- pipeline
-- partitioned daily
-- materialize ducklake://main/{name}
"""
COLUMNS = ", columns = {'id': 'BIGINT', 'name': 'VARCHAR', 'amount': 'DOUBLE', 'at': 'TIMESTAMP'}"
#: model -> its call's options, and what follows the query
MODELS = {
    "declared": (COLUMNS, ""),
    "declared_apart": (COLUMNS, " LIMIT 1000000000"),
    "inferred": ("", ""),
    "inferred_apart": ("", " LIMIT 1000000000"),
}


def project(work: Path, rows: int) -> Path:
    """Write the project, and ``rows`` rows into the file of each day."""
    root = work / "project"
    for folder in ("models", "data", "lake"):
        (root / folder).mkdir(parents=True)
    (root / "penstock.toml").write_text(CONFIG)
    for name, (options, end) in MODELS.items():
        query = f"SELECT * FROM read_csv('data/{{partition}}.csv'{options}){end}\n"
        (root / "models" / f"{name}.sql").write_text(HEAD.format(name=name) + query)
    for day in range(DAYS):
        at = FIRST + timedelta(days=day)
        lines = (f"{day * rows + n},name {n % 7},{n}.25,{at} 10:00:00" for n in range(rows))
        text = "\n".join(("id,name,amount,at", *lines))
        (root / "data" / f"{at}.csv").write_text(f"{text}\n")
    return root


def sides(spark: SparkSession, work: Path, rows: int) -> list[harness.Side]:
    root = project(work, rows)

    def made(name: str) -> None:
        with Project.load(root, spark=spark) as loaded:
            result = loaded.run(select=name, from_=FIRST, to=LAST, on_event=ignore)
        wrong = [str(step.error) for step in result.steps if step.error]
        require(len(result.steps) == DAYS and not wrong, f"the range was not made: {wrong[:1]}")

    def empty(name: str) -> None:
        with Project.load(root, spark=spark) as loaded:
            if loaded.status(name)[0].slices:
                loaded.drop(name)

    return [
        harness.Side(name, lambda name=name: made(name), prepare=lambda name=name: empty(name))  # type: ignore[misc]  # mypy does not infer a lambda's default
        for name in MODELS
    ]


def require(good: bool, what: str) -> None:
    if not good:
        raise SystemExit(what)


def main() -> None:
    options = harness.options("files_a_day", __doc__, rows=100, rounds=3)
    before = harness.load()
    with harness.scratch(options.work) as work, harness.session(work) as spark:
        seconds = harness.race(sides(spark, work, options.rows), options.rounds)
    figures = tuple(
        harness.Figure(
            f"{DAYS} CSV files a day in one job against one by one, columns {name}",
            harness.ratio(seconds, name, f"{name}_apart"),
            0.15,
        )
        for name in ("declared", "inferred")
    )
    report = harness.Report(
        "files_a_day", figures, seconds, options.rows, options.rounds, before, harness.load()
    )
    harness.publish(report, options.out)


if __name__ == "__main__":
    main()
