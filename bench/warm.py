"""Commands of the starter project on a warm server, and those that need no Spark.

Each is a process of its own from its start to its end; ``run`` has one model edited before, and
the cold ``run`` starts a session of its own. Needs ``penstock-spark[connect]``; ``--rows`` is
ignored.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from bench import harness

COMMAND = "from penstock.cli.main import main; main()"
COLD, EDITED = "run, cold", "run, one model edited"
_QUERY = "SELECT customer, count(*) FROM orders GROUP BY customer"
GOALS = {
    EDITED: 2.5,
    "preview": 1.5,
    "check --spark": 1.5,
    "test": 1.5,
    "sql with GROUP BY": 1.5,
    "status": 0.4,
    "sql of a small table": 0.4,
    "check": 0.4,
    "plan": 0.4,
}
WARM: dict[str, tuple[str, ...]] = {
    "preview": ("preview", "customers", "--warm"),
    "check --spark": ("check", "--spark", "--warm"),
    "test": ("test", "--warm"),
    "sql with GROUP BY": ("sql", _QUERY, "--warm"),
}
WITHOUT: dict[str, tuple[str, ...]] = {
    "status": ("status",),
    "sql of a small table": ("sql", "SELECT * FROM orders"),
    "check": ("check",),
    "plan": ("plan",),
}
_TEST = """spent:
  model: customers
  inputs:
    orders: [{customer: ada, amount: 2, status: paid}]
  outputs:
    query: [{customer: ada}]
    partial: true
"""


def penstock(project: Path, arguments: Sequence[str]) -> None:
    """Run one command. Raises CalledProcessError where it fails."""
    environment = {key: of for key, of in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, "-c", COMMAND, *arguments]
    subprocess.run(command, cwd=project, env=environment, capture_output=True, check=True)


def edit(project: Path) -> None:
    """Give the model of customers another column."""
    path = project / "models" / "customers.sql"
    number = time.monotonic_ns()
    first, *_ = path.read_text().split("\n-- edited")
    text = first.rstrip().rstrip(";")
    path.write_text(f"{text}\n-- edited\nHAVING count(*) < {number}\n")


def sides(project: Path) -> list[harness.Side]:
    def side(name: str, arguments: Sequence[str], **more: object) -> harness.Side:
        return harness.Side(name, run=partial(penstock, project, arguments), **more)  # type: ignore[arg-type]  # prepare is the only one

    again = partial(edit, project)
    return [
        side(COLD, ("run", "--no-warm"), prepare=again),
        side(EDITED, ("run", "--warm"), prepare=again),
        *(side(name, arguments) for name, arguments in (WARM | WITHOUT).items()),
    ]


def main() -> None:
    options = harness.options("warm", __doc__, rows=0, rounds=5)
    before = harness.load()
    with harness.scratch(options.work) as work:
        project = work / "starter"
        penstock(work, ("init", str(project)))
        (project / "tests" / "spent.yaml").write_text(_TEST)
        penstock(project, ("run", "--warm"))
        try:
            seconds = harness.race(sides(project), options.rounds)
        finally:
            penstock(project, ("spark", "stop"))
    medians = {name: statistics.median(of) for name, of in seconds.items()}
    figures = [
        harness.Figure(f"Starter project, warm: {name}", medians[name], goal, unit="s")
        for name, goal in GOALS.items()
    ]
    against = harness.ratio(seconds, EDITED, COLD)
    figures.append(harness.Figure("Starter project: run, warm against cold", against, 0.2))
    harness.publish(
        harness.Report(
            "warm", tuple(figures), seconds, None, options.rounds, before, harness.load(), {}
        ),
        options.out,
    )


if __name__ == "__main__":
    main()
