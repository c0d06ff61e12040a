"""What is known of past runs, over the lakes of a project. No Spark.

Tests ``project/past_runs.py`` and ``project/states.py`` as well.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from penstock.engine.answers.runs import INTERRUPTED, PastRun, past_run, run_detail
from penstock.engine.planning.recorded_plan import RecordedPlan
from penstock.engine.results import CheckResult
from penstock.engine.state.records import ProcessId
from penstock.errors import ArgumentError
from penstock.project.past_runs import moment_since
from tests.engine.planning.test_reasons import DAYS, Shop
from tests.engine.state.builders import START, at, publication, run_record, step_record

GONE = ProcessId("elsewhere", 1, "never")


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    """A project with a run that made one day of two, by a plan."""
    shop = Shop(tmp_path)
    shop.project.lake("main").sql("CREATE TABLE src (day DATE)")
    plan = RecordedPlan.of(shop.project.plan("days", **DAYS)).to_json()
    state = shop.state
    state.end_run("r1", "done", 0)
    state.begin_run(run_record("r2", started_at=at(10), plan=plan, user="ann"))
    for day, target in (("01", "days"), ("02", "days"), ("02", "reader")):
        key = {"step": target, "target": f"main.{target}", "slice": f"2026-01-{day}"}
        state.begin_step(step_record("r2", started_at=at(11), **key))
    made = {"step": "days", "target": "main.days"}
    state.confirm(publication("r2", slice="2026-01-01", at=at(12), **made), 3)
    bad = CheckResult("unique day", False, 2, ({"day": "x"},))
    state.fail_tests(
        publication("r2", slice="2026-01-02", checks=(bad,), reason="1 of 1 failed", **made)
    )
    state.end_step(("r2", "reader", "2026-01-02"), "skipped", "upstream days failed")
    state.end_run("r2", "failed", 1)
    return shop


def test_runs_are_listed_with_what_became_of_their_slices(shop: Shop) -> None:
    last, first = shop.project.runs()
    assert (last.run_id, last.state, last.exit_code, last.user) == ("r2", "failed", 1, "ann")
    assert last.steps == {"done": 1, "failed": 1, "skipped": 1}
    assert (first.run_id, first.lakes) == ("r1", ("main",))
    assert "r2: failed, 1 done, 1 failed, 1 skipped" in repr(last)
    assert "<td>r2</td>" in shop.project.runs()._repr_html_()


def test_some_runs(shop: Shop) -> None:
    def ids(**asked: Any) -> list[str]:
        return [run.run_id for run in shop.project.runs(**asked)]

    assert ids(failed=True) == ["r2"]
    assert ids(model="reader") == ["r2"]
    assert ids(limit=1) == ["r2"]
    assert ids(since=at(5)) == ["r2"]
    assert ids(since="1h") == []
    with pytest.raises(ArgumentError):
        ids(model="nosuch")


def test_a_run_is_shown_with_its_plan_and_its_tests(shop: Shop) -> None:
    found = shop.project.past_run("last")
    assert found.run.run_id == "r2"
    asked = "penstock run days --from 2026-01-01 --to 2026-01-09"
    assert found.command == f"{asked} --fire-time 2026-01-12T03:00:00Z"
    assert found.fire_time == DAYS["fire_time"]
    assert [(each.step, each.slices, each.reason, each.count) for each in found.plan] == [
        ("days", "2026-01-01 to 2026-01-09", "missing", 9)
    ]
    assert [(each.slice, each.state) for each in found.steps] == [
        ("2026-01-01", "done"),
        ("2026-01-02", "failed"),
        ("2026-01-02", "skipped"),
    ]
    assert found.steps[1].tests[0].samples == ({"day": "x"},)
    assert found.steps[2].reason == "upstream days failed"


def test_an_older_record_has_no_plan(shop: Shop) -> None:
    found = shop.project.past_run("r1")
    assert (found.command, found.plan, found.run.user) == (None, (), None)
    assert found.arguments == {"n": "1"}


def test_a_run_that_is_not_there_is_named(shop: Shop) -> None:
    with pytest.raises(ArgumentError, match="no run 'x' is recorded"):
        shop.project.past_run("x")
    with pytest.raises(ArgumentError, match="beginning of several runs"):
        shop.project.past_run("r")
    with pytest.raises(ArgumentError, match="no run 'x'"):
        run_detail({"main": shop.catalog}, "x")


def listed(state: str, steps: dict[str, int]) -> PastRun:
    record = run_record(state=state, process=GONE, finished_at=at(1))
    return past_run(record, "main", steps, lambda process: process == GONE)


def test_a_killed_run_is_interrupted_whether_or_not_another_has_marked_it() -> None:
    for state, step in (("running", "running"), ("abandoned", "abandoned")):
        run = listed(state, {"done": 2, step: 1})
        assert (run.state, run.seconds) == (INTERRUPTED, None)
        assert run.steps == {"done": 2, INTERRUPTED: 1}
    assert listed("cancelled", {}).seconds == 60


def test_since_is_an_age_or_a_moment() -> None:
    now = datetime(2026, 1, 2, tzinfo=UTC)
    assert moment_since("24h", now) == now - timedelta(days=1)
    assert moment_since(START) == START
    assert moment_since("2026-01-02T00:00:00Z") == now
    with pytest.raises(ArgumentError, match="'soon' is neither an age nor a time") as caught:
        moment_since("soon")
    assert "24h" in (caught.value.hint or "")
    assert moment_since(None) is None
    with pytest.raises(ArgumentError):
        moment_since("yesterday")
