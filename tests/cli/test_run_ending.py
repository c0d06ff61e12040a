"""What a run prints at its end: failures and warnings once for all slices that are alike."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from penstock.cli.run_ending import print_failures, print_stale, print_warnings, what_is_left
from penstock.engine.results import CheckResult, RunResult, StaleSlices, StepResult
from penstock.errors import QueryFailed
from penstock.project.project import Project
from tests.engine.toy import write_project


def results(*states: str, message: str = "data/{}.csv: the file has 5 columns") -> RunResult:
    """A run of one step, with a slice a state; ``!`` is a failure of another kind."""
    steps = []
    for number, state in enumerate(states, 1):
        day = f"2026-09-{number:02d}"
        error = None
        if state in {"failed", "!"}:
            error = QueryFailed(message.format(day) if state == "failed" else f"row {number}")
        name = "failed" if state == "!" else state
        steps.append(StepResult("raw", "main.raw", "replace", day, name, error=error))
    return RunResult("r", "failed", None, tuple(steps), 1.0)


def test_slices_that_failed_alike_are_named_once(capsys: pytest.CaptureFixture[str]) -> None:
    states = ("done", *["failed"] * 3, "done", "failed", "!")
    print_failures(results(*states), {"raw": "2 other slices were published"})
    assert capsys.readouterr().out.splitlines() == [
        "",
        "raw: 4 slices failed alike, 2026-09-02 to 2026-09-04, 2026-09-06; "
        "2 other slices were published; the first:",
        "error: data/2026-09-02.csv: the file has 5 columns",
        "",
        "raw 2026-09-07 failed; 2 other slices were published",
        "error: row 7",
    ]


def test_of_very_many_different_failures_some_are_shown(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_failures(results(*["!"] * 20), {"raw": "nothing was published"})
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) < 30
    assert lines[-1] == "raw: 12 more slices failed in other ways: penstock runs show last"


def test_a_test_that_warns_in_many_slices_is_named_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    check = CheckResult("unique id", False, 2, ({"id": 1},), "warn")
    days = [f"2026-09-{number:02d}" for number in (1, 2, 3)]
    steps = (StepResult("raw", "main.raw", "merge", day, "done", checks=(check,)) for day in days)
    print_warnings(RunResult("r", "done", None, tuple(steps), 1.0))
    assert capsys.readouterr().out.splitlines()[:2] == [
        "",
        "raw: test unique id warns of 6 rows in 3 slices, 2026-09-01 to 2026-09-03",
    ]


def test_slices_that_the_run_left_are_counted_with_what_rebuilds_them(
    capsys: pytest.CaptureFixture[str],
) -> None:
    left = tuple(StaleSlices(name, 1, "penstock run --changed") for name in "abcd")
    others = tuple(StaleSlices(name, 2, f"penstock run {name} --all") for name in "abcde")
    ended = replace(results("done"), stale=left[:1], untested=others[:1])
    print_stale(ended)
    print_stale(replace(ended, stale=left, untested=others))
    assert capsys.readouterr().out.splitlines() == [
        "1 slice of a is stale: penstock run --changed",
        "2 slices of a were published under other data tests: penstock run a --all",
        "4 slices of a, b, c and 1 more are stale: penstock run --changed",
        "2 slices of a were published under other data tests: penstock run a --all",
        "2 slices of b were published under other data tests: penstock run b --all",
        "2 slices of c were published under other data tests: penstock run c --all",
        "and slices of 2 other models: penstock plan",
    ]


@pytest.mark.parametrize(
    ("states", "left"),
    [
        (("done", "failed"), "1 other slice was published"),
        (("failed", "done", "done", "skipped"), "2 other slices were published"),
        (("failed", "skipped"), "main.raw was not created"),
    ],
)
def test_what_a_failed_step_left(tmp_path: Path, states: tuple[str, ...], left: str) -> None:
    script = {"models/raw": "-- materialize ducklake://main/raw\nSELECT 1 AS a"}
    with Project.load(write_project(tmp_path / "p", script)) as project:
        assert what_is_left(project, results(*states)) == {"raw": left}
