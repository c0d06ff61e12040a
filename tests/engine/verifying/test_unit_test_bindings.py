"""What a unit test says of a run, in SQLMesh's words and in ours."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from penstock.engine.verifying.unit_test_bindings import bindings_of
from penstock.errors import ArgumentError
from penstock.model.definition.model import Model
from penstock.model.definition.unit_test import read_unit_tests
from penstock.project.project import Project
from tests.engine.toy import write_project

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
