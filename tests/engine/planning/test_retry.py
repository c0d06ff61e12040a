"""What a retry makes: what runs were to make and did not. No Spark.

Tests ``cli/retry.py`` as well.
"""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from penstock.cli.main import main
from penstock.engine.planning.plan import Plan, PlannedStep
from penstock.engine.planning.recorded_plan import RecordedPlan
from penstock.engine.planning.retry import INPUTS, PastPlan, left_of
from penstock.engine.planning.slice_reason import RunInputs
from penstock.engine.state.records import SliceRecord
from penstock.errors import ArgumentError
from penstock.model.definition.model import Model
from penstock.model.time.slice import Slice
from penstock.project.project import Project
from tests.engine.planning.test_reasons import DAYS, NOW, Shop
from tests.engine.state.builders import run_record, step_record

BEGAN = datetime(2026, 1, 12, 3, tzinfo=UTC)
SINCE = datetime(2026, 1, 1, tzinfo=UTC)


def inputs_of(step: PlannedStep, slice_: Slice) -> RunInputs:
    inputs = step.work(slice_).inputs
    assert inputs is not None
    return inputs


class Night(Shop):
    """A project whose runs a test records: what each was to make, and what became of that."""

    def run(self, run_id: str, *models: str, began: datetime = BEGAN, **asked: Any) -> None:
        plan = RecordedPlan.of(self.project.plan(*models, **{**DAYS, **asked}))
        record = run_record(run_id, started_at=began, plan=plan.to_json(), args=plan.request.args)
        self.state.begin_run(record)

    def ended(self, run_id: str, name: str, state: str, *slices: str) -> None:
        for value in slices:
            key = {"step": name, "target": f"main.{name}", "slice": value}
            self.state.begin_step(step_record(run_id, started_at=BEGAN, **key))
            self.state.end_step((run_id, name, value), state, "why")

    def retry(self, run: str = "r2", **options: Any) -> dict[str, list[str]]:
        return slices(self.project.retry_plan(run, **options))

    @property
    def models(self) -> dict[str, Model]:
        return {model.name: model for model in self.project.models}

    def published(self, model: Model) -> list[SliceRecord]:
        return self.state.slices(model.target.qualified)

    def past(self, run_id: str) -> PastPlan:
        record = self.state.run(run_id)
        assert record is not None
        assert record.plan is not None
        plan = RecordedPlan.parse(record.plan)
        return PastPlan(run_id, record.started_at, plan, record.args)

    def all_failed(self, *models: str, **options: Any) -> Plan:
        return self.project.retry_failed_plan(*models, since=SINCE, **options)


def slices(plan: Plan) -> dict[str, list[str]]:
    return {step.name: [str(each) for each in step.slices] for step in plan.steps if step.slices}


def days(*numbers: int) -> list[str]:
    return [f"2026-01-{number:02}" for number in numbers]


@pytest.fixture
def night(tmp_path: Path) -> Night:
    """A run for nine days of which it made the first two and failed at the third."""
    night = Night(tmp_path)
    night.project.lake("main").sql("CREATE TABLE src (day DATE)")
    night.run("r2", "days", "reader")
    night.made("days", *days(1, 2), run_id="r2")
    night.made("reader", *days(1), run_id="r2")
    night.ended("r2", "days", "failed", *days(3))
    night.ended("r2", "reader", "skipped", *days(3))
    night.state.end_run("r2", "failed", 1)
    return night


def test_what_succeeded_stays_and_all_else_is_made(night: Night) -> None:
    """Failed, skipped because of that, and what a run that was stopped never began."""
    assert night.retry() == {"days": days(*range(3, 10)), "reader": days(*range(2, 10))}


def test_it_is_the_same_run_again(night: Night) -> None:
    plan = night.project.retry_plan("last")
    assert plan.retry_of == "r2"
    assert plan.request.fire_time == NOW
    assert plan.request.trigger == "retry"
    assert INPUTS in plan.notices
    assert plan.steps[0].ranges[0].reason.value == "failed"


def test_a_retry_can_be_retried(night: Night) -> None:
    night.run("r3", "days", began=BEGAN.replace(hour=4))
    after = datetime(2027, 1, 1, tzinfo=UTC)  # than the attempt that failed
    night.made("days", *days(3, 4), run_id="r3", at=after)
    left = left_of([night.past("r2")], night.models, night.published)
    assert [each.text for each in left.slices["days"]] == days(*range(5, 10))
    night.made("days", *days(*range(5, 10)), run_id="r3")
    night.made("reader", *days(*range(2, 10)), run_id="r3")
    plan = night.project.retry_plan("r2")
    assert slices(plan) == {}
    assert plan.notices == ("nothing is left to do: what was to be made is made",)


def test_what_was_there_before_the_run_is_no_success_of_it(night: Night) -> None:
    night.run("r4", "days", all_=True, began=datetime(2027, 1, 1, tzinfo=UTC))
    night.state.end_run("r4", "failed", 1)
    assert night.retry("r4") == {"days": days(*range(1, 10))}


def test_a_step_that_ended_well_without_a_record_is_not_made(night: Night) -> None:
    night.run("rb", "days")
    night.ended("rb", "days", "unchanged", *days(4))
    night.state.end_run("rb", "failed", 1)
    assert night.retry("rb")["days"] == days(3, *range(5, 10))


def test_intervals_are_those_that_are_left(night: Night) -> None:
    night.run("r5", "timed")
    night.made("timed", "2026-01-03T00:00:00Z/2026-01-06T00:00:00Z", run_id="r5")
    night.state.end_run("r5", "failed", 1)
    found = night.retry("r5")["timed"]
    assert found == ["2026-01-01 to 2026-01-02", "2026-01-06 to 2026-01-09"]


