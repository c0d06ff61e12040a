"""Two runs at once: what one makes between the tests and the commit of the other is made once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from penstock.engine.results import RunResult
from penstock.events import Event, StepProgress
from penstock.project import Project
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


def both(toy: Project, spark: SparkSession, **asked: Any) -> tuple[RunResult, RunResult]:
    """A run between whose tests and publication another one begins and ends."""
    inner: list[RunResult] = []

    def between(event: Event) -> None:
        if isinstance(event, StepProgress) and event.phase == "publishing" and not inner:
            with Project.load(toy.settings.root, spark=spark) as other:
                inner.append(other.run(**asked, on_event=lambda _: None))

    outer = toy.run(**asked, on_event=between)
    return outer, inner[0]


def test_changes_that_another_run_has_read_are_read_once(make: Make, spark: SparkSession) -> None:
    toy = make({"models/t": CHANGES})
    toy.lake("main").sql("CREATE TABLE raw AS SELECT 1 AS n")
    toy.run()
    toy.lake("main").sql("INSERT INTO raw VALUES (2), (3)")
    outer, inner = both(toy, spark)
    assert (outer.state, inner.state) == ("done", "done")
    assert rows(toy, "SELECT n FROM t ORDER BY n") == [(1,), (2,), (3,)]


@pytest.mark.parametrize(
    ("script", "column"),
    [
        (DAYS.format(clause="WHERE day = '{partition}'"), "day"),  # in one job
        (DAYS.format(clause="WHERE day = '{partition}' LIMIT 9"), "day"),  # one by one
        (UNMANAGED, "day"),
    ],
)
def test_slices_that_another_run_has_made_are_made_once(
    make: Make, spark: SparkSession, script: str, column: str
) -> None:
    toy = make({"models/t": script})
    toy.lake("main").sql(
        f"CREATE TABLE raw AS SELECT '2026-01-0' || n AS {column}, n FROM range(1, 4) r(n)"
    )
    asked = {"fire_time": at(9), "from_": "2026-01-01", "to": "2026-01-03"}
    outer, inner = both(toy, spark, **asked)
    assert {step.state for step in inner.steps} == {"done"}
    assert {step.state for step in outer.steps} == {"unchanged"}
    assert "made meanwhile by run" in (outer.steps[0].reason or "")
    assert rows(toy, "SELECT n FROM t ORDER BY n") == [(1,), (2,), (3,)]
