"""A seed of 10,000 rows, loaded again as its file changed, and a view and an embedded query made
anew: warm, one step after another.

The file and both queries change before each round. The jobs that Spark ran in the view's step are
counted; the embedded query has no step of its own. ``--rows`` is the seed's.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

from bench import harness
from bench.spark_jobs import Jobs, free_port
from bench.step_overhead import Marks
from penstock import Project

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WARM_UP = 10
SETTINGS = """\
[project]
name = "kinds"
[lakes.main]
catalog = "sqlite:lake/meta.sqlite"
data_path = "lake/data"
"""
SEED = """\
MODEL (name s.seed, kind SEED (path 'seed.csv'),
  columns (id BIGINT, name TEXT, amount DOUBLE, at DATE));
"""
EMBEDDED = "MODEL (name s.embedded, kind EMBEDDED);\nSELECT *, amount * {round} AS more FROM s.seed"
VIEW = "MODEL (name s.view, kind VIEW);\nSELECT *, more + {round} AS most FROM s.embedded"


def write(root: Path, rows: int, number: int) -> None:
    """The project as it is in a round."""
    models = root / "models"
    models.mkdir(parents=True, exist_ok=True)
    (root / "penstock.toml").write_text(SETTINGS)
    (models / "seed.sql").write_text(SEED)
    (models / "embedded.sql").write_text(EMBEDDED.format(round=number + 1))
    (models / "view.sql").write_text(VIEW.format(round=number + 1))
    lines = (f"{n},name {n},{n * (number + 1) / 100},2026-01-{n % 28 + 1:02}" for n in range(rows))
    (models / "seed.csv").write_text("\n".join(["id,name,amount,at", *lines, ""]))


def run(project: Project, jobs: Jobs) -> dict[str, tuple[float, int]]:
    """Each step's seconds, and how many jobs began in it."""
    marks = Marks()
    result = project.run(jobs=1, on_event=marks)
    states = {step.name: step.state for step in result.steps}
    if set(states.values()) != {"done"}:
        raise SystemExit(f"the run did not make all models anew: {states}")
    began = [begin for begin, _ in jobs.intervals()]
    found = {}
    for step, noted in marks.steps.items():
        start, end = noted[0][1], noted[-1][1]
        found[step] = (end - start, sum(start <= begin <= end for begin in began))
    return found


def measure(
    spark: SparkSession, port: int, root: Path, rows: int, rounds: int
) -> dict[str, list[tuple[float, int]]]:
    times: dict[str, list[tuple[float, int]]] = defaultdict(list)
    jobs = Jobs(port)
    for number in range(WARM_UP + rounds):
        write(root, rows, number)
        with Project.load(root, spark=spark) as project:
            steps = run(project, jobs)
        if number >= WARM_UP:
            for step, measured in steps.items():
                times[step].append(measured)
    return times


def main() -> None:
    options = harness.options("kinds", __doc__, rows=10_000)
    before, port = harness.load(), free_port()
    page = {"spark.ui.enabled": "true", "spark.ui.port": str(port)}
    with harness.scratch(options.work) as work, harness.session(work, page) as spark:
        times = measure(spark, port, work / "project", options.rows, options.rounds)
    seconds = {step: [took for took, _ in rounds] for step, rounds in times.items()}
    jobs = max(count for _, count in times["view"])
    figures = (
        harness.Figure(
            f"SEED of {options.rows:,} rows, warm", statistics.median(seconds["seed"]), 1.0, "s"
        ),
        harness.Figure(
            "Spark jobs of a step that makes a view of an embedded query",
            jobs,
            0,
            "jobs",
            note=f"{statistics.median(seconds['view']):.2f} s",
        ),
    )
    report = harness.Report(
        "kinds", figures, seconds, options.rows, options.rounds, before, harness.load()
    )
    harness.publish(report, options.out)


if __name__ == "__main__":
    main()
