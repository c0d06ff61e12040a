"""A firing is a run, which carries on after a kill."""

from __future__ import annotations

import threading
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from penstock.engine.planning.recorded_plan import RecordedPlan
from penstock.engine.state.records import ProcessId
from penstock.engine.state.run_history import find_last_attempt
from penstock.engine.state.store import State
from penstock.errors import ArgumentError
from penstock.project.project import Project
from penstock.project.running import RunSettings
from penstock.scheduler.values import WHOLE, EventKind, Firing, FiringState
from penstock.server.firing_runner import find_attempt, plan_firing, read_options, run_firing
from tests.engine.planning.test_reasons import NOW, Shop, days
from tests.engine.state.builders import run_record
from tests.engine.toy import write_project

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def firing(**changes: Any) -> Firing:
    return replace(Firing("f1", "days", "2026-01-02", EventKind.ASSET, NOW), **changes)


def test_a_change_of_an_input_rebuilds_all_that_it_put_behind() -> None:
    assert read_options(firing()) == {
        "fire_time": NOW,
        "payload": None,
        "trigger": "cascade",
        "partition": "2026-01-02",
        "behind": True,
    }
    timed = read_options(firing(kind=EventKind.SCHEDULE, key=WHOLE))
    assert "partition" not in timed
    assert "behind" not in timed


def test_a_backfill_of_all_slices_rebuilds_what_is_up_to_date(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    shop.made("days", *days(2))
    _, plan, _ = plan_firing(shop.project.context, firing(kind=EventKind.BACKFILL))
    assert not plan.request.force
    forced = firing(kind=EventKind.BACKFILL, payload={"force": True})
    assert read_options(forced)["payload"] is None
    _, plan, _ = plan_firing(shop.project.context, forced)
    assert plan.request.force
    assert plan.request.payload is None
    assert [str(slice_) for slice_ in plan.steps[0].slices] == ["2026-01-02"]


def test_a_firing_that_did_not_begin_is_planned_under_its_id(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    shop.made("days", *days(1))
    _, plan, run_id = plan_firing(shop.project.context, firing())
    assert run_id == "f1"
    assert [str(slice_) for slice_ in plan.steps[0].slices] == ["2026-01-02"]
    assert plan.request.trigger == "cascade"


def test_the_last_retry_is_carried_on_with(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    state = State(shop.catalog)
    for number, retried in (("f1", None), ("r2", "f1"), ("r3", "r2")):
        state.begin_run(replace(run_record(), run_id=number, retry_of=retried))
    assert state.read(partial(find_last_attempt, run_id="r2"), None) == "r3"
    assert find_attempt(shop.project.context, "f1") == "r3"
    assert find_attempt(shop.project.context, "f9") is None


def test_what_is_up_to_date_ends_at_once(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    shop.made("whole", "")
    end = run_firing(shop.project.context, firing(model="whole", key=WHOLE), threading.Event())
    assert end.firing.state is FiringState.DONE, end
    assert end.result is not None
    assert end.result.run_id == "f1"


def test_the_sinks_of_a_run_know_its_firing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop, known = Shop(tmp_path), list[Firing | None]()

    def end(_: object, __: object, settings: RunSettings) -> None:
        known.append(settings.firing)
        raise ArgumentError("that is all")

    monkeypatch.setattr("penstock.project.running.execute_plan", end)
    fired = firing(model="whole", key=WHOLE)
    run_firing(shop.project.context, fired, threading.Event())
    assert known == [fired]


def test_a_model_that_is_gone_is_a_failed_firing(tmp_path: Path) -> None:
    root = write_project(
        tmp_path / "p", {"models/a": "-- pipeline\n-- materialize ducklake://main/a\nSELECT 1 AS a"}
    )
    end = run_firing(Project.load(root).context, firing(model="gone"), threading.Event())
    assert end.firing.state is FiringState.FAILED
    assert "gone" in str(end.firing.reason)


@pytest.mark.parametrize("kind", list(EventKind))
def test_each_kind_of_event_has_a_trigger(kind: EventKind) -> None:
    assert read_options(firing(kind=kind))["trigger"].isalpha()


def test_a_run_that_was_silent_for_too_long_is_retried(tmp_path: Path) -> None:
    """Its process is on another machine, so nobody knows that it has ended."""
    shop = Shop(tmp_path)
    shop.made("days", *days(1))
    context = shop.project.context
    _, plan, _ = plan_firing(context, firing())
    elsewhere = replace(run_record(), run_id="f1", process=ProcessId("elsewhere", 7, "1"))
    shop.state.begin_run(replace(elsewhere, state="running", plan=RecordedPlan.of(plan).to_json()))
    _, again, run_id = plan_firing(context, firing())
    assert run_id is None
    assert again.retry_of == "f1"
    assert [str(slice_) for slice_ in again.steps[0].slices] == ["2026-01-02"]
    record = shop.state.run("f1")
    assert record is not None
    assert record.state == "abandoned"
