"""What a plan will take, by past runs. No Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from penstock.engine.planning.estimates import Estimate
from penstock.engine.state.store import State
from penstock.project.project import Project
from tests.engine.state.builders import START, at, publication, run_record, step_record
from tests.engine.toy import write_project

HEAD = "-- pipeline\n-- partitioned daily start=2026-01-01\n-- materialize ducklake://main/{}\n"
SCRIPTS = {
    "models/days": HEAD.format("days") + "SELECT '{partition}' AS day",
    "models/new": HEAD.format("new") + "SELECT '{partition}' AS day",
}
RANGE: dict[str, Any] = {"from_": "2026-01-01", "to": "2026-01-05"}


def shop(root: Path) -> Project:
    project = Project.load(write_project(root / "p", SCRIPTS))
    lake = project.lake("main")
    lake.sql("CREATE TABLE days (day VARCHAR, _wm_partition VARCHAR)")
    state = State(lake.catalog)
    state.begin_run(run_record())
    model = project.model("days")
    step: dict[str, Any] = {"step": "days", "target": model.target.qualified, "slice": "2026-01-01"}
    state.begin_step(step_record(**step, started_at=START))
    of: dict[str, Any] = {
        "definition_hash": model.definition_hash,
        "slicing": model.slicing,
        "columns": (),
    }
    state.confirm(publication(**step, **of, rows=100, at=at(1)), lake.catalog.latest().id)
    return project


def test_estimates_are_of_the_slices_to_make(tmp_path: Path) -> None:
    with shop(tmp_path) as project:
        plan = project.plan(**RANGE)
        assert project.estimates(plan) == {
            "days": Estimate(4, rows=400, seconds=240, runs=1),
            "new": Estimate(5),
        }


def test_a_step_that_does_not_run_has_none(tmp_path: Path) -> None:
    with shop(tmp_path) as project:
        plan = project.plan("days", from_="2026-01-01", to="2026-01-01")
        assert project.estimates(plan) == {}


def test_a_project_that_never_ran_knows_nothing(tmp_path: Path) -> None:
    with Project.load(write_project(tmp_path / "p", SCRIPTS)) as project:
        plan = project.plan("new", **RANGE)
        assert project.estimates(plan) == {"new": Estimate(5)}
