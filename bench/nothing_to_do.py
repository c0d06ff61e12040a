"""``penstock run`` of the flights example with nothing to do, and what plans and states of many
models cost: processes that start no Spark.

The plan is of a range of which all slices are known but those of the last five days, of models with
365 of them; the state is that of all models, with 100 (`bench.known_slices`). One model is planned
in a project of ten times as many models, and its state is shown among those with 100 slices. The
corrected day is one of a source with 20 readers, which a plan builds again. Cold: the
cache is emptied before. Beside them a process that only imports SQLAlchemy and sqlglot. Python
finds its bytecode, as in an installation. ``--rows`` is the number of models.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from pathlib import Path

from bench import harness, known_slices
from penstock import Project
from penstock.events import ignore

EXAMPLE = Path(__file__).resolve().parents[1] / "examples" / "flights"
DAY = "2013-01-01"
PLANNED, SHOWN, MISSING = 365, 100, 5  # days
READERS = 20
IMPORTS = "imports"
_COMMAND = """
import sys
from pathlib import Path
from penstock.cli.main import main
main(standalone_mode=False)
peak = next(l for l in Path("/proc/self/status").read_text().splitlines() if l.startswith("VmHWM"))
print(peak.split()[1], file=sys.stderr)
"""


@dataclass(frozen=True)
class Processes:
    """Start commands in a project; ``peaks`` are the megabytes that each took at most."""

    work: Path
    peaks: dict[str, float] = field(default_factory=dict)

    def command(self, name: str, project: Path, arguments: Sequence[str]) -> None:
        told = self._run([sys.executable, "-c", _COMMAND, *arguments], project)
        peak = int(told.splitlines()[-1]) * 1024 / 1e6
        self.peaks[name] = max(peak, self.peaks.get(name, 0))

    def imports(self) -> None:
        self._run([sys.executable, "-c", "import sqlalchemy, sqlglot"], self.work)

    def empty(self) -> None:
        shutil.rmtree(self.work / "cache", ignore_errors=True)

    def _run(self, command: Sequence[str], directory: Path) -> str:
        environment = {
            **os.environ,
            "PENSTOCK_CACHE_DIR": str(self.work / "cache"),
            "PYTHONDONTWRITEBYTECODE": "",
            "PYTHONPYCACHEPREFIX": str(self.work / "bytecode"),
        }
        done = subprocess.run(
            command, cwd=directory, env=environment, capture_output=True, text=True, check=True
        )
        return done.stderr


@dataclass(frozen=True)
class Command:
    """A command in a directory of the scratch, with its goals: seconds and megabytes."""

    name: str
    directory: str
    arguments: tuple[str, ...]
    seconds: float
    megabytes: float | None = None
    warm: bool = True

    def side(self, processes: Processes) -> harness.Side:
        project = processes.work / self.directory
        run = partial(processes.command, self.name, project, self.arguments)
        prepare: Callable[[], object] = run if self.warm else processes.empty
        return harness.Side(self.name, run, prepare)

    def figures(self, seconds: Sequence[float], peak: float) -> list[harness.Figure]:
        took = harness.Figure(self.name, statistics.median(seconds), self.seconds, "s")
        if self.megabytes is None:
            return [took]
        return [took, harness.Figure(f"{self.name}: peak memory", peak, self.megabytes, "MB")]


def commands(models: int) -> tuple[Command, ...]:
    until = known_slices.last(PLANNED) + timedelta(days=MISSING)
    plan = ("plan", "--from", known_slices.FIRST.isoformat(), "--to", until.isoformat())
    what = f"plan of {models:,} models x {PLANNED} slices"
    again = ("run", "--partition", DAY, "--exclude", "logs/")
    one, large = "g0/m0000", 10 * models
    first, last = known_slices.FIRST, known_slices.last(PLANNED)
    behind = ("plan", "--from", first.isoformat(), "--to", last.isoformat())
    return (
        Command("flights example, run with nothing to do", "flights", again, 0.7),
        Command(f"{what}, cold", "planned", plan, 2.0, 200, warm=False),
        Command(f"{what}, warm", "planned", plan, 0.7, 200),
        Command(f"status of {models:,} models x {SHOWN} slices", "shown", ("status",), 0.7, 100),
        Command(f"status of one of {models:,} models", "shown", ("status", one), 0.4),
        Command(f"plan of one of {large:,} models", "large", ("plan", "--select", one), 1.5),
        Command(f"plan of a corrected day with {READERS} readers", "readers", behind, 1.0),
    )


def main() -> None:
    options = harness.options("nothing_to_do", __doc__, rows=1000, rounds=5)
    before = harness.load()
    with harness.scratch(options.work) as work:
        _made(work / "flights")
        for name, days in (("planned", PLANNED), ("shown", SHOWN)):
            known_slices.make(work / name, options.rows, days)
        known_slices.make(work / "large", 10 * options.rows, 1)
        known_slices.make_readers(work / "readers", READERS, PLANNED)
        processes, every = Processes(work), commands(options.rows)
        sides = [command.side(processes) for command in every]
        sides.append(harness.Side(IMPORTS, processes.imports))
        seconds = harness.race(sides, options.rounds)
    figures = [f for c in every for f in c.figures(seconds[c.name], processes.peaks[c.name])]
    ratio = harness.ratio(seconds, every[0].name, IMPORTS)
    figures.append(harness.Figure("the same against importing SQLAlchemy and sqlglot", ratio, 3.0))
    report = harness.Report(
        "nothing_to_do", tuple(figures), seconds, options.rows, options.rounds, before,
        harness.load(),
    )  # fmt: skip
    harness.publish(report, options.out)


def _made(root: Path) -> None:
    """Write the example, and make a day of it in a session that ends here."""
    shutil.copytree(EXAMPLE, root, ignore=shutil.ignore_patterns("lake"))
    with harness.session(root.parent) as spark, Project.load(root, spark=spark) as project:
        result = project.run(partition=DAY, on_event=ignore)
    if result.state != "done":
        raise SystemExit(f"the run of {DAY} ended as {result.state}")


if __name__ == "__main__":
    main()
