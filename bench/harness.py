"""What every benchmark shares: sides that take turns, medians, ratios, one JSON file a program.

Two sides are only compared inside one process and one run, in alternation and with the order turned
round each time, so that what the machine does meanwhile falls on both.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.distribution import NAME
from penstock.engine.session.spark import start_session
from penstock.settings.config import SparkSettings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RESULTS = Path(__file__).resolve().parent / "results"
CORES = 2


def nothing() -> None:
    """The preparation of a side that needs none."""


@dataclass(frozen=True, slots=True)
class Side:
    """One contender. Only ``run`` is timed; ``prepare`` and ``clean`` come before and after it."""

    name: str
    run: Callable[[], object]
    prepare: Callable[[], object] = nothing
    clean: Callable[[], object] = nothing


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the table: ``value`` should be at most ``goal``; ``unit`` is ``x``, ``s`` ..."""

    title: str
    value: float
    goal: float
    unit: str = "x"
    note: str = ""

    @property
    def met(self) -> bool:
        return self.value <= self.goal


@dataclass(frozen=True, slots=True)
class Report:
    """What one program found, as it is written to ``results/<program>.json``."""

    program: str
    figures: tuple[Figure, ...]
    seconds: Mapping[str, Sequence[float]]  # every round of every side, warm-up left out
    rows: int | None
    rounds: int
    load_before: float  # load average of the last minute, before the first round
    load_after: float
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Options:
    rows: int
    rounds: int
    out: Path
    work: Path | None


def options(program: str, doc: str | None, *, rows: int, rounds: int = 5) -> Options:
    """The flags that all programs take."""
    parser = argparse.ArgumentParser(prog=f"python -m bench.{program}", description=doc)
    parser.add_argument("--rows", type=int, default=rows)
    parser.add_argument("--rounds", type=int, default=rounds)
    parser.add_argument("--out", type=Path, default=RESULTS, help="directory of the JSON result")
    parser.add_argument("--work", type=Path, default=None, help="parent of the scratch directory")
    options = parser.parse_args()
    return Options(options.rows, options.rounds, options.out, options.work)


def race(sides: Sequence[Side], rounds: int, *, warmup: int = 1) -> dict[str, list[float]]:
    """Seconds of each side, by name, in ``rounds`` rounds after ``warmup`` that do not count."""
    seconds: dict[str, list[float]] = {side.name: [] for side in sides}
    for number in range(-warmup, rounds):
        for side in sides if number % 2 == 0 else reversed(sides):
            took = _once(side)
            print(f"  {_label(number):>8}  {side.name:<28} {took:8.3f} s", flush=True)
            if number >= 0:
                seconds[side.name].append(took)
    return seconds


def _label(number: int) -> str:
    return "warm-up" if number < 0 else f"round {number + 1}"


def _once(side: Side) -> float:
    side.prepare()
    try:
        began = time.perf_counter()
        side.run()
        return time.perf_counter() - began
    finally:
        side.clean()


def ratio(seconds: Mapping[str, Sequence[float]], ours: str, theirs: str) -> float:
    """Median of ours over median of theirs."""
    return statistics.median(seconds[ours]) / statistics.median(seconds[theirs])


def load() -> float:
    """The load average of the last minute: what else ran."""
    return os.getloadavg()[0]


def peak_memory_mb() -> float:
    """Peak resident memory of this Python process in MB (10^6 bytes); the JVM is another process.

    VmHWM and not getrusage: ru_maxrss starts with what the parent had when it forked.
    """
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024 / 1e6
    raise RuntimeError("/proc/self/status has no VmHWM: this measurement needs Linux")


def publish(report: Report, out: Path) -> None:
    """Print the figures and write them as JSON."""
    for name, seconds in report.seconds.items():
        middle, low, high = statistics.median(seconds), min(seconds), max(seconds)
        print(f"{name:<32} median {middle:.3f} s  ({low:.3f} to {high:.3f})")
    for figure in report.figures:
        verdict = "met" if figure.met else "MISSED"
        goal, unit = figure.goal, figure.unit
        print(f"{figure.title}: {figure.value:.2f} {unit}  (goal {goal:g} {unit}: {verdict})")
    print(f"load average before {report.load_before:.2f}, after {report.load_after:.2f}")
    out.mkdir(parents=True, exist_ok=True)
    content = {"when": datetime.now(UTC).date().isoformat(), **asdict(report), **_environment()}
    target = out / f"{report.program}.json"
    target.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n")


def _environment() -> dict[str, Any]:
    names = (NAME, "pyspark", "pyarrow", "duckdb", "duckdb-extension-ducklake")
    packages = {name: _version(name) for name in names}
    return {"cores": os.cpu_count(), "python": platform.python_version(), "packages": packages}


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


@contextmanager
def scratch(parent: Path | None) -> Iterator[Path]:
    """A directory that is removed at the end."""
    path = Path(tempfile.mkdtemp(prefix="penstock-bench-", dir=parent))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


@contextmanager
def session(work: Path, conf: Mapping[str, str] | None = None) -> Iterator[SparkSession]:
    """A session as Penstock starts it, on two cores; ``conf`` overrides its settings."""
    fixed = {
        "spark.driver.memory": "4g",
        "spark.sql.warehouse.dir": str(work / "warehouse"),
        "spark.local.dir": str(work / "spark"),
    }
    settings = SparkSettings(
        master=f"local[{CORES}]",
        conf={**fixed, **(conf or {})},
        java_home=os.environ.get("JAVA_HOME"),
        path=os.environ.get("PATH"),
    )
    spark = start_session(settings, "penstock-bench")
    try:
        yield spark
    finally:
        spark.stop()
