"""A table or a slice is dropped with its records; earlier snapshots keep it.

Tests ``cli/drop.py`` (what the command asks and says).
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from penstock.cli.main import main
from penstock.errors import ArgumentError, TableNotFound
from penstock.project.project import Project
from tests.engine.toy import rows, step, write_project

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DAILY = """
    -- pipeline
    -- partitioned daily
    -- materialize ducklake://main/t
    SELECT id, '{partition}' AS made FROM range(2)
"""
COUNT = "SELECT made, count(*) AS n FROM t GROUP BY made ORDER BY made"
DAYS = ("2026-01-01", "2026-01-02")


@pytest.fixture
def project(tmp_path: Path, spark: SparkSession) -> Iterator[Project]:
    """A table of two days."""
    with Project.load(write_project(tmp_path / "toy", {"models/t": DAILY}), spark=spark) as made:
        for day in DAYS:
            made.run(day)
        yield made


@pytest.mark.spark
def test_a_slice_is_dropped_without_spark(project: Project) -> None:
    with Project.load(project.settings.root) as other:
        dropped = other.drop("t", DAYS[0])
        assert not other.context.connections.has_session
        assert (dropped.slices, dropped.rows, dropped.snapshot_id) == ((DAYS[0],), 2, 3)
        assert [slice_.slice for slice_ in other.status("t")[0].slices] == [DAYS[1]]
    assert rows(project, COUNT) == [(DAYS[1], 2)]
    assert len(rows(project, "SELECT * FROM t AT (VERSION => 2)")) == 4
    with pytest.raises(ArgumentError, match="has no slice '2026-01-01'") as caught:
        project.drop("t", DAYS[0])
    assert str(caught.value.hint) == "its slices are 2026-01-02"
    assert step(project.run(DAYS[0]), "t").state == "done"


@pytest.mark.spark
def test_what_was_made_from_a_slice_that_is_dropped_is_behind(
    tmp_path: Path, spark: SparkSession
) -> None:
    """The same after the days were made at once, by time."""
    by_time = "MODEL (name main.b, kind INCREMENTAL_BY_TIME_RANGE (time_column made), start "
    by_time += f"'{DAYS[0]}');\nSELECT made, count(*) AS n FROM t WHERE made BETWEEN @start_ds AND "
    by_time += "@end_ds GROUP BY made"
    of = "-- pipeline\n-- partitioned daily\n-- materialize ducklake://main/c\n"
    of += "SELECT n, made FROM b WHERE made = '{partition}'"
    scripts = {"models/t": DAILY, "models/b": by_time, "models/c": of}
    days = {"from_": DAYS[0], "to": DAYS[1]}

    def behind(project: Project, model: str) -> dict[str | None, str | None]:
        slices = project.status(model)[0].slices
        return {each.slice: each.reason for each in slices if each.state == "behind"}

    with Project.load(write_project(tmp_path / "toy", scripts), spark=spark) as project:
        project.run(**days)  # type: ignore[arg-type] # two of its many options
        at = project.drop("b", DAYS[1]).snapshot_id
        reason = f"b {DAYS[1]}: snapshot {at}, read 3"
        assert (behind(project, "b"), behind(project, "c")) == ({}, {DAYS[1]: reason})
        at = project.drop("t", DAYS[0]).snapshot_id
        reason = f"t {DAYS[0]}: snapshot {at}, read 2"
        assert behind(project, "b") == {DAYS[0]: reason}
        assert project.run(**days).state == "done"  # type: ignore[arg-type] # two of its options
        assert (behind(project, "b"), behind(project, "c")) == ({}, {})


@pytest.mark.spark
def test_a_table_is_dropped_and_made_again(project: Project) -> None:
    dropped = project.drop("t")
    assert (dropped.table, dropped.slices, dropped.rows) == ("main.t", DAYS, 4)
    assert project.status("t")[0].slices == ()
    assert len(rows(project, "SELECT * FROM t AT (VERSION => 2)")) == 4
    with pytest.raises(TableNotFound, match=r"table main\.t does not exist"):
        project.drop("t")
    monthly = {"models/t": DAILY.replace("daily", "monthly")}
    with Project.load(
        write_project(project.settings.root, monthly), spark=project.context.session()
    ) as other:
        assert other.run("2026-01").state == "done"


@pytest.mark.spark
def test_records_of_a_table_that_is_gone_are_forgotten(project: Project) -> None:
    project.sql("DROP TABLE t")
    dropped = project.drop("t")
    assert (dropped.rows, dropped.snapshot_id) == (0, None)
    assert project.status("t")[0].slices == ()


@pytest.mark.spark
def test_the_command_asks_first(project: Project) -> None:
    arguments = ["drop", "t", "--project", str(project.settings.root)]
    refused = CliRunner().invoke(main, arguments)
    assert refused.exit_code == 2
    assert "to drop it: --yes" in refused.stderr
    done = CliRunner().invoke(main, [*arguments, "--yes", "--slice", DAYS[1], "--json"])
    assert json.loads(done.stdout) == {
        "schema_version": 1,
        "table": "main.t",
        "slices": [DAYS[1]],
        "rows": 2,
        "snapshot_id": 3,
        "files": False,
    }
    done = CliRunner().invoke(main, [*arguments, "--yes"])
    assert done.stdout == "dropped main.t at snapshot 4: 2 rows\n"


def test_killed_before_statements_it_leaves_table_and_records_alike(tmp_path: Path) -> None:
    uri = f"ducklake:sqlite:{tmp_path / 'meta.sqlite'}"
    # It forks, which this process with its threads had better not.
    command = [sys.executable, "-m", "tests.engine.killed", uri, str(tmp_path / "data")]
    root = Path(__file__).parents[3]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("killed at") == 3
