"""Ranges, restatements and drops of Python steps of every strategy."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from penstock.cli.main import main
from penstock.events import ignore
from penstock.project.project import Project
from tests.engine.conftest import Make
from tests.engine.toy import rows, write_project

if TYPE_CHECKING:
    from penstock.engine.planning.plan import Plan

DAYS: dict[str, Any] = {"from_": "2026-01-01", "to": "2026-01-02"}
BOTH = "2026-01-01 to 2026-01-02 (2 slices)"
HEAD = "# partitioned daily\n# materialize ducklake://main/{}\n"
ROWS = "def main(partition: str) -> list[dict]:\n    return [{'d': partition, 'n': len(partition)}]"
TIMED = """from datetime import datetime, timedelta
def main(partition_start: datetime, partition_end: datetime) -> list[dict]:
    days = (partition_end - partition_start).days
    return [{'d': (partition_start + timedelta(days=n)).date()} for n in range(days)]"""
FILES = """# pipeline
# partitioned daily
import penstock
def main(partition: str) -> None:
    penstock.lake("main").write_file("out/{partition}.txt", partition)"""
STEPS = {
    "models/replaced.py": f"{HEAD.format('replaced')}{ROWS}",
    "models/log.py": f"{HEAD.format('log append')}{ROWS}",
    "models/keyed.py": f"{HEAD.format('keyed key=d')}{ROWS}",
    "models/timed.py": f"{HEAD.format('timed time=d')}{TIMED}",
    "models/kept.py": "# materialize ducklake://main/kept key=d history\n"
    "def main() -> list[dict]:\n    return [{'d': 'x'}]",
    "models/files.py": FILES,
}
#: tables of days, and how often each was made in a range of two
TABLES = ("replaced", "log", "keyed", "timed")


def left(plan: Plan) -> dict[str, str | None]:
    return {step.name: step.slice for step in plan.steps if not step.skipped}


def test_the_plan_of_a_range(tmp_path: Path) -> None:
    with Project.load(write_project(tmp_path / "p", STEPS)) as project:
        steps = {step.name: step for step in project.plan(**DAYS).steps}
        assert all(steps[name].slice == BOTH for name in ("replaced", "log", "keyed", "files"))
        assert steps["replaced"].apart == "Python makes its rows, for one slice at a time"
        assert not [each for each in project.check() if each.severity == "error"]


@pytest.mark.spark
def test_a_range_a_restatement_and_a_drop(make: Make, tmp_path: Path) -> None:
    project = make(STEPS)
    result = project.run(**DAYS, on_event=ignore)
    assert {step.state for step in result.steps} == {"done"}, result.steps
    days: list[tuple[Any, ...]] = [("2026-01-01",), ("2026-01-02",)]
    found = {
        name: rows(project, f"SELECT CAST(d AS STRING) AS d FROM {name} ORDER BY d")
        for name in TABLES
    }
    assert found == dict.fromkeys(TABLES, days)
    assert left(project.plan(**DAYS)) == {}
    for name in ("replaced", "keyed", "timed", "files"):
        again = project.restate(name, "2026-01-01", "2026-01-02", on_event=ignore)
        assert {step.state for step in again.steps} <= {"done", "unchanged"}, again.steps
    file = tmp_path / "toy" / "out" / "2026-01-01.txt"
    command = [
        "drop",
        "files",
        "--slice",
        "2026-01-01",
        "--yes",
        "--project",
        str(tmp_path / "toy"),
    ]
    said = CliRunner().invoke(main, command)
    assert "forgot slice 2026-01-01 of out/{partition}.txt: the files stay" in said.output
    assert file.exists()
    project.drop("replaced", "2026-01-02")
    assert left(project.plan(**DAYS)) == {"files": "2026-01-01", "replaced": "2026-01-02"}
    assert project.drop("files").slices == ("2026-01-02",)
    assert left(project.plan(**DAYS, select="files")) == {"files": BOTH}
