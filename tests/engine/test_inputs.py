"""Slices and their inputs, as runs leave them: what waits, what is behind, what is made first."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from penstock.engine.results import RunResult
from penstock.events import ignore
from penstock.project.project import Project
from tests.engine.toy import rows, write_project

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

HEAD = "-- pipeline\n-- materialize ducklake://main/"
RAW = (
    f"{HEAD}raw\n-- partitioned daily start=2026-01-01\n"
    "SELECT n, '{partition}' AS day FROM read_csv('data/' || '{partition}' || '.csv')"
)
NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)


def project_of(root: Path, spark: SparkSession, **readers: str) -> Project:
    scripts = {f"models/{name}": f"{HEAD}{name}\n{text}" for name, text in readers.items()}
    found = write_project(root / "p", {"models/raw": RAW, **scripts})
    (found / "data").mkdir()
    return Project.load(found, spark=spark)


def write_day(project: Project, day: str, *values: int) -> None:
    text = "\n".join(map(str, ("n", *values)))
    (project.settings.root / "data" / f"{day}.csv").write_text(f"{text}\n")


def run(project: Project, *models: str, **request: object) -> RunResult:
    request.setdefault("fire_time", NOON)
    return project.run(*models, on_event=ignore, **request)  # type: ignore[arg-type] # of any


def ends(result: RunResult, name: str) -> dict[str | None, str]:
    return {step.slice: step.state for step in result.steps if step.name == name}


def states(project: Project, name: str) -> dict[str | None, str]:
    return {each.slice: each.state for each in project.status(name)[0].slices}


def test_a_history_waits_for_days_that_its_source_lacks(
    tmp_path: Path, spark: SparkSession
) -> None:
    """A plain run after missed days closed all that is current, by loads of nothing."""
    model = (
        "MODEL (name main.dim, kind SCD_TYPE_2_BY_COLUMN (unique_key id, columns [v], "
        "invalidate_hard_deletes true), start '2026-01-01', cron '@daily');\n"
        "SELECT n AS id, n AS v FROM raw WHERE day BETWEEN @start_ds AND @end_ds"
    )
    with project_of(tmp_path, spark) as project:
        (project.settings.root / "models" / "dim.sql").write_text(model)
        write_day(project, "2026-01-01", 1, 2)
        write_day(project, "2026-01-05")
    with Project.load(tmp_path / "p", spark=spark) as project:
        first = run(project, from_="2026-01-01", to="2026-01-01")
        assert first.state == "done"
        result = run(project)
        assert result.exit_code == 1  # of days of raw that have no file
        assert set(ends(result, "dim").values()) == {"skipped"}
        alone = run(project, "dim")
        assert (alone.state, alone.exit_code) == ("waiting", 3)
        assert "raw 2026-01-02 failed" in (alone.steps[0].reason or "")
        assert rows(project, "SELECT count(*) FROM main.dim WHERE valid_to IS NULL") == [(2,)]


def test_a_month_grows_with_its_days(tmp_path: Path, spark: SparkSession) -> None:
    month = "-- partitioned monthly\nSELECT count(*) AS n FROM raw"
    mart = "-- partitioned daily\nSELECT count(*) AS n FROM raw WHERE day = '{partition}'"
    with project_of(tmp_path, spark, month=month, mart=mart) as project:
        for day in range(1, 5):
            write_day(project, f"2026-01-0{day}", 1, 2)
        early = datetime(2026, 1, 3, 12, tzinfo=UTC)  # when two days of the month are over
        run(project, from_="2026-01-01", to="2026-01-02", fire_time=early).raise_for_status()
        result = run(project, from_="2026-01-03", to="2026-01-04")
        assert ends(result, "month") == {"2026-01": "done"}
        assert rows(project, "SELECT n FROM month") == [(8,)]
        write_day(project, "2026-01-02", 1, 2, 3)  # a file is corrected, and made again
        run(project, "raw", partition="2026-01-02").raise_for_status()
        assert states(project, "mart")["2026-01-02"] == "behind"
        assert states(project, "month") == {"2026-01": "behind"}
        (why,) = (e.reason for e in project.status("mart")[0].slices if e.state == "behind")
        assert why is not None
        assert why.startswith("raw 2026-01-02: snapshot ")
        left = run(project, from_="2026-01-01", to="2026-01-04", behind=False)
        assert {step.state for step in left.steps} == {"skipped"}
        again = run(project, from_="2026-01-01", to="2026-01-04")
        assert ends(again, "mart") == {"2026-01-02": "done"}
        assert (
            rows(project, "SELECT sum(n) FROM mart")
            == [(9,)]
            == rows(project, "SELECT n FROM month")
        )
        run(project, "raw", partition="2026-01-03").raise_for_status()  # the same rows again
        assert set(states(project, "mart").values()) == {"materialized"}


def test_today_without_its_file_leaves_what_needs_it_only(
    tmp_path: Path, spark: SparkSession
) -> None:
    interval = (
        "MODEL (name main.interval, kind INCREMENTAL_BY_TIME_RANGE (time_column day), "
        "start '2026-01-01');\nSELECT day, n FROM raw WHERE day BETWEEN @start_ds AND @end_ds"
    )
    readers = {
        "month": "-- partitioned monthly\nSELECT count(*) AS n FROM raw",
        "today": "-- partitioned daily\nSELECT count(*) AS n FROM raw WHERE day = '{partition}'",
        "total": "SELECT count(*) AS n FROM interval",
        "every": "SELECT count(*) AS n FROM raw",
    }
    with project_of(tmp_path, spark, **readers) as project:
        (project.settings.root / "models" / "interval.sql").write_text(interval)
        for day in range(1, 5):
            write_day(project, f"2026-01-0{day}", 1, 2)
    with Project.load(tmp_path / "p", spark=spark) as project:
        result = run(project)
        assert result.exit_code == 1
        assert ends(result, "raw")["2026-01-05"] == "failed"
        assert ends(result, "today") == {"2026-01-05": "skipped"}
        assert ends(result, "every") == {None: "skipped"}
        assert ends(result, "month") == {"2026-01": "done"}
        assert set(ends(result, "interval").values()) == {"done"}
        assert ends(result, "total") == {None: "done"}
        assert (
            rows(project, "SELECT n FROM month") == [(8,)] == rows(project, "SELECT n FROM total")
        )


def test_what_is_missing_above_is_made_first_or_waited_for(
    tmp_path: Path, spark: SparkSession
) -> None:
    week = (
        "-- partitioned daily\nSELECT count(*) AS n FROM raw "
        "WHERE day >= date_sub('{partition}', 2) AND day <= '{partition}'"
    )
    with project_of(tmp_path, spark, week=week) as project:
        for day in range(1, 6):
            write_day(project, f"2026-01-0{day}", 1)
        alone = run(project, "week", partition="2026-01-04")
        assert ends(alone, "week") == {"2026-01-04": "waiting"}
        assert states(project, "week") == {"2026-01-04": "waiting"}
        made = run(project, "week", partition="2026-01-04", upstream=True).raise_for_status()
        assert list(ends(made, "raw")) == ["2026-01-02", "2026-01-03", "2026-01-04"]
        assert rows(project, "SELECT n FROM week") == [(3,)]
        missing = run(project, "week", partition="2026-01-05", allow_missing=True)
        assert ends(missing, "week") == {"2026-01-05": "done"}
        reasons = {each.slice: each.reason for each in project.status("week")[0].slices}
        lack = "made with --allow-missing: raw 2026-01-05 missing"
        assert reasons == {"2026-01-04": None, "2026-01-05": lack}
        run(project, "raw", partition="2026-01-05").raise_for_status()
        assert states(project, "week")["2026-01-05"] == "behind"
