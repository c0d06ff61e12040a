"""Goals map the states of slices to steps. No Spark, no catalog."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from penstock.engine.planning.goals import Goal, of_slices, step_of
from penstock.engine.planning.make_plan import make_plan
from penstock.engine.planning.plan import Known, Plan, PlannedStep, PlanningContext
from penstock.engine.planning.ranges import SliceRange, SliceStates
from penstock.engine.planning.slices import RunRequest
from penstock.errors import ArgumentError
from penstock.model.time.slice import WHOLE, Part
from penstock.project.project import Project
from penstock.states import SliceState
from tests.engine.toy import write_project

HEAD = "-- pipeline\n-- materialize ducklake://main/"
DAILY = f'{HEAD}days\n-- partitioned daily start="2026-01-01"\nSELECT 1 AS n'
WHOLE_TABLE = f"{HEAD}total\nSELECT count(*) AS n FROM days"
NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)
RANGE = SliceRange("2026-01-01", "2026-01-03")


def plan_of(root: Path, request: RunRequest, states: SliceStates, goal: Goal | None = None) -> Plan:
    scripts = {"models/days": DAILY, "models/total": WHOLE_TABLE}
    project = Project.load(write_project(root / "p", scripts))
    by_name = {model.name: model for model in project.models}
    known = Known(lambda _: {"days": states}, edges=project.edges)
    return make_plan(by_name, project.graph, request, known, goal)


def test_a_request_without_a_range_makes_the_slice_of_its_moment(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, RunRequest(fire_time=NOON), SliceStates())
    assert [(step.name, step.slices) for step in plan.steps] == [
        ("days", (Part("2026-01-05"),)),
        ("total", (WHOLE,)),
    ]


def test_a_range_makes_what_its_states_lack(tmp_path: Path) -> None:
    states = {"2026-01-01": SliceState.MATERIALIZED, "2026-01-02": SliceState.FAILED}
    plan = plan_of(tmp_path, RunRequest(fire_time=NOON, range=RANGE), SliceStates(states))
    days, total = plan.steps
    assert days.slices == (Part("2026-01-02"), Part("2026-01-03"))
    assert days.tally is not None
    assert days.tally.states == {"materialized": 1, "failed": 1, "missing": 1}
    assert total.slices == (WHOLE,)


def test_a_goal_of_a_caller_decides_in_place_of_the_request(tmp_path: Path) -> None:
    chosen = (Part("2026-01-02"), Part("2026-01-04"))

    def goal(context: PlanningContext) -> list[PlannedStep]:
        days, total = context.steps
        return [step_of(days, chosen, context), of_slices(total, (WHOLE,), context)]

    request = RunRequest(fire_time=NOON, range=RANGE)
    plan = plan_of(tmp_path, request, SliceStates(), goal=goal)
    assert plan.steps[0].slices == chosen
    assert plan.steps[0].bindings.partition == "2026-01-02"


def test_a_range_of_whole_tables_alone_is_refused(tmp_path: Path) -> None:
    request = RunRequest(fire_time=NOON, range=RANGE, select=("total",))
    with pytest.raises(ArgumentError, match="no selected model is partitioned"):
        plan_of(tmp_path, request, SliceStates())
