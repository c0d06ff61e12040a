"""Runs that have nothing to do: no Spark."""

from __future__ import annotations

from pathlib import Path

from penstock.engine.planning.made_from import MadeFrom
from penstock.engine.planning.no_op import ended, skipped
from penstock.engine.planning.plan import PlannedStep, Work
from penstock.engine.planning.slice_reason import UP_TO_DATE, Skip, SkipKind
from penstock.events import Event, RunFinished, RunStarted, SparkStarting, StepFinished
from penstock.model.time.slice import Part
from penstock.project.project import Project
from penstock.states import SliceState
from tests.engine.toy import write_project

LATER = (
    "MODEL (name main.later, kind INCREMENTAL_BY_TIME_RANGE (time_column ds),\n"
    "start '2100-01-01');\n"
    "SELECT ds FROM src WHERE ds BETWEEN @start_ds AND @end_ds"
)


def test_a_run_without_a_step_to_take_is_done(tmp_path: Path) -> None:
    project = Project.load(write_project(tmp_path / "p", {"models/later": LATER}))
    events: list[Event] = []
    result = project.run(on_event=events.append)
    assert (result.state, result.exit_code) == ("done", 0)
    assert [(step.state, step.reason) for step in result.steps] == [
        ("skipped", "nothing is due before 2100-01-01, where it starts")
    ]
    assert [type(event) for event in events] == [RunStarted, StepFinished, RunFinished]
    assert not (tmp_path / "p" / "lake").exists()


DAILY = "-- partitioned daily start=2026-01-01\n-- materialize ducklake://main/"
RAW = f"{DAILY}raw\nSELECT 1 AS n, '{{partition}}' AS day"
MART = f"{DAILY}mart\nSELECT * FROM raw WHERE day = '{{partition}}'"


def test_a_run_in_which_everything_waits_starts_no_spark(tmp_path: Path) -> None:
    models = {"models/raw": RAW, "models/mart": MART}
    project = Project.load(write_project(tmp_path / "p", models))
    events: list[Event] = []
    result = project.run(select=["mart"], partition="2026-01-02", on_event=events.append)
    assert (result.state, result.exit_code) == (SliceState.WAITING, 3)
    assert [(step.state, step.reason) for step in result.steps] == [
        (SliceState.WAITING, "raw 2026-01-02 missing")
    ]
    assert not any(isinstance(event, SparkStarting) for event in events)
    (past,) = project.runs()
    assert (past.state, past.steps) == (SliceState.WAITING, {SliceState.WAITING: 1})


def test_a_step_that_is_up_to_date_has_the_rows_that_are_recorded(tmp_path: Path) -> None:
    project = Project.load(write_project(tmp_path / "p", {"models/raw": RAW}))
    day = Part("2026-01-02")
    work = Work(built_from=MadeFrom(frozenset(), (), rows=3, made_in=7))
    current = Skip(SkipKind.CURRENT, UP_TO_DATE)
    step = PlannedStep(project.model("raw"), (day,), skipped=current, works={day: work})
    (result,) = skipped(step)
    assert (result.state, result.rows, result.snapshot_id) == ("unchanged", 3, 7)
    (failed,) = ended(step, "failed")
    assert (failed.rows, failed.snapshot_id) == (None, None)
