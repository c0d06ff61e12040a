"""``penstock test``: how results of unit tests are printed, without Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from penstock.cli.main import main
from penstock.cli.test import lines
from penstock.engine.verifying import row_values
from penstock.engine.verifying.unit_tests import UnitTestResult
from penstock.errors import Location, QueryFailed
from penstock.project.project import Project
from tests.engine.toy import write_project

ROOT = Path("/p")
PLACE = Location("/p/tests/days.yaml", 3)
ROWS = [{"day": 1, "sales": 2}, {"day": 2, "sales": 5}]


def result(state: str, **fields: Any) -> UnitTestResult:
    return UnitTestResult("test_days", "days", PLACE, state, **fields)


def differing(actual: list[dict[str, int]]) -> UnitTestResult:
    found = row_values.differences(ROWS, actual, ("day", "sales"), row_values.same)
    return result("failed", differences={"": found})


def test_a_result_is_a_line_with_its_place() -> None:
    assert list(lines(result("passed", seconds=2.0), ROOT)) == [
        "passed  test_days (days, tests/days.yaml:3, 2.0 s)"
    ]
    error = result("error", error=QueryFailed("no such column"))
    assert list(lines(error, ROOT))[1:] == ["    no such column"]


@pytest.mark.parametrize(
    ("actual", "said"),
    [
        (ROWS[:1], ["row 2 is missing: day=2, sales=5"]),
        ([*ROWS, {"day": 3, "sales": 0}], ["not expected: day=3, sales=0"]),
        (
            [ROWS[0], {"day": 2, "sales": 6}],
            ["row 2 differs: day=2, sales=5", "  sales: expected 5, got 6"],
        ),
    ],
)
def test_what_differs_is_indented(actual: list[dict[str, int]], said: list[str]) -> None:
    assert list(lines(differing(actual), ROOT))[1:] == [f"    {line}" for line in said]


@pytest.mark.parametrize(
    ("states", "code", "said"),
    [
        (["passed", "passed"], 0, "2 tests: 2 passed"),
        (["passed", "failed", "skipped"], 1, "3 tests: 1 passed, 1 failed, 1 skipped"),
        (["error"], 1, "1 test: 1 could not run"),
    ],
)
def test_the_last_line_counts_and_a_failure_ends_with_1(
    states: list[str], code: int, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = write_project(tmp_path / "p", {})
    place = Location(str(root / "tests" / "days.yaml"), 3)
    found = [UnitTestResult("t", "days", place, state) for state in states]
    monkeypatch.setattr(Project, "test", lambda *_names, **_selection: iter(found))
    ended = CliRunner().invoke(main, ["test", "--project", str(root)])
    assert (ended.stdout.splitlines()[-1], ended.exit_code) == (said, code)


def test_without_tests_it_says_where_to_write_them(tmp_path: Path) -> None:
    root = write_project(tmp_path / "p", {"models/a": "-- materialize ducklake://main/a\nSELECT 1"})
    command = ["test", "--project", str(root)]
    assert CliRunner().invoke(main, command).stdout == "no unit tests: write them in tests/*.yaml\n"
    assert CliRunner().invoke(main, [*command, "a"]).stdout == "no unit test is selected\n"
