"""Why slices are as they are, and what a run would do with them. No Spark.

Tests ``cli/why.py`` as well.
"""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from penstock.cli.main import main
from penstock.engine.answers.why import chosen, why_run
from penstock.engine.planning.recorded_plan import RecordedPlan
from penstock.engine.results import SliceStatus
from penstock.engine.state.records import InputRead, ReadRecord, this_process
from penstock.engine.state.store import insert_read
from penstock.errors import ArgumentError
from penstock.project.project import Project
from penstock.states import SliceState
from tests.engine.planning.test_reasons import DAYS, Shop
from tests.engine.state.builders import run_record, step_record
from tests.engine.toy import write_project

AT = datetime(2026, 1, 12, 3, tzinfo=UTC)


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    """A run made two days of `days` and one of its reader, and failed at the reader's second."""
    shop = Shop(tmp_path)
    shop.project.lake("main").sql("CREATE TABLE src (day DATE)")
    plan = RecordedPlan.of(shop.project.plan("days", "reader", **DAYS)).to_json()
    shop.state.begin_run(run_record("r2", started_at=AT, plan=plan, user="ann"))
    for name, day in (("days", "01"), ("days", "02"), ("reader", "01"), ("reader", "02")):
        key = {"step": name, "target": f"main.{name}", "slice": f"2026-01-{day}"}
        shop.state.begin_step(step_record("r2", started_at=AT, **key))
    shop.made("days", "2026-01-01", "2026-01-02", run_id="r2")
    read = ReadRecord("x1", "main.reader", "r2", {"main": 99}, (InputRead("table", "main.days"),))
    shop.state.write(lambda connection: insert_read(connection, read))
    shop.made("reader", "2026-01-01", run_id="r2", read_id="x1")
    shop.state.end_step(("r2", "reader", "2026-01-02"), "failed", "no such column\n  x")
    shop.state.end_run("r2", "failed", 1)
    return shop


def test_who_made_a_slice_why_and_of_what(shop: Shop) -> None:
    why = shop.project.why("reader", "2026-01-01")
    assert why.made is not None
    assert (why.made.run_id, why.made.user, why.made.because) == ("r2", "ann", "missing")
    (read,) = why.inputs
    assert (read.name, read.snapshot, read.model) == ("main.days", 99, "days")
    assert read.run is not None
    assert (read.run.run_id, read.run.because) == ("r2", "missing")


def test_a_slice_that_failed(shop: Shop) -> None:
    why = shop.project.why("reader", "2026-01-02")
    assert (why.state, why.made) == ("failed", None)
    assert why.tried is not None
    assert (why.tried.state, why.tried.said) == ("failed", "no such column\n  x")
    assert why.now[0].startswith("a run would build 2026-01-02, whose last attempt failed")


def test_an_attempt_of_a_run_that_was_killed_is_interrupted() -> None:
    attempt = step_record("r2", state="running")
    alive = run_record("r2", process=this_process())
    killed = replace(alive, process=replace(this_process(), started="before"))
    assert why_run(alive, None, attempt).state == "running"
    assert why_run(killed, None, attempt).state == "interrupted"


def test_a_slice_that_was_skipped(shop: Shop) -> None:
    shop.failed("reader", "2026-01-03", "skipped")
    why = shop.project.why("reader", "2026-01-03")
    assert why.now == ("a run would build 2026-01-03, which was skipped: its input failed",)


def test_a_slice_that_is_missing_and_waits(shop: Shop) -> None:
    why = shop.project.why("reader", "2026-01-05")
    assert (why.state, why.made, why.tried, why.inputs) == ("missing", None, None, ())
    assert why.now == ("a run would build 2026-01-05: missing",)
    assert why.waits_for == ("2026-01-05: days 2026-01-05 missing",)
    assert why.readers == ()


def test_who_reads_it(shop: Shop) -> None:
    assert shop.project.why("days").readers == ("reader",)
    assert shop.project.why("whole").state == "missing"


