"""Runs that have nothing to do: no Spark."""

from __future__ import annotations

from pathlib import Path

from penstock.events import Event, RunFinished, RunStarted, StepFinished
from penstock.project import Project
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
