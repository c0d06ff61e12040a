"""Run the two examples, then read what they made with DuckDB to compare.

    python examples/demo.py [DIRECTORY] [--days N]

Makes both projects anew in DIRECTORY (default: ./demo). In flights, whose steps are annotated SQL,
it loads day after day, loads the last one again to show that nothing changes, and asks DuckDB's own
ducklake extension for every table at every snapshot. Of world, whose models are `MODEL (...)` of
every kind, it runs the unit tests and all steps, shows where a column comes from, and asks DuckDB
for every table and view. Ends with 1 when anything differs.
"""

from __future__ import annotations

import argparse
import importlib
import shutil
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import duckdb
from rich.console import Console

from penstock import Lake, Project
from penstock.cli.lineage import lines as lineage_lines
from penstock.cli.output import print_table
from penstock.cli.test import lines as test_lines
from penstock.engine.results import RunResult, StepResult
from penstock.errors import PenstockError
from penstock.events import Event, SparkStarting, StepFinished, StepProgress, StepStarted
from penstock.rendering.text import seconds

EXAMPLES = Path(__file__).resolve().parent
FIRST_DAY = date(2013, 1, 1)
MADE_BY_RUNNING = shutil.ignore_patterns("lake", "spark-warehouse", "__pycache__")

console = Console()


@dataclass(frozen=True, slots=True)
class Count:
    """Rows of one table at one snapshot, counted by both. ``changed``: by that snapshot."""

    snapshot: int
    table: str
    changed: bool
    penstock: int
    duckdb: int

    @property
    def agrees(self) -> bool:
        return self.penstock == self.duckdb


def new_project(directory: Path, name: str) -> Path:
    """Copy an example into a directory of its name. A project that the demo made before is
    replaced, anything else stays.

    Raises SystemExit when the directory holds something else.
    """
    example, copy = EXAMPLES / name, directory / name
    marker = copy / "penstock.toml"
    if marker.is_file() and marker.read_bytes() == (example / "penstock.toml").read_bytes():
        shutil.rmtree(copy)
    if copy.exists() and any(copy.iterdir()):
        raise SystemExit(f"{copy} is not empty and not this demo's: name another directory")
    shutil.copytree(example, copy, ignore=MADE_BY_RUNNING, dirs_exist_ok=True)
    return copy


def run(project: Project, title: str, partition: str | None = None) -> RunResult:
    """Run all steps, saying on a terminal what is going on."""
    running: Counter[str] = Counter()

    with console.status(title) as status:

        def show(event: Event) -> None:
            if isinstance(event, SparkStarting):
                status.update("starting Spark")
            if isinstance(event, StepStarted | StepProgress):
                running[event.step] = 1
                status.update(f"{title}: {', '.join(running)}")
            if isinstance(event, StepFinished):
                running.pop(event.step, None)

        return project.run(partition=partition, on_event=show)


def print_run(title: str, result: RunResult) -> None:
    """A line a step; of a step that failed also why."""
    print(f"\n{title}: {result.state} in {seconds(result.seconds)}")
    columns = ("table", "strategy", "slice", "state", "rows", "snapshot", "tests", "time")
    print_table(columns, [line(step) for step in result.steps])
    for step in result.steps:
        if step.error is not None:
            print(f"{step.name}: {step.error}", file=sys.stderr)


def line(step: StepResult) -> tuple[Any, ...]:
    passed = sum(check.passed for check in step.checks)
    tests = f"{passed} of {len(step.checks)} passed" if step.checks else ""
    slice_ = step.slice or "whole table"
    counts = (step.rows, step.snapshot_id, tests, seconds(step.seconds))
    return (table_of(step), step.strategy, slice_, step.state, *counts)


def table_of(step: StepResult) -> str:
    return step.target.partition(".")[2]


def load_days(project: Project, days: int) -> date:
    """Load the first days one by one; returns the last of them.

    Raises SystemExit when a run is not done.
    """
    for number in range(days):
        day = FIRST_DAY + timedelta(days=number)
        result = run(project, f"{day}", day.isoformat())
        print_run(f"Day {day}", result)
        if result.state != "done":
            raise SystemExit(1)
    return day


def load_again(project: Project, lake: Lake, day: date) -> list[str]:
    """Load a day that is loaded; returns what changed and should not have.

    An append has no memory by design, so each of the two logs gets one more line.
    """
    before = len(lake.snapshots())
    result = run(project, f"{day}", day.isoformat())
    print_run(f"Day {day} again", result)
    logs = [step for step in result.steps if step.strategy == "append"]
    others = [step for step in result.steps if step.strategy != "append"]
    made = len(lake.snapshots()) - before
    unchanged = sum(step.state == "unchanged" for step in others)
    print(
        f"\n{unchanged} of {len(others)} replaced or merged tables are unchanged and have no new "
        f"snapshot; {made} new snapshots for {len(logs)} logs, which note every run."
    )
    wrong = [f"{table_of(step)} is {step.state}" for step in others if step.state != "unchanged"]
    return wrong if made == len(logs) else [*wrong, f"{made} new snapshots for {len(logs)} logs"]


