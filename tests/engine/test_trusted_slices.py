"""The examples of issue 28, in its words: what was materialized and wrong, seen by nobody."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from penstock.project.project import Project
from tests.engine.test_inputs import HEAD, NOON, ends, project_of, run, states, write_day
from tests.engine.toy import rows, write_project

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

DAILY = "-- partitioned daily start=2026-01-01\n"
MART = f"{DAILY}SELECT sum(n) AS n FROM raw WHERE day = '{{partition}}'"
CUSTOMERS = (
    "MODEL (name main.customers, kind SCD_TYPE_2_BY_COLUMN (unique_key id, columns [name], "
    "invalidate_hard_deletes true, batch_size 1), start '2026-01-01', cron '@daily');\n"
    "SELECT n AS id, n AS name FROM raw WHERE day BETWEEN @start_ds AND @end_ds"
)
BY_TIME = (
    "MODEL (name main.by_time, kind INCREMENTAL_BY_TIME_RANGE (time_column day), "
    "start '2026-01-01');\nSELECT day, n FROM raw WHERE day BETWEEN @start_ds AND @end_ds"
)


def days(first: int, last: int) -> list[str]:
    return [str(date(2026, 1, 1) + timedelta(days=n - 1)) for n in range(first, last + 1)]


def loaded(root: Path, spark: SparkSession, name: str, script: str) -> Project:
    """A project with one more model, as it is written."""
    with project_of(root, spark) as project:
        (project.settings.root / "models" / f"{name}.sql").write_text(script)
    return Project.load(root / "p", spark=spark)


def test_a_plain_run_after_three_missed_days_closes_no_customer(
    tmp_path: Path, spark: SparkSession
) -> None:
    """It "made a history of nothing and closed 202 of 202 current customers, in a run in which
    their source had failed".
    """
    current = "SELECT count(*) FROM main.customers WHERE valid_to IS NULL"
    with loaded(tmp_path, spark, "customers", CUSTOMERS) as project:
        write_day(project, "2026-01-01", *range(202))
        run(project, from_="2026-01-01", to="2026-01-01").raise_for_status()
        assert rows(project, current) == [(202,)]
        after = run(project)  # three days later: no file came
        assert after.exit_code == 1
        assert set(ends(after, "customers").values()) == {"skipped"}
        assert rows(project, current) == [(202,)]
        for day in days(2, 5):
            write_day(project, day, *range(202))
        run(project).raise_for_status()  # what is missing above is made first
        assert rows(project, current) == [(202,)]


def test_a_model_by_time_marks_no_day_before_its_source_has_it(
    tmp_path: Path, spark: SparkSession
) -> None:
    """It "marked days `materialized` with 0 rows before its source had them, for good"."""
    with loaded(tmp_path, spark, "by_time", BY_TIME) as project:
        for day in days(1, 2):
            write_day(project, day, 1)
        run(project, "raw", from_="2026-01-01", to="2026-01-02").raise_for_status()
        early = run(project, "by_time")
        assert early.exit_code == 3
        assert rows(project, "SELECT count(*) FROM by_time") == [(2,)]
        assert "materialized" not in {
            state for name, state in states(project, "by_time").items() if "2026-01-03" in str(name)
        }
        for day in days(3, 4):
            write_day(project, day, 1)
        run(project, "raw", from_="2026-01-03", to="2026-01-04").raise_for_status()
        assert run(project, "by_time").exit_code == 0
        assert rows(project, "SELECT count(*) FROM by_time") == [(4,)]


def test_a_month_follows_the_days_that_are_made_below_it(
    tmp_path: Path, spark: SparkSession
) -> None:
    """It "stayed at the sum of its first three days while eleven more were made below it"."""
    month = "-- partitioned monthly\nSELECT sum(n) AS n FROM raw"
    with project_of(tmp_path, spark, month=month) as project:
        for day in days(1, 14):
            write_day(project, day, 1)
        early = datetime(2026, 1, 4, 12, tzinfo=UTC)
        run(project, from_="2026-01-01", to="2026-01-03", fire_time=early).raise_for_status()
        assert rows(project, "SELECT n FROM month") == [(3,)]
        late = datetime(2026, 1, 15, 12, tzinfo=UTC)
        run(project, "raw", from_="2026-01-04", to="2026-01-14", fire_time=late)
        assert states(project, "month") == {"2026-01": "behind"}
        run(project, from_="2026-01-04", to="2026-01-14", fire_time=late).raise_for_status()
        assert rows(project, "SELECT n FROM month") == [(14,)]


def test_the_readers_of_a_corrected_day_have_something_to_do(
    tmp_path: Path, spark: SparkSession
) -> None:
    """It "was corrected and made again, and its readers said 'nothing to do'"."""
    with project_of(tmp_path, spark, mart=MART, total="SELECT sum(n) AS n FROM mart") as project:
        for day in days(1, 3):
            write_day(project, day, 1)
        asked = {"from_": "2026-01-01", "to": "2026-01-03"}
        run(project, **asked).raise_for_status()
        write_day(project, "2026-01-02", 7)
        run(project, "raw", partition="2026-01-02").raise_for_status()
        again = run(project, **asked).raise_for_status()
        assert ends(again, "mart") == {"2026-01-02": "done"}
        assert ends(again, "total") == {None: "done"}
        assert rows(project, "SELECT n FROM total") == [(9,)]


def test_nothing_is_up_to_date_below_what_is_stale(tmp_path: Path, spark: SparkSession) -> None:
    """It was "`stale` above, 'up to date' below"."""
    asked = {"from_": "2026-01-01", "to": "2026-01-02"}
    with project_of(tmp_path, spark, mart=MART) as project:
        for day in days(1, 2):
            write_day(project, day, 1)
        run(project, **asked).raise_for_status()
        path = project.settings.root / "models" / "raw.sql"
        path.write_text(path.read_text().replace("SELECT n,", "SELECT n + 1 AS n,"))
    with Project.load(tmp_path / "p", spark=spark) as project:
        assert set(states(project, "raw").values()) == {"stale"}
        (step,) = (each for each in run(project, **asked).steps if each.name == "mart")
        assert step.reason is not None
        assert "raw, which it reads, is stale" in step.reason
        project.restate("raw", "2026-01-01", "2026-01-02", fire_time=NOON).raise_for_status()
        assert set(states(project, "mart").values()) == {"behind"}
        run(project, **asked).raise_for_status()
        assert rows(project, "SELECT sum(n) FROM mart") == [(4,)]


def test_a_run_with_nothing_to_do_starts_no_spark(tmp_path: Path, spark: SparkSession) -> None:
    """It "costs Spark's start, since nobody knows that there is nothing to do"."""
    root = write_project(
        tmp_path / "p",
        {
            "models/raw": f"{HEAD}raw\n{DAILY}SELECT 1 AS n, '{{partition}}' AS day",
            "models/mart": f"{HEAD}mart\n{MART}",
            "models/total": f"{HEAD}total\nSELECT sum(n) AS n FROM mart",
        },
    )
    asked = {"from_": "2026-01-01", "to": "2026-01-03", "fire_time": NOON}
    with Project.load(root, spark=spark) as project:
        run(project, **asked).raise_for_status()
    with Project.load(root) as project:
        result = run(project, **asked)
        assert {step.state for step in result.steps} == {"skipped"}
        assert result.exit_code == 0
        assert not project.context.connections.has_session  # nothing public says it
