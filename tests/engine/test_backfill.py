"""Ranges of slices: what is made, what a failure leaves, and joint jobs against one run a day.

Tests ``engine/running/publish.py`` (the slices of a batch that pass, and their records) and
``engine/running/writers.py`` (slices staged together, tested one by one).
"""

from __future__ import annotations

import random
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from penstock.engine.state.store import State
from penstock.events import Event, StepFinished, ignore
from penstock.project.project import Project
from tests.engine import joint_projects, killed_backfill
from tests.engine.toy import rows, write_project

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

FIRST, LAST = date(2026, 3, 27), date(2026, 3, 31)  # with a day of 23 hours in Paris
EVENTS = """
-- pipeline
-- materialize ducklake://main/events
SELECT id, at, CAST(at AS DATE) AS day, CAST(CAST(at AS DATE) AS STRING) AS text, id % 3 AS k
FROM (SELECT id, TIMESTAMP '2026-03-26 20:00:00' + make_interval(0, 0, 0, 0, id) AS at
      FROM range(120))
"""
HEAD = "-- pipeline\n-- partitioned {kind}\n-- materialize ducklake://main/t{strategy}\n{more}"


@pytest.mark.parametrize("seed", [6, 7])
def test_a_range_makes_the_tables_that_one_run_a_day_makes(
    tmp_path: Path, spark: SparkSession, seed: int
) -> None:
    way, wrong = joint_projects.hunt_tables(spark, tmp_path / "p", random.Random(seed))
    assert (way, wrong) == ("together", None)


@pytest.mark.parametrize("seed", range(2))
def test_a_joint_query_has_the_rows_of_each_slice(
    tmp_path: Path, spark: SparkSession, seed: int
) -> None:
    assert joint_projects.hunt(spark, tmp_path / "p", random.Random(seed))[1] is None


DAILY = HEAD.format(kind="daily", strategy="", more="-- data_test accepted_range id max=90\n")
BOOM = "CASE WHEN id = 40 THEN CAST(raise_error('boom') AS BIGINT) ELSE id END AS id"


def project_of(root: Path, spark: SparkSession, columns: str) -> Project:
    daily = f"{DAILY}SELECT {columns} FROM events WHERE day = '{{partition}}'"
    reader = HEAD.format(kind="daily", strategy="", more="").replace("main/t", "main/u")
    reader += "SELECT * EXCEPT (_wm_partition) FROM t WHERE _wm_partition = '{partition}'"
    made = {"models/events": EVENTS, "models/t": daily, "models/u": reader}
    return Project.load(write_project(root / "p", made), spark=spark)


def test_bad_slices_are_left_out_and_their_readers_skipped(
    tmp_path: Path, spark: SparkSession
) -> None:
    with project_of(tmp_path, spark, "id") as project:
        result = project.run(from_="2026-03-27", to="2026-03-31", on_event=ignore)
        states = {(step.name, step.slice): step.state for step in result.steps}
        assert [states["t", f"2026-03-{day}"] for day in range(27, 32)] == [
            "done", "done", "done", "failed", "failed",
        ]  # fmt: skip
        assert states["u", "2026-03-31"] == "skipped"
        assert [step.snapshot_id for step in result.steps if step.name == "t"][:3] == [2, 2, 2]
        assert result.exit_code == 1
        again = project.plan(from_="2026-03-27", to="2026-03-31").steps
        assert [step.slice for step in again if step.name == "u"] == [
            "2026-03-30 to 2026-03-31 (2 slices)"
        ]


TIMED = """
-- pipeline
-- partitioned daily start=2026-03-27
-- materialize ducklake://main/t time=at
-- data_test row_count max=23
SELECT CASE WHEN id = 77 THEN CAST(raise_error('boom') AS BIGINT) ELSE id END AS id, at FROM events
WHERE at >= $partition_start AND at < $partition_end AND id <> 9
"""


def test_intervals_that_fail_are_left_out(tmp_path: Path, spark: SparkSession) -> None:
    root = write_project(tmp_path / "p", {"models/events": EVENTS, "models/t": TIMED})
    with Project.load(root, spark=spark) as project:
        asked: dict[str, Any] = {"from_": "2026-03-27", "to": "2026-03-30", "on_event": ignore}
        result = project.run(**asked)
        assert [(each.slice, each.state, each.rows) for each in result.steps[1:]] == [
            ("2026-03-27", "done", 23),
            ("2026-03-28", "failed", None),  # its 24 rows
            ("2026-03-29", "failed", None),
            ("2026-03-30", "failed", None),  # its query
        ]
        assert rows(project, "SELECT count(*), max(id) FROM t") == [(23, 27)]
        (again,) = project.plan(select="t", from_="2026-03-27", to="2026-03-30").steps
        assert again.slice == "2026-03-28 to 2026-03-30"


def test_a_joint_job_that_fails_is_made_by_halves(tmp_path: Path, spark: SparkSession) -> None:
    events: list[Event] = []
    with project_of(tmp_path, spark, BOOM) as project:
        project.run(select="events", on_event=ignore)
        result = project.run(
            select="t", from_="2026-03-26", to="2026-03-29", on_event=events.append
        )
    failed = [step.slice for step in result.steps if step.state == "failed"]
    assert failed == ["2026-03-28"]
    ended = [event for event in events if isinstance(event, StepFinished)]
    assert [(event.slices, event.failed) for event in ended] == [(2, 0), (1, 1), (1, 0)]


def test_unchanged_slices_make_no_snapshot(tmp_path: Path, spark: SparkSession) -> None:
    with project_of(tmp_path, spark, "id") as project:
        asked: dict[str, Any] = {"from_": "2026-03-26", "to": "2026-03-29", "on_event": ignore}
        project.run(select=["events", "t"], **asked)
        before = len(project.snapshots())
        result = project.run(select="t", all_=True, **asked)
        assert {step.state for step in result.steps} == {"unchanged"}
        assert len(project.snapshots()) == before
        state = State(project.lake("main").catalog)
        together = state.slice("main.t", "2026-03-27")
        project.run("2026-03-27", select="t", on_event=ignore)
        alone = state.slice("main.t", "2026-03-27")
        assert together is not None
        assert alone is not None
        assert together.fingerprint == alone.fingerprint is not None


def test_a_killed_backfill_is_taken_up(tmp_path: Path, spark: SparkSession) -> None:
    root = killed_backfill.write(tmp_path / "p", "", bad=killed_backfill.BAD)
    killed_backfill.kill_once(root, 9, 0.1)
    assert killed_backfill.problems(root)[1] == []
    killed_backfill.write(root, "", bad="none")
    with Project.load(root, spark=spark) as project:
        first, last = killed_backfill.FIRST, killed_backfill.LAST
        assert project.run(from_=first, to=last, on_event=ignore).state == "done"
    assert killed_backfill.problems(root) == (killed_backfill.SLICES, [])
