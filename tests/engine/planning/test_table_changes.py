"""Rows that DuckDB adds to a table, or removes: which slices of its readers that puts behind.

Tests ``lakes/reading/column_values.py`` and ``model/slicing/table_reads.py``.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import pytest
from pyspark.sql import SparkSession

from penstock.model.slicing.table_reads import table_reads_of
from penstock.project.project import Project
from tests import duck
from tests.engine.toy import write_project

HEAD = "-- pipeline\n-- materialize ducklake://main/"
BOUNDED = "SELECT id, ds FROM events WHERE ds >= '{partition}' AND ds < date_add('{partition}', 1)"
SCRIPTS = {
    "models/day": f"{HEAD}day\n-- partitioned daily start=2026-01-01\n{BOUNDED}",
    "models/seen": f"{HEAD}seen\n-- partitioned daily start=2026-01-01\nSELECT id FROM events",
    "models/every": f"{HEAD}every\n-- partitioned daily start=2026-01-01\n"
    "-- needs main.events all\nSELECT id FROM events",
    "models/late": f"{HEAD}late\n-- partitioned daily start=2026-01-01\n-- late run\n{BOUNDED}",
    "models/total": f"{HEAD}total\nSELECT count(*) AS n FROM events",
}
NOW = datetime(2026, 1, 4, 12, tzinfo=UTC)


def test_a_value_bounds_no_moments_of_a_table_that_no_model_makes(tmp_path: Path) -> None:
    query = "SELECT t FROM events WHERE t = '{partition}'"
    heads = {"dynamic": 'dynamic key="$.t"', "daily": "daily start=2026-01-01"}
    scripts = {
        f"models/{name}": f"{HEAD}{name}\n-- partitioned {kind}\n{query}"
        for name, kind in heads.items()
    }
    reads = table_reads_of(Project.load(write_project(tmp_path / "p", scripts)).models)
    assert {name: each.only_asked for name, (each,) in reads.items()} == {
        "dynamic": True,
        "daily": False,
    }


def lake_of(root: Path, inline: int = 0) -> AbstractContextManager[duckdb.DuckDBPyConnection]:
    uri = f"ducklake:sqlite:{root}/p/lake/meta.sqlite"
    return duck.attach(uri, root / "p" / "lake" / "data", inline=inline)


@pytest.fixture
def project(tmp_path: Path, spark: SparkSession) -> Iterator[Project]:
    duck.required()
    root = write_project(tmp_path / "p", SCRIPTS)
    (root / "lake").mkdir()
    with lake_of(tmp_path) as writer:
        writer.execute(
            "CREATE TABLE events AS SELECT d AS id, DATE '2026-01-01' + d::INT AS ds "
            "FROM range(3) AS _(d)"
        )
    with Project.load(root) as project:
        assert project.run(from_="2026-01-01", to="2026-01-03").state == "done"
        yield project


def behind(project: Project, model: str) -> dict[str | None, str | None]:
    slices = project.status(model)[0].slices
    return {each.slice: each.reason for each in slices if each.state == "behind"}


def test_late_rows_put_their_days_behind_and_no_others(project: Project, tmp_path: Path) -> None:
    assert (behind(project, "day"), behind(project, "total")) == ({}, {})
    with lake_of(tmp_path) as writer:
        writer.execute("INSERT INTO events VALUES (7, DATE '2026-01-02')")
    late = {"2026-01-02": "late rows in main.events: 1 file"}
    assert (behind(project, "day"), behind(project, "seen")) == (late, {})
    assert list(behind(project, "every")) == ["2026-01-01", "2026-01-02", "2026-01-03"]
    assert "main.events: snapshot" in (behind(project, "every")["2026-01-01"] or "")
    assert list(behind(project, "total")) == [None]
    everything = {"from_": "2026-01-01", "to": "2026-01-03"}
    for asked in (dict[str, str](), {"partition": "2026-01-04"}, everything):
        (step,) = project.plan("late", fire_time=NOW, **asked).steps  # type: ignore[arg-type] # of any
        days = [] if "from_" in asked else ["2026-01-04"]
        days = days if "partition" in asked else ["2026-01-02", *days]
        assert [each.text for each in step.slices] == days
    plan = project.plan("day", from_="2026-01-01", to="2026-01-03")
    assert "1 late" in str(plan.steps[0].skipped)
    (step,) = project.plan("day", from_="2026-01-01", to="2026-01-03", behind=True).steps
    assert [each.text for each in step.slices] == ["2026-01-02"]
    notice = "day: this run leaves 1 slice behind its input: penstock run day --behind"
    assert project.plan("day", from_="2026-01-01", to="2026-01-01").notices == (notice,)
    (step,) = project.plan("day", behind=True, fire_time=NOW).steps
    assert [each.text for each in step.slices] == ["2026-01-02", "2026-01-04"]
    project.run("day", behind=True, fire_time=NOW)
    assert behind(project, "day") == {}


def test_values_of_a_small_file_say_which_days_it_has(project: Project, tmp_path: Path) -> None:
    with lake_of(tmp_path) as writer:
        writer.execute("INSERT INTO events VALUES (7, DATE '2026-01-01'), (8, DATE '2026-01-03')")
    assert list(behind(project, "day")) == ["2026-01-01", "2026-01-03"]
    with lake_of(tmp_path) as writer:
        writer.execute("CALL ducklake_merge_adjacent_files('lk')")
    assert list(behind(project, "day")) == ["2026-01-01", "2026-01-03"]


def test_rows_that_the_catalog_holds_and_deleted_ones(project: Project, tmp_path: Path) -> None:
    with lake_of(tmp_path, inline=10) as writer:
        writer.execute("INSERT INTO events VALUES (7, DATE '2026-01-02')")
        assert behind(project, "day") == {"2026-01-02": "late rows in main.events: 1 row"}
        writer.execute("CALL ducklake_flush_inlined_data('lk')")
        assert list(behind(project, "day")) == ["2026-01-02"]
    with lake_of(tmp_path) as writer:
        writer.execute("DELETE FROM events WHERE id = 0")
    found = behind(project, "day")
    assert "perhaps late rows" in (found["2026-01-01"] or "")


def test_a_compaction_puts_nobody_behind(project: Project, tmp_path: Path) -> None:
    with lake_of(tmp_path) as writer:
        writer.execute("INSERT INTO events VALUES (9, DATE '2026-02-01')")
    assert behind(project, "day") == {}
    project.run("total")
    with lake_of(tmp_path) as writer:
        writer.execute("CALL ducklake_merge_adjacent_files('lk')")
        writer.execute("CALL ducklake_rewrite_data_files('lk')")
    assert (behind(project, "day"), behind(project, "total")) == ({}, {})
