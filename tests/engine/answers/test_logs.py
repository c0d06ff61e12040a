"""What the logs of runs say: errors, the time of phases, and which log is meant. No Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from penstock.engine.answers.logs import errors, find_log, of_step, phases
from penstock.engine.answers.runs import RunLogLines
from penstock.engine.state.run_log import log_of
from penstock.errors import ArgumentError


def line(second: int, event: str, step: str | None = "a", **values: Any) -> dict[str, Any]:
    return {"at": f"2026-01-02T03:04:{second:02}+00:00", "event": event, "step": step, **values}


LINES = [
    line(0, "RunStarted", None),
    line(0, "StepStarted"),
    line(1, "StepStarted", "b"),
    line(2, "StepProgress", phase="querying"),
    line(5, "StepProgress", phase="writing"),
    line(6, "StepProgress", "b", phase="querying"),
    line(9, "StepFinished"),
    line(10, "StepStarted"),
    line(14, "StepFinished"),
]


def test_the_time_of_a_step_by_phase() -> None:
    assert phases(LINES) == {
        "a": {"starting": 6.0, "querying": 3.0, "writing": 4.0},
        "b": {"starting": 5.0},  # it was killed while it was querying
    }


def test_lines_of_one_step_come_with_those_of_the_run() -> None:
    assert [each["step"] for each in of_step(LINES, "b")] == [None, "b", "b"]
    assert of_step(LINES, None) == LINES


def test_errors_are_values() -> None:
    (error,) = errors([*LINES, line(9, "StepError", slice="x", type="StepError", message="no")])
    assert (error.step, error.slice, error.message, error.hint) == ("a", "x", "no", None)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    for run_id in ("0a1b", "0a2c", "0b3d"):
        log_of(tmp_path, run_id).write_text('{"event": "Notice", "message": "x"}\n')
    return tmp_path


@pytest.mark.parametrize(
    ("text", "run"), [("last", "0b3d"), ("0b", "0b3d"), ("2c", "0a2c"), ("0a1b", "0a1b")]
)
def test_a_log_is_called_by_a_part_of_its_id(directory: Path, text: str, run: str) -> None:
    path = find_log(directory, text)
    assert path == log_of(directory, run)
    assert RunLogLines(log_of(directory, run)).run_id == run
    assert RunLogLines(log_of(directory, run)).lines[0]["message"] == "x"


def test_a_text_may_mean_several_runs_or_none(directory: Path) -> None:
    with pytest.raises(ArgumentError, match="names several runs: 0a1b, 0a2c"):
        find_log(directory, "0a")
    assert find_log(directory, "nosuch") is None
    with pytest.raises(ArgumentError, match="this project writes no logs"):
        find_log(None, "last")
