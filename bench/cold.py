"""Cold starts: `penstock run` of the starter project beside a bare session that runs one query.

Each is a process of its own from its start to its end: a bare session of PySpark, the same with the
archive of Spark's classes, and the run without and with that archive (`penstock spark prepare`,
which is made first, in a cache of its own). ``--rows`` is not used. The parts of the run are those
that its events tell: until Spark starts, Spark's start, and the steps.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from bench import harness

GOAL = 1.25
COMMAND = "from penstock.cli.main import main; main()"
BARE = """
import sys
from pyspark.sql import SparkSession
builder = SparkSession.builder.master("local[*]").config("spark.ui.enabled", "false")
session = builder.getOrCreate()
assert session.sql("SELECT count(*) FROM range(10)").collect()[0][0] == 10
"""
BARE_NAME, PLAIN, ARCHIVED = "bare session, one query", "run", "run with the archive"


def penstock(*arguments: str, cwd: Path, cache: Path) -> list[tuple[float, str]]:
    """Run a command without a terminal; its lines, each with the seconds until it came."""
    # Else the first run without an archive would build one.
    off = {"PENSTOCK_SPARK_CLASS_ARCHIVE": "false"}
    environ = {**os.environ, "PENSTOCK_CACHE_DIR": str(cache), **off}
    environ.pop("PYTHONDONTWRITEBYTECODE", None)
    began = time.perf_counter()
    lines = []
    with subprocess.Popen(
        [sys.executable, "-c", COMMAND, *arguments],
        cwd=cwd,
        env=environ,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        lines = [(time.perf_counter() - began, line) for line in process.stdout]
    assert process.returncode == 0, lines
    return lines


def run(project: Path, cache: Path, parts: list[Mapping[str, float]]) -> None:
    """One cold run; its parts go to ``parts``."""
    parts.append(_parts(penstock("run", "--json", cwd=project, cache=cache)))


def _parts(lines: list[tuple[float, str]]) -> Mapping[str, float]:
    at = {event.get("event", "result"): second for second, event in _events(lines)}
    return {
        "until Spark starts": at["SparkStarting"],
        "Spark's start": at["SparkStarted"] - at["SparkStarting"],
        "steps": at["RunFinished"] - at["SparkStarted"],
    }


def _events(lines: list[tuple[float, str]]) -> list[tuple[float, dict[str, object]]]:
    return [(second, json.loads(line)) for second, line in lines]


def bare() -> None:
    subprocess.run([sys.executable, "-c", BARE], check=True, capture_output=True)


def sides(work: Path, parts: Mapping[str, list[Mapping[str, float]]]) -> list[harness.Side]:
    project = work / "shop"
    forget: Callable[[], object] = partial(shutil.rmtree, project / "lake", ignore_errors=True)
    return [
        harness.Side(BARE_NAME, run=bare),
        *(
            harness.Side(name, run=partial(run, project, work / cache, parts[name]), prepare=forget)
            for name, cache in ((PLAIN, "empty"), (ARCHIVED, "full"))
        ),
    ]


def main() -> None:
    options = harness.options("cold", __doc__, rows=0, rounds=5)
    before = harness.load()
    parts: dict[str, list[Mapping[str, float]]] = {PLAIN: [], ARCHIVED: []}
    with harness.scratch(options.work) as work:
        penstock("init", "shop", cwd=work, cache=work / "empty")
        penstock("spark", "prepare", cwd=work, cache=work / "full")
        seconds = harness.race(sides(work, parts), options.rounds)
    medians = {
        name: {part: statistics.median(each[part] for each in rounds) for part in rounds[0]}
        for name, rounds in parts.items()
    }
    for name, each in medians.items():
        told = ", ".join(f"{part} {second:.2f} s" for part, second in each.items())
        print(f"{name}: {told}")
    figures = tuple(
        harness.Figure(f"{name} / {BARE_NAME}", harness.ratio(seconds, name, BARE_NAME), goal)
        for name, goal in ((ARCHIVED, GOAL), (PLAIN, GOAL))
    )
    harness.publish(
        harness.Report(
            program="cold",
            figures=figures,
            seconds=seconds,
            rows=None,
            rounds=options.rounds,
            load_before=before,
            load_after=harness.load(),
            details={"parts": medians},
        ),
        options.out,
    )


if __name__ == "__main__":
    main()
