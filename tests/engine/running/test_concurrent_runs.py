"""Two runs at once: what one makes between the tests and the commit of the other is made once."""

from __future__ import annotations

from threading import Thread
from typing import TYPE_CHECKING, Any

import pytest

from penstock.engine.results import RunResult
from penstock.events import Event, Notice, StepProgress
from penstock.project.project import Project
from tests.engine.conftest import Make
from tests.engine.planning.test_intervals import at
from tests.engine.toy import rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

CHANGES = """
    -- pipeline
    -- materialize ducklake://main/t append
    -- incremental changes
    SELECT n FROM raw
"""
DAYS = """
    -- pipeline
    -- partitioned daily
    -- materialize ducklake://main/t append
    SELECT n FROM raw {clause}
"""
UNMANAGED = """
    MODEL (name t, kind INCREMENTAL_UNMANAGED, start '2026-01-01');
    SELECT n FROM raw WHERE day >= @start_ds AND day <= @end_ds
"""


def both(
    toy: Project, spark: SparkSession, phase: str, **asked: Any
) -> tuple[RunResult, RunResult]:
    """A run, and another one that begins and ends while the first is in a phase of its step."""
    inner: list[RunResult] = []

    def between(event: Event) -> None:
        now = event.phase if isinstance(event, StepProgress) else type(event).__name__
        if now == phase and not inner:
            with Project.load(toy.settings.root, spark=spark) as other:
                inner.append(other.run(**asked, on_event=lambda _: None))

    outer = toy.run(**asked, on_event=between)
    return outer, inner[0]


def test_changes_that_another_run_has_read_are_read_once(make: Make, spark: SparkSession) -> None:
    toy = make({"models/t": CHANGES})
    toy.lake("main").sql("CREATE TABLE raw AS SELECT 1 AS n")
    toy.run()
    toy.lake("main").sql("INSERT INTO raw VALUES (2), (3)")
    outer, inner = both(toy, spark, "publishing", wait=False)
    assert (outer.state, inner.state) == ("done", "waiting")
    assert rows(toy, "SELECT n FROM t ORDER BY n") == [(1,), (2,), (3,)]


RANGE = {"fire_time": at(9), "from_": "2026-01-01", "to": "2026-01-03"}
RAW = "CREATE TABLE raw AS SELECT '2026-01-0' || n AS day, n FROM range(1, 4) r(n)"


@pytest.mark.parametrize(
    "script",
    [
        DAYS.format(clause="WHERE day = '{partition}'"),  # in one job
        DAYS.format(clause="WHERE day = '{partition}' LIMIT 9"),  # one by one
        UNMANAGED,
    ],
)
def test_slices_that_another_run_has_made_are_made_once(
    make: Make, spark: SparkSession, script: str
) -> None:
    """The other run has planned before this one said which slices it makes."""
    toy = make({"models/t": script})
    toy.lake("main").sql(RAW)
    outer, inner = both(toy, spark, "RunStarted", **RANGE)
    assert {step.state for step in inner.steps} == {"done"}
    assert {step.state for step in outer.steps} == {"unchanged"}
    assert "made meanwhile by run" in (outer.steps[0].reason or "")
    assert rows(toy, "SELECT n FROM t ORDER BY n") == [(1,), (2,), (3,)]


def test_slices_that_a_run_is_making_are_left_to_it(make: Make, spark: SparkSession) -> None:
    toy = make({"models/t": DAYS.format(clause="WHERE day = '{partition}'")})
    toy.lake("main").sql(RAW)
    outer, inner = both(toy, spark, "publishing", wait=False, **RANGE)
    assert inner.exit_code == 3
    assert [step.state for step in inner.steps] == ["waiting"] * 3
    assert f"run {outer.run_id} (" in (inner.steps[0].reason or "")
    assert {step.state for step in outer.steps} == {"done"}
    assert rows(toy, "SELECT n FROM t ORDER BY n") == [(1,), (2,), (3,)]


def test_a_full_refresh_drops_nothing_that_a_run_made_since_it_was_planned(
    make: Make, spark: SparkSession
) -> None:
    toy = make({"models/t": DAYS.format(clause="WHERE day = '{partition}'")})
    toy.lake("main").sql(RAW)
    toy.run("2026-01-01")
    began: list[RunResult] = []

    def between(event: Event) -> None:
        now = event.phase if isinstance(event, StepProgress) else type(event).__name__
        if now == "StepStarted" and not began:
            with Project.load(toy.settings.root, spark=spark) as other:
                began.append(other.run("2026-01-02", wait=False, on_event=lambda _: None))

    outer = toy.run("t", "2026-01-03", full_refresh=True, on_event=between)
    assert (began[0].state, outer.state) == ("waiting", "done")  # it holds the whole table
    assert rows(toy, "SELECT n FROM t") == [(3,)]


def test_a_run_waits_for_the_slice_and_adds_its_rows_after(make: Make, spark: SparkSession) -> None:
    toy = make({"models/t": CHANGES.replace("    -- incremental changes\n", "")})
    toy.lake("main").sql("CREATE TABLE raw AS SELECT 1 AS n")
    said: list[str] = []
    others: list[Thread] = []

    def second() -> None:
        with Project.load(toy.settings.root, spark=spark) as other:
            other.run(on_event=lambda e: said.append(e.message) if isinstance(e, Notice) else None)

    def between(event: Event) -> None:
        if isinstance(event, StepProgress) and event.phase == "publishing" and not others:
            others.append(Thread(target=second))
            others[0].start()
            others[0].join(2)  # it waits

    outer = toy.run(on_event=between)
    others[0].join(30)
    assert [each for each in said if each.startswith("waits for main.t: run " + outer.run_id)]
    assert rows(toy, "SELECT n FROM t") == [(1,), (1,)]