def test_a_changed_definition_is_said_and_a_model_that_is_gone_left_out(night: Night) -> None:
    root = night.project.settings.root
    (root / "models" / "reader.sql").unlink()
    path = root / "models" / "days.sql"
    path.write_text(path.read_text() + ", 1 AS n")
    with Project.load(root) as project:
        plan = project.retry_plan("r2")
    assert list(slices(plan)) == ["days"]
    assert "reader is left out: there is no such model any more" in plan.notices
    assert any(said.startswith("days is made by its definition of now") for said in plan.notices)


def test_slices_of_another_kind_cannot_be_retried(night: Night) -> None:
    path = night.project.settings.root / "models" / "days.sql"
    path.write_text(path.read_text().replace("partitioned daily", "partitioned monthly"))
    with (
        Project.load(night.project.settings.root) as project,
        pytest.raises(ArgumentError, match="the slices of days are others now"),
    ):
        project.retry_plan("r2")


def test_a_run_that_goes_on_or_has_no_plan_is_refused(night: Night) -> None:
    night.run("r6", "days")
    with pytest.raises(ArgumentError, match="run r6 is running"):
        night.retry("r6")
    night.state.end_run("r1", "failed", 1)
    with pytest.raises(ArgumentError, match="without its plan"):
        night.retry("r1")
    with pytest.raises(ArgumentError, match="not 'same'"):
        night.retry(inputs="same")


def test_all_that_failed_is_one_plan(night: Night) -> None:
    night.run("r7", "timed", "whole", began=BEGAN.replace(hour=5))
    night.state.end_run("r7", "failed", 1)
    found = slices(night.all_failed())
    assert list(found) == ["days", "reader", "timed", "whole"]
    assert found["whole"] == ["whole table"]
    assert list(slices(night.all_failed("timed"))) == ["timed"]
    assert list(slices(night.all_failed("days+", exclude="reader"))) == ["days"]


def test_each_slice_is_made_as_its_last_run_was_to(night: Night) -> None:
    later = NOW.replace(hour=6)
    night.run(
        "r8", "days", began=BEGAN.replace(hour=6), from_="2026-01-05", to="2026-01-06",
        fire_time=later,
    )  # fmt: skip
    night.state.end_run("r8", "failed", 1)
    plan = night.all_failed()
    step = next(each for each in plan.steps if each.name == "days")
    fired = {each.text: inputs_of(step, each).fire_time for each in step.slices}
    assert {text for text, at in fired.items() if at == later} == set(days(5, 6))
    assert fired["2026-01-03"] == NOW
    for apart, batches in ((step, 7), (replace(step, apart=None), 3)):
        cut = list(plan.batches(apart))
        assert [batch.goes_on for batch in cut] == [False, *[True] * (batches - 1)]
        at = {each.text: plan.with_inputs(b).request.fire_time for b in cut for each in b.slices}
        assert at == fired


def test_intervals_of_two_runs_are_in_no_batch_together(night: Night) -> None:
    """Each is made for the time of its own run, though they follow upon each other."""
    later = NOW.replace(hour=6)
    night.run("r5", "timed", from_="2026-01-01", to="2026-01-04")
    hours: dict[str, Any] = {"began": BEGAN.replace(hour=6), "fire_time": later}
    night.run("r6", "timed", from_="2026-01-05", to="2026-01-06", **hours)
    for run_id in ("r5", "r6"):
        night.state.end_run(run_id, "failed", 1)
    (step,) = night.all_failed("timed").steps
    at = {str(each): inputs_of(step, each).fire_time for each in step.slices}
    assert at == {"2026-01-01 to 2026-01-04": NOW, "2026-01-05 to 2026-01-06": later}


def test_runs_that_ended_well_or_long_ago_are_not_retried(night: Night) -> None:
    night.run("r9", "whole", began=BEGAN.replace(hour=7), from_=None, to=None)
    night.state.end_run("r9", "done", 0)
    assert "whole" not in slices(night.all_failed())
    assert slices(night.project.retry_failed_plan(since="1h")) == {}


def test_a_full_refresh_drops_once(night: Night) -> None:
    plan = RecordedPlan.of(night.project.plan("whole", full_refresh=True, fire_time=NOW))
    assert plan.steps[0].anew
    night.state.begin_run(run_record("ra", started_at=BEGAN, plan=plan.to_json(), args={}))
    night.state.end_run("ra", "failed", 1)
    (step,) = night.project.retry_plan("ra").steps
    assert step.anew
    again = replace(plan, steps=(replace(plan.steps[0], slices=((""),)),))
    assert again.request.full_refresh


def penstock(night: Night, *arguments: str) -> Any:
    root = str(night.project.settings.root)
    return CliRunner().invoke(main, ["retry", *arguments, "--project", root])


def test_what_would_be_made_is_shown(night: Night) -> None:
    done = penstock(night, "r2", "--dry-run")
    assert done.exit_code == 0
    assert INPUTS in done.stderr
    assert "2026-01-04 to 2026-01-09 (6)  missing" in done.stdout
    shown = json.loads(penstock(night, "--failed", "--since", "2026-01-01T00:00:00Z", "--dry-run",
                                "--json").stdout)  # fmt: skip
    assert [step["step"] for step in shown["steps"]] == ["days", "reader"]


def test_a_run_or_failed_has_to_be_named(night: Night) -> None:
    done = penstock(night)
    assert done.exit_code == 2
    assert "retry takes one run, or --failed" in done.stderr


def test_nothing_left_is_done_without_spark(night: Night) -> None:
    done = penstock(night, "--failed", "--since", "1h", "--json")
    assert done.exit_code == 0
    assert json.loads(done.stdout.splitlines()[-1])["result"]["state"] == "done"
