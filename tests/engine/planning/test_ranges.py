"""Ranges of slices: what they hold, what of it is made, and what a plan says. No Spark.

Tests ``engine/planning/make_plan.py`` (steps and slices of a range).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest

from penstock.engine.planning.make_plan import make_plan
from penstock.engine.planning.plan import Known, Plan
from penstock.engine.planning.ranges import (
    SliceRange,
    SliceStates,
    Tally,
    idle,
)
from penstock.engine.planning.slices import RunRequest
from penstock.errors import ArgumentError, PartitionError
from penstock.project.project import Project
from penstock.states import SliceState
from tests.engine.toy import write_project

HEAD = "-- pipeline\n-- partitioned {kind}\n-- materialize ducklake://main/{name}\n"
MODELS = {
    "models/raw": HEAD.format(kind="daily start=2026-01-02", name="raw")
    + "SELECT 1 AS a FROM s WHERE day = '{partition}'",
    "models/months": HEAD.format(kind="monthly", name="months") + "SELECT a FROM raw",
    "models/mart": "-- pipeline\n-- materialize ducklake://main/mart\nSELECT a FROM raw",
}
NOW = datetime(2026, 1, 10, 12, tzinfo=UTC)


def plan(
    root: Path,
    first: Any = "2026-01-01",
    last: Any = "2026-01-05",
    *,
    every: bool = False,
    known: Mapping[str, Mapping[str, str]] | None = None,
    models: Mapping[str, str] = MODELS,
    **request: Any,
) -> Plan:
    project = Project.load(write_project(root / "p", models))
    asked = RunRequest(fire_time=NOW, range=SliceRange.of(first, last, every=every), **request)
    by_name = {model.name: model for model in project.models}
    states = {
        name: SliceStates({text: SliceState(word) for text, word in own.items()})
        for name, own in (known or {}).items()
    }
    return make_plan(by_name, project.graph, asked, Known(slices=lambda _: states))


def slices(planned: Plan) -> dict[str, str | None]:
    return {step.name: step.slice for step in planned.steps if not step.skipped}


def test_a_range_has_the_slices_of_each_model_with_a_moment_in_it(tmp_path: Path) -> None:
    assert slices(plan(tmp_path)) == {
        "raw": "2026-01-02 to 2026-01-05 (4 slices)",
        "mart": None,
        "months": "2026-01",
    }
    planned = plan(tmp_path, "2025-12", "2026-01")
    assert slices(planned)["months"] == "2026-01", "what it reads begins in January"
    assert planned.steps[-1].tally is not None
    assert planned.steps[-1].tally.early == 1


def test_what_has_not_begun_is_left_out_and_said(tmp_path: Path) -> None:
    planned = plan(tmp_path, "2026-01-09", "2026-01-31")
    assert slices(planned)["raw"] == "2026-01-09 to 2026-01-10 (2 slices)"
    assert planned.notices[0].startswith("raw: 21 slices of the range have not begun yet")


def test_missing_and_failed_slices_are_made(tmp_path: Path) -> None:
    known = {
        "raw": {"2026-01-02": "materialized", "2026-01-03": "failed", "2026-01-04": "stale"},
        "mart": {"": "materialized"},
        "months": {"2026-01": "materialized"},
    }
    planned = plan(tmp_path, known=known)
    raw, mart, months = planned.steps
    assert [slice_.text for slice_ in raw.slices] == ["2026-01-03", "2026-01-05"]
    assert raw.tally is not None
    assert raw.tally.states == {"materialized": 1, "failed": 1, "stale": 1, "missing": 1}
    assert (mart.skipped, str(months.skipped)) == (None, "nothing to do: 1 materialized")
    assert len(plan(tmp_path, known=known, every=True).steps[0].slices) == 4


def test_a_whole_table_is_left_where_nothing_above_it_is_made(tmp_path: Path) -> None:
    done = dict.fromkeys([f"2026-01-0{day}" for day in range(2, 6)], "materialized")
    known = {"raw": done, "mart": {"": "materialized"}, "months": {"2026-01": "stale"}}
    assert slices(plan(tmp_path, known=known)) == {}


@pytest.mark.parametrize(
    ("first", "last"),
    [
        (date(2026, 1, 3), date(2026, 1, 4)),
        (datetime(2026, 1, 3, 5), datetime(2026, 1, 4)),  # noqa: DTZ001 - the partition's own time
        ("2026-01-03T23:59", "2026-01-04T00:00:00+00:00"),
        ("20260103", "2026-01-04"),
    ],
)
def test_ends_are_values_dates_and_datetimes(tmp_path: Path, first: Any, last: Any) -> None:
    planned = plan(tmp_path, first, last, select=("raw",))
    assert slices(planned)["raw"] == "2026-01-03 to 2026-01-04 (2 slices)"


def test_without_ends_it_is_from_start_to_the_last_slice_that_is_over(tmp_path: Path) -> None:
    assert slices(plan(tmp_path, None, "2026-01-03", select=("raw",)))["raw"] == (
        "2026-01-02 to 2026-01-03 (2 slices)"
    )
    assert slices(plan(tmp_path, "2026-01-08", None, select=("raw",)))["raw"] == (
        "2026-01-08 to 2026-01-09 (2 slices)"
    )
    (current,) = plan(tmp_path, "2026-01-10", None, select=("raw",)).steps
    assert str(current.skipped) == "nothing to do: 1 not over"
    assert slices(plan(tmp_path, "2026-01-10", "2026-01-10", select=("raw",)))["raw"] == (
        "2026-01-10"
    )


DYNAMIC = HEAD.format(kind='dynamic key="$.r"', name="d") + "SELECT 1 AS a"


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        ({"first": "2026-01-05", "last": "2026-01-01"}, "the range is empty"),
        ({"first": "soon"}, "'soon' is neither a daily partition nor a date"),
        ({"first": None, "last": None, "every": True}, "--all needs a range"),
        ({"partition": "2026-01-01"}, "either one partition or a range"),
        ({"full_refresh": True, "select": ("raw",)}, "not with a range"),
        ({"select": ("mart",)}, "no selected model is partitioned"),
        ({"first": None, "select": ("months",)}, "the range has no beginning"),
        (
            {"models": {**MODELS, "models/d": DYNAMIC}, "select": ("d",)},
            "a dynamic partition has no range",
        ),
    ],
)
def test_bad_ranges(tmp_path: Path, request_: dict[str, Any], said: str) -> None:
    with pytest.raises((ArgumentError, PartitionError), match=said):
        plan(tmp_path, **request_)


def test_batches_are_made_when_asked_for(tmp_path: Path) -> None:
    planned = plan(tmp_path)
    raw = planned.steps[0]
    assert raw.apart is None
    (together,) = planned.batches(raw)
    assert together.slices == raw.slices
    assert together.bindings.partition == "2026-01-02"


def test_what_nothing_rebuilds_stays() -> None:
    tally = Tally({SliceState.STALE: 1})
    assert str(idle(tally)).endswith("1 stale; penstock run --changed rebuilds what is stale")
    assert str(idle(tally, "rows are added")).endswith(
        "1 stale; what is stale stays: rows are added"
    )