def attach_duckdb(lake: Lake) -> duckdb.DuckDBPyConnection:
    """The lake in DuckDB, as ``lake``: with the extensions as PyPI has them, nothing is fetched."""
    connection = duckdb.connect()
    for name in ("sqlite_scanner", "ducklake"):
        package = importlib.import_module(f"duckdb_extension_{name}")
        file = f"extensions/v{duckdb.__version__}/{name}.duckdb_extension"
        connection.execute(f"LOAD '{Path(package.__path__[0]) / file}'")
    connection.execute(f"ATTACH '{lake.catalog.uri}' AS lake (READ_ONLY)")
    return connection


def compare(lake: Lake, connection: duckdb.DuckDBPyConnection) -> Iterator[Count]:
    """Every table at every snapshot.

    Penstock reads a table where its files are others than at the snapshot before: between, it would
    read the same again.
    """
    known: dict[tuple[Any, ...], int] = {}
    for snapshot in lake.catalog.snapshots():
        for table in lake.catalog.tables(snapshot.id):
            files = lake.catalog.files(table, snapshot.id).files
            key = (table.id, *((file.id, file.delete and file.delete.id) for file in files))
            changed = key not in known
            if changed:
                frame = lake.table(table.qualified_name).to_df(version=snapshot.id)
                known[key] = frame.count()
            query = f"FROM lake.{table.qualified_name} AT (VERSION => {snapshot.id})"
            counted = connection.execute(f"SELECT count(*) {query}").fetchone()
            found = counted[0] if counted else -1
            yield Count(snapshot.id, table.name, changed, known[key], found)


def read_with_duckdb(lake: Lake) -> list[str]:
    """Compare the row counts of both engines; returns what differs."""
    print(f"\nThe same tables with DuckDB {duckdb.__version__} and its ducklake extension:")
    with attach_duckdb(lake) as connection, console.status("counting"):
        counts = list(compare(lake, connection))
    print_table(
        ("snapshot", "changed table", "rows, Penstock", "rows, DuckDB"),
        [(one.snapshot, one.table, one.penstock, one.duckdb) for one in counts if one.changed],
    )
    different = [one for one in counts if not one.agrees]
    print(
        f"{len(counts) - len(different)} of {len(counts)} counts agree: "
        "every table at every snapshot since it was made."
    )
    return [f"{one.table} differs at snapshot {one.snapshot}" for one in different]


def test_queries(project: Project) -> list[str]:
    """Run the unit tests; returns those that did not pass."""
    print("\nThe unit tests, over rows of their own:")
    results = list(project.test())
    for result in results:
        for line in test_lines(result, project.settings.root):
            print(line)
    failed = [result for result in results if result.state in {"failed", "error"}]
    return [f"the test {result.name} is {result.state}" for result in failed]


def count_all(lake: Lake, names: Sequence[str]) -> list[str]:
    """Count the rows of tables and views by both engines; returns what differs."""
    counts = []
    with attach_duckdb(lake) as connection:
        for name in names:
            theirs = connection.execute(f"SELECT count(*) FROM lake.{name}").fetchone()
            ours = lake.sql(f"SELECT * FROM {name}").count()
            counts.append((name, ours, theirs[0] if theirs else -1))
    print()
    print_table(("table or view", "rows, Penstock", "rows, DuckDB"), counts)
    return [f"{name} differs" for name, ours, theirs in counts if ours != theirs]


def flights(directory: Path, days: int) -> list[str]:
    """Returns what was not as it should be."""
    root = new_project(directory, "flights")
    with Project.load(root) as project:
        print(f"The flights project is in {root}: {len(project.models)} steps, one lake.")
        last = load_days(project, days)
        lake = project.lake("main")
        return [*load_again(project, lake, last), *read_with_duckdb(lake)]


def world(directory: Path) -> list[str]:
    """Returns what was not as it should be."""
    root = new_project(directory, "world")
    with Project.load(root) as project:
        print(f"\nThe world project is in {root}: {len(project.models)} models.")
        wrong = test_queries(project)
        result = run(project, "world")
        print_run("All models", result)
        if result.state != "done":
            raise SystemExit(1)
        print("\nWhere a column comes from:")
        for line in lineage_lines(project.lineage("marts.growth.gdp_growth")):
            print(line)
        made = [table_of(step) for step in result.steps]
        return [*wrong, *count_all(project.lake("main"), made)]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("directory", type=Path, nargs="?", default=Path("demo"))
    parser.add_argument("--days", type=int, default=4, choices=range(1, 15), metavar="N")
    options = parser.parse_args()
    try:
        wrong = [*flights(options.directory, options.days), *world(options.directory)]
    except PenstockError as error:
        raise SystemExit(str(error)) from None
    for difference in wrong:
        print(f"NOT AS IT SHOULD BE: {difference}", file=sys.stderr)
    raise SystemExit(1 if wrong else 0)


if __name__ == "__main__":
    main()
