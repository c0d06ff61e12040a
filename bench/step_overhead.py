"""The flights example for one more day, warm: what of each step is not Spark's own job time.

Steps run one after another, so that a step's window holds its own jobs only. ``--rounds`` is the
number of days that are measured, after three that warm the session; ``--rows`` has no meaning here.
"""

from __future__ import annotations

import shutil
import statistics
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from pathlib import Path

from pyspark.sql import SparkSession

from bench import harness
from bench.spark_jobs import Interval, Jobs, covered, free_port
from penstock import Project
from penstock.events import Event, StepFinished, StepStarted

EXAMPLE = Path(__file__).resolve().parents[1] / "examples" / "flights"
FIRST, WARMUP, DAYS = date(2013, 1, 1), 3, 14


class Windows:
    """An event sink that notes when each step began and ended."""

    def __init__(self) -> None:
        self.steps: dict[str, Interval] = {}
        self._began: dict[str, float] = {}

    def __call__(self, event: Event) -> None:
        if isinstance(event, StepStarted):
            self._began[event.step] = time.time()
        if isinstance(event, StepFinished) and event.step in self._began:
            self.steps[event.step] = (self._began[event.step], time.time())


def measure(
    spark: SparkSession, jobs: Jobs, root: Path, days: int
) -> tuple[dict[str, list[float]], dict[str, list[float]]]:
    """Seconds outside of jobs, and seconds in all, by step: a value for each measured day."""
    project = Project.load(root, spark=spark)
    outside: dict[str, list[float]] = defaultdict(list)
    whole: dict[str, list[float]] = defaultdict(list)
    for number in range(WARMUP + days):
        windows = Windows()
        day = FIRST + timedelta(days=number)
        result = project.run(partition=day.isoformat(), jobs=1, on_event=windows)
        if result.state != "done":
            raise SystemExit(f"the run of {day} ended as {result.state}")
        if number < WARMUP:
            continue
        intervals = jobs.intervals()
        for step, window in windows.steps.items():
            seconds = window[1] - window[0]
            whole[step].append(seconds)
            outside[step].append(seconds - covered(window, intervals))
    return outside, whole


def show(outside: Mapping[str, Sequence[float]], whole: Mapping[str, Sequence[float]]) -> None:
    print(f"{'step':<28} {'all s':>8} {'not jobs s':>11}   (medians)")
    for step, seconds in outside.items():
        both = statistics.median(whole[step]), statistics.median(seconds)
        print(f"{step:<28} {both[0]:8.3f} {both[1]:11.3f}")


def main() -> None:
    options = harness.options("step_overhead", __doc__, rows=0)
    days = min(options.rounds, DAYS - WARMUP)
    before, port = harness.load(), free_port()
    page = {"spark.ui.enabled": "true", "spark.ui.port": str(port)}
    with harness.scratch(options.work) as work, harness.session(work, page) as spark:
        shutil.copytree(EXAMPLE, work / "flights")
        outside, whole = measure(spark, Jobs(port), work / "flights", days)
    show(outside, whole)
    medians = {step: statistics.median(seconds) for step, seconds in outside.items()}
    worst = max(medians, key=lambda step: medians[step])
    mean = statistics.fmean(medians.values())
    figure = harness.Figure(
        "Step of the flights example, time that is not Spark's jobs",
        medians[worst],
        0.25,
        "s",
        note=f"the worst step, {worst}; {mean:.2f} s is the mean of {len(medians)} steps",
    )
    report = harness.Report(
        "step_overhead",
        (figure,),
        outside,
        None,
        days,
        before,
        harness.load(),
        details={"medians, whole step": {k: statistics.median(v) for k, v in whole.items()}},
    )
    harness.publish(report, options.out)


if __name__ == "__main__":
    main()
