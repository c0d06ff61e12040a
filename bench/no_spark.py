"""Commands that start no Spark on a project of 1,000 models: check, lineage, one model's.

Each is a process of its own from its start to its end, cold (the cache is emptied before) and warm.
Python finds its bytecode, as in an installation: it is written to the scratch directory first.
``--rows`` is the number of models. With ``penstock-spark[fast]`` sqlglot is compiled: install
it, and run again with ``--out`` elsewhere to compare.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from bench import generated, harness

#: what runs, whether the cache is warm, seconds at most
GOALS = {
    "check": (("check",), False, 3.0),
    "check, warm": (("check",), True, 0.7),
    "lineage of all columns": (("lineage",), False, 12.0),
    "lineage of all columns, warm": (("lineage",), True, 2.0),
    "plan of one model, warm": (("plan", "--select", "g0/m0000"), True, 0.7),
}
_LINEAGE = """
from penstock import Project
with Project.load(".") as project:
    lineage = project.column_lineage()
columns = [column for made in lineage.models.values() for column in made.columns]
assert all(column.inputs and not column.unknown for column in columns), "all are known"
print(len(columns))
"""
_COMMAND = "from penstock.cli.main import main; main()"


def run(project: Path, cache: Path, arguments: tuple[str, ...]) -> str:
    """One process; what it printed."""
    code = _LINEAGE if arguments == ("lineage",) else _COMMAND
    more = () if arguments == ("lineage",) else arguments
    environment = {
        **os.environ,
        "PENSTOCK_CACHE_DIR": str(cache),
        "PYTHONDONTWRITEBYTECODE": "",
        "PYTHONPYCACHEPREFIX": str(project.with_name("bytecode")),
    }
    command = [sys.executable, "-c", code, *more]
    done = subprocess.run(
        command, cwd=project, env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout


def sides(project: Path, cache: Path) -> list[harness.Side]:
    return [
        harness.Side(
            name,
            run=partial(run, project, cache, arguments),
            prepare=_filled(project, cache, arguments) if warm else partial(_empty, cache),
        )
        for name, (arguments, warm, _) in GOALS.items()
    ]


def _filled(project: Path, cache: Path, arguments: tuple[str, ...]) -> Callable[[], object]:
    return partial(run, project, cache, arguments)


def _empty(cache: Path) -> None:
    shutil.rmtree(cache, ignore_errors=True)


def main() -> None:
    options = harness.options("no_spark", __doc__, rows=1000, rounds=5)
    before = harness.load()
    with harness.scratch(options.work) as work:
        generated.write(work / "project", options.rows)
        seconds = harness.race(sides(work / "project", work / "cache"), options.rounds)
    figures = tuple(
        harness.Figure(
            f"{options.rows:,} models: {name}", statistics.median(seconds[name]), goal, unit="s"
        )
        for name, (_, _, goal) in GOALS.items()
    )
    harness.publish(
        harness.Report(
            "no_spark", figures, seconds, options.rows, options.rounds, before, harness.load(),
            {"sqlglot compiled": _compiled()},
        ),
        options.out,
    )  # fmt: skip


def _compiled() -> str | None:
    try:
        return version("sqlglotc")
    except PackageNotFoundError:
        return None


if __name__ == "__main__":
    main()
