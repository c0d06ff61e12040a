"""Retries over Spark: a run that failed is made as it was to be, its arguments and its time too.

Tests ``project/repeating.py`` and ``project/running.py`` as well.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.events import ignore
from penstock.project.project import Project
from tests.engine.toy import rows, step, write_project

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

AT = datetime(2026, 1, 3, 2, 30, tzinfo=UTC)
HEAD = "-- pipeline\n-- partitioned daily start=2026-01-01\n-- materialize ducklake://main/"
SCRIPTS = {
    "models/days": HEAD
    + "days\n-- $n (int)\nSELECT $n AS n, x FROM read_csv('in/{partition}.csv', header=true)",
    "models/below": HEAD + "below\nSELECT n + 1 AS m FROM days WHERE n > 0",
    "models/other": HEAD + "other\nSELECT 1 AS a",
}


def test_a_retry_is_the_same_run(spark: SparkSession, tmp_path: Path) -> None:
    """It fails until the file is there: first whole, then with one of two days."""
    root = write_project(tmp_path / "p", SCRIPTS)
    (root / "in").mkdir()
    with Project.load(root, spark=spark) as project:
        asked: dict[str, Any] = {
            "from_": "2026-01-01",
            "to": "2026-01-02",
            "fire_time": AT,
            "on_event": ignore,
        }
        first = project.run(args={"n": 7}, **asked)
        assert first.exit_code == 1
        (root / "in" / "2026-01-01.csv").write_text("x\n1\n")
        partly = project.retry(first.run_id, on_event=ignore)
        assert (partly.exit_code, step(partly, "days").state) == (1, "done")
        assert {each.name for each in partly.steps} == {"days", "below"}  # the other one is made
        (root / "in" / "2026-01-02.csv").write_text("x\n2\n")
        whole = project.retry(first.run_id, on_event=ignore)
        assert (whole.exit_code, [each.slice for each in whole.steps]) == (0, ["2026-01-02"] * 2)
        assert rows(project, "SELECT n, x FROM days ORDER BY x") == [(7, 1), (7, 2)]
        assert rows(project, "SELECT DISTINCT m FROM below") == [(8,)]
        runs = project.runs(limit=3)
        assert [run.retry_of for run in runs] == [first.run_id, first.run_id, None]
        assert project.past_run("last").fire_time == AT
        assert project.retry(first.run_id, on_event=ignore).steps == ()
        assert project.retry_failed(on_event=ignore).steps == ()
