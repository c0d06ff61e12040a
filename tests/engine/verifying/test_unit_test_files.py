"""Which unit tests are wanted, by their names, files and models. No Spark."""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from penstock.engine.planning.selection import Selection
from penstock.engine.verifying.unit_test_files import WantedTests, bindings_of, find_unit_tests
from penstock.errors import ArgumentError
from penstock.model.definition.model import Model
from penstock.model.definition.tests import read_unit_tests
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


BY_TIME = """
    MODEL (name main.t, kind INCREMENTAL_BY_TIME_RANGE (time_column d));
    SELECT d FROM s WHERE d BETWEEN @start_date AND @end_date
"""
ANNOTATED = """
    -- partitioned daily
    -- materialize ducklake://main/u time=d
    SELECT d FROM s WHERE d >= $partition_start AND d < $partition_end
"""
WHOLE = """
    MODEL (name main.w, kind FULL);
    -- $start (int) = 1
    SELECT $start AS n, @execution_ds AS d, @start_epoch AS e
"""
FIRST, SECOND = date(2024, 1, 2), date(2024, 1, 3)


@pytest.fixture
def models(tmp_path: Path) -> dict[str, Model]:
    scripts = {"models/t": BY_TIME, "models/u": ANNOTATED, "models/w": WHOLE}
    with Project.load(write_project(tmp_path / "toy", scripts)) as project:
        return {model.name: model for model in project.models}


def bound(model: Model, said: str) -> dict[str, object]:
    text = f"x: {{model: m, outputs: {{query: []}}, {said}}}"
    (test,), _ = read_unit_tests(text, Path("t.yaml"))
    values = bindings_of(model, test).arguments
    return {name.removeprefix("penstock_at_"): value for name, value in values.items()}


@pytest.mark.parametrize(
    ("said", "last"),
    [
        ("vars: {start: 2024-01-02, end: 2024-01-03}", SECOND),
        ("vars: {start: 2024-01-02}", FIRST),
        ("start: 2024-01-02, end: 2024-01-03 00:00:00", FIRST),
        ("partition: 2024-01-02", FIRST),
        ("vars: {start_date: 2024-01-02, end_date: 2024-01-03}", SECOND),
        ("vars: {end: 2024-01-02}", FIRST),
        ("end: 2024-01-02", FIRST),
        ("end: 2024-01-03 00:00:00", FIRST),
    ],
)
def test_the_interval_of_a_model_by_time(models: dict[str, Model], said: str, last: date) -> None:
    values = bound(models["t"], said)
    assert (values["start_date"], values["end_date"]) == (FIRST, last)


def test_bounds_of_annotations_and_the_moment_of_the_run(models: dict[str, Model]) -> None:
    start = datetime(2024, 1, 2, tzinfo=UTC)
    values = bound(models["u"], "vars: {start: 2024-01-02, end: 2024-01-02}")
    assert values == {"partition_start": start, "partition_end": start.replace(day=3)}
    values = bound(models["w"], "vars: {start: 7, execution_time: 2024-01-02 06:00:00}")
    assert values == {"start": 7, "execution_ds": "2024-01-02", "start_epoch": 0}


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ("description: none", "says no interval of time, and the query of t is about one (by day)"),
        ("vars: {end: soon}", "end is 'soon', which is not a moment"),
        ("vars: {start: 2024-01-03, end: 2024-01-02}", "the range is empty"),
        ("vars: {start: soon}", "start is 'soon', which is not a moment"),
        ("vars: {strat: 2024-01-02}", "no script has an argument 'strat'"),
        ("vars: {start_date: soon, end_date: 2024-01-02}", "'soon' is not a valid date"),
    ],
)
def test_what_is_wrong(models: dict[str, Model], said: str, message: str) -> None:
    with pytest.raises(ArgumentError, match=r".") as raised:
        bound(models["t"], said)
    assert message in raised.value.message
    assert raised.value.hint
