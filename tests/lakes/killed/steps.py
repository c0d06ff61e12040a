"""Kill a writer before each change that each kind of commit sends.

    python -m tests.lakes.killed.steps URI FOLDER

It forks, so it is a process without threads of its own. Prints the steps that each kind has; ends
with 1 and says so where a killed commit left something, or one that was not did not go through.
"""

from __future__ import annotations

import signal
import sys

from tests.lakes.catalog.conftest import Place
from tests.lakes.killed import acts
from tests.lakes.killed.acts import ACTS, Act, After, Rows

_MOST = 200  # statements of a commit


def kill_each_step(
    place: Place, act: Act, before: Rows, after: After
) -> tuple[int, Rows, list[str]]:
    """How many steps there were, the rows at the end, and what was wrong."""
    problems = []
    base = acts.latest(place)
    for step in range(_MOST):

        def work(at: int = step) -> None:
            with place.open() as catalog:
                acts.die_at(catalog, at)
                act(catalog, at)

        code, _ = acts.in_child(work)
        made = acts.latest(place) - base
        if code == 0:
            if made != 1:
                problems.append(f"step {step}: not killed, but {made} snapshots made")
            return step, after(before, step), problems
        if code != -signal.SIGKILL:
            problems.append(f"step {step}: ended with {code}")
        if made:
            problems.append(f"step {step}: killed, but {made} snapshots made")
            return step, before, problems
    return _MOST, before, [*problems, "it never ended"]


def main(uri: str, folder: str) -> int:
    place = Place(uri, f"{folder}/data/")
    rows, wrong = acts.begin(place), 0
    for name, (act, after) in ACTS.items():
        steps, rows, problems = kill_each_step(place, act, rows, after)
        problems += balance(acts.duckdb_says(place), rows)
        print(f"{name}: killed at {steps} steps", *problems, sep="\n  ", flush=True)
        wrong += len(problems)
    return 1 if wrong else 0


def balance(there: dict[str, list[int]], expected: Rows) -> list[str]:
    """What DuckDB sees must be ``found``; no snapshot or row id missing, or there twice."""
    problems = []
    if there["rows"] != sorted(expected):
        problems.append(f"rows {there['rows']}, should be {sorted(expected)}")
    if there["compacted"] != [-4, -3, -2, -1, -1]:
        problems.append(f"compacted rows {there['compacted']}")
    if there["snapshots"] != list(range(len(there["snapshots"]))):
        problems.append(f"snapshots {there['snapshots']}")
    if len(set(there["row ids"])) != len(there["row ids"]):
        problems.append(f"row ids {there['row ids']}")
    return problems


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
