"""Plans as runs record them: short, and the same when they are read again. No Spark."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from penstock.engine.planning.ranges import SliceRange
from penstock.engine.planning.recorded_plan import (
    RecordedPlan,
    RecordedStep,
    as_command,
    folded,
    unfolded,
)
from penstock.engine.planning.slices import RunRequest
from penstock.errors import PartitionError
from penstock.model.time.slice import WHOLE, Part, Slice
from penstock.project.project import Project
from tests.engine.planning.test_reasons import DAYS, Shop
from tests.engine.toy import write_project

DYNAMIC = {
    "models/by_region": "-- pipeline\n-- partitioned dynamic key=$.region\n"
    "-- materialize ducklake://main/by_region\nSELECT '{partition}' AS region"
}


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    shop = Shop(tmp_path_factory.mktemp("recorded"))
    shop.project.lake("main").sql("CREATE TABLE src (day DATE)")
    return shop


def recorded(shop: Shop) -> RecordedPlan:
    return RecordedPlan.of(shop.project.plan(**DAYS))


def test_a_plan_is_read_as_it_was_written(shop: Shop) -> None:
    plan = recorded(shop)
    again = RecordedPlan.parse(plan.to_json())
    assert again.request == plan.request
    assert json.loads(again.to_json()) == json.loads(plan.to_json())


def test_days_that_follow_each_other_are_two_texts(shop: Shop) -> None:
    slices = {step.step: [list(each) for each in step.slices] for step in recorded(shop).steps}
    assert slices == {
        "days": [["2026-01-01", "2026-01-09"]],
        "reader": [["2026-01-01", "2026-01-09"]],
        "timed": [["2026-01-01T00:00:00Z/2026-01-10T00:00:00Z"]],
        "whole": [[""]],
    }


def test_its_steps_have_the_slices_of_the_plan(shop: Shop) -> None:
    plan = shop.project.plan(**DAYS)
    for step in plan.steps:
        again = RecordedStep.of(step).slices_of(step.model)
        assert again == step.slices, step.name


def test_gaps_stay_gaps(shop: Shop) -> None:
    model = shop.project.model("days")
    slices: list[Slice] = [Part(f"2026-01-0{day}") for day in (1, 2, 3, 5, 7, 8)]
    ends = list(folded(model, slices))
    assert ends == [["2026-01-01", "2026-01-03"], ["2026-01-05"], ["2026-01-07", "2026-01-08"]]
    assert list(unfolded(model, ends)) == slices


def test_values_without_an_order_are_each_written(tmp_path: Path) -> None:
    with Project.load(write_project(tmp_path / "p", DYNAMIC)) as project:
        model = project.model("by_region")
    slices = [Part("eu"), Part("us"), Part("a, b")]
    assert list(unfolded(model, folded(model, slices))) == slices


def test_a_range_of_a_model_that_has_no_slices_any_more_is_refused(shop: Shop) -> None:
    whole = shop.project.model("whole")
    assert list(unfolded(whole, [[""]])) == [WHOLE]
    with pytest.raises(PartitionError, match="whole has no slice '2026-01-01' any more"):
        list(unfolded(whole, [["2026-01-01", "2026-01-03"]]))


def test_what_there_was_nothing_to_do_for_says_why(shop: Shop) -> None:
    (step,) = RecordedPlan.of(
        shop.project.plan("timed", from_="2025-01-01", to="2025-01-02", fire_time=DAYS["fire_time"])
    ).steps
    assert step.slices == ()
    assert step.skipped


@pytest.mark.parametrize("name", ["date", "range", "datetime"])
def test_an_argument_may_have_the_name_of_a_type(shop: Shop, name: str) -> None:
    plan = recorded(shop)
    request = replace(plan.request, args={name: "2026-01-01"}, payload={name: {"a": 1}})
    again = RecordedPlan.parse(replace(plan, request=request).to_json()).request
    assert again.args == {name: "2026-01-01"}
    assert again.payload == {name: {"a": 1}}


AT = datetime(2026, 1, 2, tzinfo=UTC)


@pytest.mark.parametrize(
    ("request_", "command"),
    [
        (RunRequest(fire_time=AT), "penstock run"),
        (
            RunRequest(select=("raw/*", "+a"), exclude=("b",), partition="2026-01-01"),
            "penstock run 'raw/*' +a --exclude b --partition 2026-01-01",
        ),
        (
            RunRequest(range=SliceRange(date(2026, 1, 1), None, True), late=True),
            "penstock run --from 2026-01-01 --all --behind",
        ),
        (
            RunRequest(args={"n": "1"}, payload={"region": "eu"}, behind=False, force=True),
            """penstock run --arg n=1 --payload '{"region": "eu"}' --no-behind --force""",
        ),
    ],
)
def test_what_was_asked_for_is_a_command(request_: RunRequest, command: str) -> None:
    assert as_command(request_) == command


def test_the_time_of_a_run_is_part_of_what_was_asked_for() -> None:
    request = RunRequest(fire_time=AT, args={"k": "5"})
    asked = "penstock run --fire-time 2026-01-02T00:00:00Z --arg k=5"
    assert as_command(request, AT + timedelta(days=3)) == asked
    assert as_command(request, AT + timedelta(seconds=5)) == "penstock run --arg k=5"


def test_a_range_up_to_now_ends_at_the_time_that_was_given(shop: Shop) -> None:
    assert shop.project.plan("days", from_="2026-01-01").partition == "2026-01-01 to now"
    timed = shop.project.plan("days", from_="2026-01-01", fire_time="2026-01-12T04:00+01:00")
    assert timed.partition == "2026-01-01 to 2026-01-12T03:00:00+00:00"
    assert shop.project.plan("days", **DAYS).partition == "2026-01-01 to 2026-01-09"
