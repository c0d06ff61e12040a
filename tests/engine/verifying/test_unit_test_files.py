"""Which unit tests are wanted, by their names, files and models. No Spark."""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path

import pytest

from penstock.engine.planning.selection import Selection
from penstock.engine.verifying.unit_test_files import WantedTests, find_unit_tests
from penstock.errors import ArgumentError
from penstock.project.project import Project
from tests.engine.toy import write_project

HEAD = "-- materialize ducklake://main/{}\n-- tag {}\nSELECT * FROM {}"
MODELS = {
    "models/raw/orders": HEAD.format("raw_orders", "hourly", "src"),
    "models/marts/daily": HEAD.format("daily", "nightly", "raw_orders"),
    "models/marts/monthly": HEAD.format("monthly", "nightly", "daily"),
    "models/marts/untested": HEAD.format("untested", "bare", "daily"),
}
TEST = "{}: {{model: {}, outputs: {{query: []}}}}\n"
FILES = {
    "tests/raw.yaml": TEST.format("reads", "raw/orders"),
    "tests/marts.yaml": TEST.format("counts_days", "marts/daily")
    + TEST.format("late_days", "main.daily")
    + TEST.format("counts_months", "monthly"),
}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    root = write_project(tmp_path_factory.mktemp("wanted") / "p", MODELS)
    (root / "tests").mkdir()
    for name, text in FILES.items():
        (root / name).write_text(text)
    return Project.load(root)


def selecting(project: Project) -> Callable[[Selection], Collection[str]]:
    by_name = {model.name: model for model in project.models}
    return lambda of: of.of(by_name, project.graph, lambda word: ["marts/monthly"]).names


def wanted(project: Project, *patterns: str, **selection: tuple[str, ...]) -> list[str]:
    root = project.settings.root
    tests = WantedTests(patterns, Selection(**selection), selecting(project))
    return [test.name for test in tests.of(find_unit_tests(root), root, project.models)]


DAYS, MONTHS = ["counts_days", "late_days"], ["counts_months"]
EVERY = [*DAYS, *MONTHS, "reads"]


@pytest.mark.parametrize(
    ("patterns", "selection", "names"),
    [
        ((), {}, EVERY),
        (("counts_*",), {}, ["counts_days", *MONTHS]),
        (("tests/raw.yaml",), {}, ["reads"]),
        (("tests/marts.yaml::late_days",), {}, ["late_days"]),
        (("raw/orders",), {}, ["reads"]),
        (("marts/daily+",), {}, [*DAYS, *MONTHS]),
        (("tag:nightly", "reads"), {}, EVERY),
        (("state:changed",), {}, MONTHS),
        (("1+monthly",), {}, [*DAYS, *MONTHS]),
        (("models/marts/daily.sql",), {}, DAYS),
        (("untested",), {}, []),
        ((), {"select": ("marts/",)}, [*DAYS, *MONTHS]),
        ((), {"exclude": ("marts/",)}, ["reads"]),
        ((), {"to": ("marts/daily",)}, [*DAYS, "reads"]),
        ((), {"select": ("marts/",), "to": ("marts/daily",)}, DAYS),
        (("counts_*",), {"exclude": ("monthly",)}, ["counts_days"]),
        (("reads",), {"select": ("monthly",)}, [*MONTHS, "reads"]),
    ],
)
def test_wanted(
    project: Project,
    patterns: tuple[str, ...],
    selection: dict[str, tuple[str, ...]],
    names: list[str],
) -> None:
    assert sorted(wanted(project, *patterns, **selection)) == sorted(names)


@pytest.mark.parametrize(
    ("pattern", "hint"),
    [
        ("count_days", "did you mean counts_days?"),
        ("tag:nigthly", "did you mean 'nightly'?"),
        ("state:fail", "did you mean state:failed?"),
    ],
)
def test_what_is_neither_a_test_nor_a_model(project: Project, pattern: str, hint: str) -> None:
    with pytest.raises(ArgumentError, match="no unit test, model or file of tests is") as raised:
        wanted(project, pattern)
    assert raised.value.hint == hint


def test_tests_have_no_range(project: Project) -> None:
    with pytest.raises(ArgumentError, match="unit tests have no range that could end at 2026"):
        project.test(to="2026-01-31")


def test_files_of_tests_that_are_missing(tmp_path: Path) -> None:
    assert find_unit_tests(tmp_path) == ()
