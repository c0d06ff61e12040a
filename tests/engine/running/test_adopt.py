"""Tables that others filled: a run does not replace their rows, and `penstock adopt` takes them.

Tests ``cli/adopt.py`` (the command, with --dry-run and as JSON).
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from penstock.cli.main import main
from penstock.errors import ArgumentError, DefinitionChanged, PenstockError, TableNotFound
from penstock.project.project import Project
from tests.engine.toy import rows, step, write_project

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

SCRIPTS = {
    "models/whole": "-- materialize ducklake://main/whole\nSELECT 9 AS id",
    "models/days": """
        -- partitioned daily
        -- materialize ducklake://main/days
        SELECT 9 AS id, '{partition}' AS day
    """,
    "models/times": """
        MODEL (name main.times, kind INCREMENTAL_BY_TIME_RANGE (time_column d),
          start '2024-01-01');
        SELECT d, n FROM VALUES (DATE '2024-01-03', 3), (DATE '2024-01-04', 4) AS s(d, n)
        WHERE d BETWEEN @start_date AND @end_date
    """,
    "models/merged": "-- materialize ducklake://main/merged key=id\nSELECT 9 AS id",
    "models/versions": "-- materialize ducklake://main/versions key=id history\nSELECT 9 AS id",
    "models/seen": "MODEL (name main.seen, kind VIEW);\nSELECT 9 AS id",
    "models/gone": "-- materialize ducklake://main/gone\nSELECT 9 AS id",
    "models/none": "-- materialize ducklake://main/none append\nSELECT 9 AS id",
}
TABLES = """
    CREATE TABLE whole (id INT);
    INSERT INTO whole VALUES (1);
    CREATE TABLE days (id INT, day VARCHAR, _wm_partition VARCHAR);
    INSERT INTO days VALUES (1, 'a', '2024-01-01'), (2, 'b', '2024-01-02'), (3, 'c', '2024-01-02');
    CREATE TABLE times (d DATE, n INT);
    INSERT INTO times VALUES (DATE '2023-12-31', 0), (DATE '2024-01-01', 1), (DATE '2024-01-02', 2);
    CREATE TABLE merged (id INT);
    INSERT INTO merged VALUES (1), (1);
    CREATE TABLE versions (id INT);
    INSERT INTO versions VALUES (1);
    CREATE TABLE none (id INT)
"""
NOW = datetime(2024, 1, 5, 1, tzinfo=UTC)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Iterator[Project]:
    root = write_project(tmp_path_factory.mktemp("adopt") / "toy", SCRIPTS)
    with Project.load(root, spark=spark) as made:
        for statement in TABLES.split(";"):
            made.lake("main").sql(statement)
        yield made


def adopt(root: Path, *arguments: str) -> Any:
    result = CliRunner().invoke(main, ["adopt", *arguments, "--project", str(root), "--json"])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_rows_of_others_are_not_replaced(project: Project) -> None:
    result = project.run(select=["whole", "times"], fire_time=NOW)
    in_a_range = project.run(select="days", from_="2024-01-01", to="2024-01-02")
    for made in (*result.steps, *in_a_range.steps):
        name, error = made.name, made.error
        assert isinstance(error, DefinitionChanged), name
        assert "that no run has written" in error.message
        assert f"penstock adopt {name}" in str(error.hint)
    assert rows(project, "SELECT id FROM days ORDER BY id") == [(1,), (2,), (3,)]


def test_intervals_are_adopted_and_runs_continue_behind_them(project: Project) -> None:
    root = project.settings.root
    said = adopt(root, "times", "--until", "2024-01-01", "--dry-run")
    assert said["slices"] == [{"slice": "2023-12-31 to 2024-01-01", "rows": 2}]
    assert project.status("times")[0].state != "materialized"
    said = adopt(root, "times", "--until", "2024-01-01")
    said = adopt(root, "times")
    assert said["slices"] == [{"slice": "2024-01-02", "rows": 1}]
    result = project.run(select="times", fire_time=NOW)
    assert [(each.slice, each.state) for each in result.steps] == [
        ("2024-01-03 to 2024-01-04", "done")
    ]
    assert rows(project, "SELECT n FROM times ORDER BY n") == [(0,), (1,), (2,), (3,), (4,)]
    with pytest.raises(ArgumentError, match="nothing to adopt"):
        project.adopt("times", "2024-01-04")


def test_slices_and_whole_tables_are_adopted(project: Project) -> None:
    root = project.settings.root
    assert adopt(root, "days", "--until", "2024-01-01")["slices"] == [
        {"slice": "2024-01-01", "rows": 1}
    ]
    adopt(root, "days")
    result = project.run(select="days", from_="2024-01-01", to="2024-01-03")
    assert [each.slice for each in result.steps if each.state == "done"] == ["2024-01-03"]
    assert rows(project, "SELECT id FROM days ORDER BY id") == [(1,), (2,), (3,), (9,)]
    adopt(root, "whole")
    assert project.run(select="whole").state == "done"
    project.lake("main").sql("DROP TABLE whole")
    project.lake("main").sql("CREATE TABLE whole AS SELECT 5 AS id")
    result = project.run(select="whole")
    assert isinstance(step(result, "whole").error, DefinitionChanged), "it is another table"
    assert [each.rows for each in project.adopt("whole").slices] == [1]
    assert project.run(select="whole", full_refresh=True).state == "done"


@pytest.mark.parametrize(
    ("model", "until", "kind", "message"),
    [
        ("merged", None, DefinitionChanged, "1 key shared by several rows"),
        ("versions", None, DefinitionChanged, "is not a history"),
        ("seen", None, ArgumentError, "is a view"),
        ("none", None, ArgumentError, "has no rows"),
        ("merged", "2024-01-01", ArgumentError, "has no slices of time"),
        ("times", "soon", ArgumentError, "'soon' is not a moment"),
        ("gone", None, TableNotFound, "there is no table"),
    ],
)
def test_what_cannot_be_adopted(
    project: Project, model: str, until: str | None, kind: type[PenstockError], message: str
) -> None:
    with pytest.raises(kind) as raised:
        project.adopt(model, until)
    assert message in raised.value.message
    assert raised.value.hint


def test_a_command_of_its_own_starts_spark(project: Project) -> None:
    """In a process that has no session yet, as on the command line."""
    code = "from penstock.cli.main import main; main()"
    arguments = ["adopt", "days", "--dry-run", "--project", str(project.settings.root)]
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False
    )
    assert "internal error" not in done.stderr
    assert "nothing to adopt" in done.stderr or done.returncode == 0