def test_a_slice_of_a_table_that_has_none(shop: Shop) -> None:
    with pytest.raises(ArgumentError, match="whole is not partitioned: it has no slice '2026-01"):
        shop.project.why("whole", "2026-01-02")


def test_a_model_by_time(shop: Shop) -> None:
    shop.made("timed", "2026-01-01T00:00:00Z/2026-01-04T00:00:00Z", run_id="r2")
    why = shop.project.why("timed", "2026-01-02")
    assert why.made is not None
    assert why.made.run_id == "r2"
    assert why.slice == "2026-01-02"


def test_an_interval_of_a_history_that_is_loaded_by_days(tmp_path: Path) -> None:
    script = (
        "MODEL (name h, kind SCD_TYPE_2_BY_COLUMN (unique_key id, columns [v]), "
        "start '2026-01-01', cron '@daily');\n"
        "SELECT id, v FROM src WHERE d BETWEEN @start_ds AND @end_ds"
    )
    with Project.load(write_project(tmp_path / "h", {"models/h": script})) as project:
        assert project.why("h", "2026-01-02").slice == "2026-01-02"


def test_a_slice_may_follow_the_model(shop: Shop) -> None:
    named = penstock(shop, "why", "reader", "--partition", "2026-01-02").stdout
    assert penstock(shop, "why", "reader", "2026-01-02").stdout == named
    both = penstock(shop, "why", "reader", "2026-01-02", "--slice", "2026-01-01")
    assert "the slice is named twice" in both.stderr


def test_the_slice_that_a_date_is_in() -> None:
    one = SliceStatus("2026-01-01", SliceState.FAILED)
    many = SliceStatus("2026-01-02 to 2026-01-09", SliceState.STALE)
    whole = SliceStatus(None, SliceState.MISSING)
    assert chosen((one, many), "2026-01-01") == one
    assert chosen((one, many), "2026-01-05") == many
    assert chosen((one, many), "2026-02-05") is None
    assert chosen((one, many), None) is None
    assert chosen((whole,), None) == whole


def penstock(shop: Shop, *arguments: str) -> Result:
    return CliRunner().invoke(main, [*arguments, "--project", str(shop.project.settings.root)])


def test_it_is_said_for_people(shop: Shop) -> None:
    text = penstock(shop, "why", "reader", "--partition", "2026-01-01").stdout
    for said in (
        "reader 2026-01-01 (main.reader) is",
        "made by run r2 (manual by ann, ",
        "as it was missing",
        "made from\n  main.days at snapshot 99, made by run r2",
        "now\n",
        "read by no model",
    ):
        assert said in text, text
    text = penstock(shop, "why", "reader", "--partition", "2026-01-02").stdout
    assert "is failed: no such column" in text
    assert "last tried by run r2" in text


def test_it_is_said_as_json(shop: Shop) -> None:
    found: Any = json.loads(penstock(shop, "why", "days", "--json").stdout)
    assert found["model"] == "days"
    assert found["readers"] == ["reader"]


def test_a_monitor_gets_an_exit_code_and_the_count(shop: Shop) -> None:
    done = penstock(shop, "status", "--fail-on", "failed,waiting")
    assert done.exit_code == 1
    assert "1 slice: 1 failed" in done.stderr
    assert penstock(shop, "status", "days", "--fail-on", "failed").exit_code == 0
    shown = penstock(shop, "status", "reader", "--fail-on", "failed").stdout.splitlines()
    assert [line.split()[0] for line in shown[2:]] == ["2026-01-02"]
    assert penstock(shop, "status", "days", "--fail-on", "stale").stdout.endswith(
        "No slice is stale.\n"
    )
    wrong = penstock(shop, "status", "--fail-on", "faild")
    assert wrong.exit_code == 2
    assert "did you mean 'failed'?" in wrong.stderr
