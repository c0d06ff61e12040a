"""The flights example for one more day, warm: what of each step is not Spark's own job time.

Steps run one after another, so that a step's window holds its own jobs only. The JVM compiles what
a step needs over some hundred steps, so that the session is warm when it has run the example's two
weeks twice; ``--rounds`` is the number of days that are measured then, in a third copy of it. The
note has the same days of the first copy, in a new session. ``--rows`` is ignored.
"""

from __future__ import annotations

import shutil
import statistics
import time
from collections import defaultdict
from collections.abc import Mapping
from datetime import date, timedelta
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from bench import harness
from bench.spark_jobs import Interval, Jobs, covered, free_port
from penstock import Project
from penstock.events import Event, StepFinished, StepProgress, StepStarted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXAMPLE = Path(__file__).resolve().parents[1] / "examples" / "flights"
FIRST, SKIPPED, DAYS = date(2013, 1, 1), 3, 14
FORTNIGHTS = 2  # that warm the session
ALL, OUTSIDE = "all", "not jobs"
Times = dict[str, dict[str, list[float]]]  # by step, then ALL, OUTSIDE or a phase: one a day


class Marks:
    """An event sink that notes when each step began, went on to its phases, and ended."""

    def __init__(self) -> None:
        self.steps: dict[str, list[tuple[str, float]]] = defaultdict(list)

    def __call__(self, event: Event) -> None:
        if isinstance(event, StepStarted):
            self.steps[event.step].append(("starting", time.time()))
        if isinstance(event, StepProgress):
            self.steps[event.step].append((event.phase, time.time()))
        if isinstance(event, StepFinished):
            self.steps[event.step].append(("end", time.time()))


def outside(window: Interval, jobs: list[Interval]) -> float:
    """Seconds of the window in which no job ran."""
    return window[1] - window[0] - covered(window, jobs)


def add(times: Times, marks: Marks, jobs: list[Interval]) -> None:
    """Take in a day: each step, and each of its phases."""
    for step, noted in marks.steps.items():
        whole = (noted[0][1], noted[-1][1])
        times[step][ALL].append(whole[1] - whole[0])
        times[step][OUTSIDE].append(outside(whole, jobs))
        phases: dict[str, float] = defaultdict(float)  # a phase may come twice
        for (phase, began), (_, ended) in pairwise(noted):
            phases[phase] += outside((began, ended), jobs)
        for phase, seconds in phases.items():
            times[step][phase].append(seconds)


def fortnight(project: Project, jobs: Jobs, days: range) -> Times:
    """Run the example's days; the times of those at ``days``."""
    times = defaultdict[str, dict[str, list[float]]](lambda: defaultdict(list))
    for number in range(days.stop):
        marks = Marks()
        day = FIRST + timedelta(days=number)
        result = project.run(partition=day.isoformat(), jobs=1, on_event=marks)
        if result.state != "done":
            raise SystemExit(f"the run of {day} ended as {result.state}")
        if number in days:
            add(times, marks, jobs.intervals())
    return {step: dict(phases) for step, phases in times.items()}


def measure(spark: SparkSession, port: int, work: Path, days: int) -> list[Times]:
    """Of each copy of the example, all run in this session."""
    fortnights = []
    for number in range(FORTNIGHTS + 1):
        root = work / f"flights{number}"
        shutil.copytree(EXAMPLE, root, ignore=shutil.ignore_patterns("lake"))
        last = SKIPPED + days if number == FORTNIGHTS else DAYS
        with Project.load(root, spark=spark) as project:
            fortnights.append(fortnight(project, Jobs(port), range(SKIPPED, last)))
    return fortnights


def medians(times: Times) -> dict[str, dict[str, float]]:
    return {
        step: {name: round(statistics.median(seconds), 3) for name, seconds in phases.items()}
        for step, phases in times.items()
    }


def show(middles: Mapping[str, Mapping[str, float]]) -> None:
    """A line a step: all seconds, those outside of jobs, and these by phase."""
    columns = list(dict.fromkeys(name for phases in middles.values() for name in phases))
    print(f"{'medians, s':<24}" + "".join(f"{name:>12}" for name in columns))
    for step, phases in middles.items():
        print(f"{step:<24}" + "".join(f"{phases.get(name, 0):12.3f}" for name in columns))


def main() -> None:
    options = harness.options("step_overhead", __doc__, rows=0)
    days = min(options.rounds, DAYS - SKIPPED)
    before, port = harness.load(), free_port()
    page = {"spark.ui.enabled": "true", "spark.ui.port": str(port)}
    with harness.scratch(options.work) as work, harness.session(work, page) as spark:
        copies = measure(spark, port, work, days)
    new, times = medians(copies[0]), copies[-1]
    middles = medians(times)
    show(middles)
    worst = max(middles, key=lambda step: middles[step][OUTSIDE])
    mean = statistics.fmean(phases[OUTSIDE] for phases in middles.values())
    figure = harness.Figure(
        "Step of the flights example, time that is not Spark's jobs",
        middles[worst][OUTSIDE],
        0.25,
        "s",
        note=f"the worst step, {worst}; {mean:.2f} s is the mean of {len(middles)} steps; "
        f"the same step on days {SKIPPED + 1} to {DAYS} of a new session: {new[worst][OUTSIDE]} s",
    )
    report = harness.Report(
        "step_overhead",
        (figure,),
        {step: phases[OUTSIDE] for step, phases in times.items()},
        None,
        days,
        before,
        harness.load(),
        details={"warm": middles, "new": new},
    )
    harness.publish(report, options.out)


if __name__ == "__main__":
    main()
