"""A hundred small steps in five layers, warm: side by side against one after another.

Each step reads two tables of the layer before, and writes a few rows of its own. The session is
warm when both sides have run once; each run has another argument, so that every table gets other
rows. ``--rows`` are those of a table.
"""

from __future__ import annotations

import statistics
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from bench import harness
from penstock import Project

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LAYERS, WIDTH = 5, 20
TOGETHER, ALONE = "side by side", "one after another"
GOAL = 0.5
_TOML = """[lakes.main]
catalog = "sqlite:lake/meta.sqlite"
data_path = "lake/data"
"""
_HEAD = "-- pipeline\n-- materialize ducklake://main/{name}\n-- $round (int) = 0\n"
_FIRST = "SELECT id, id * $round AS n FROM range({rows})\n"
_NEXT = "SELECT a.id, a.n + b.n + $round AS n FROM {a} AS a JOIN {b} AS b ON a.id = b.id\n"


def write(root: Path, rows: int) -> Path:
    """Write the project, and return where it is."""
    (root / "models").mkdir(parents=True)
    (root / "penstock.toml").write_text(_TOML)
    for layer in range(LAYERS):
        for place in range(WIDTH):
            name, before = f"s{layer}_{place}", f"s{layer - 1}_"
            read = {"a": f"{before}{place}", "b": f"{before}{(place + 1) % WIDTH}"}
            query = _NEXT.format(**read) if layer else _FIRST.format(rows=rows)
            (root / "models" / f"{name}.sql").write_text(_HEAD.format(name=name) + query)
    return root


def side(name: str, root: Path, spark: SparkSession, jobs: int | None) -> harness.Side:
    """The runs of one side, in a lake of its own. ``jobs`` None: by cores, as by default."""
    rounds = count(1)

    def run() -> None:
        with Project.load(root, spark=spark) as project:
            args = {"round": str(next(rounds))}
            result = project.run(jobs=jobs, force=True, args=args, on_event=lambda _: None)
        states = {step.state for step in result.steps}
        if states != {"done"}:
            raise SystemExit(f"not all steps were made: {states}")

    return harness.Side(name, run)


def main() -> None:
    options = harness.options("small_steps", __doc__, rows=100, rounds=3)
    before = harness.load()
    with harness.scratch(options.work) as work, harness.session(work) as spark:
        sides = [
            side(name, write(work / name.replace(" ", "-"), options.rows), spark, jobs)
            for name, jobs in ((TOGETHER, None), (ALONE, 1))
        ]
        seconds = harness.race(sides, options.rounds)
    took = statistics.median(seconds[TOGETHER])
    title = f"{LAYERS * WIDTH} small steps in {LAYERS} layers: {TOGETHER} against {ALONE}"
    ratio = harness.ratio(seconds, TOGETHER, ALONE)
    figures = (harness.Figure(title, ratio, GOAL, note=f"{took:.1f} s"),)
    report = harness.Report(
        "small_steps", figures, seconds, options.rows, options.rounds, before, harness.load()
    )
    harness.publish(report, options.out)


if __name__ == "__main__":
    main()
