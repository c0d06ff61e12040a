"""Status sees what others did to tables: by SQL, by DuckDB, by a rollback."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from penstock.project.project import Project
from tests import duck
from tests.engine.toy import write_project

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

SCRIPTS = {
    "models/days": """
        -- pipeline
        -- partitioned daily
        -- materialize ducklake://main/days on_schema_change=warn
        SELECT id, '{partition}' AS made FROM range(100)
    """,
    "models/whole": """
        -- pipeline
        -- materialize ducklake://main/whole
        SELECT id FROM range(100)
    """,
}
MADE = {"2026-01-01": "materialized", "2026-01-02": "materialized", None: "materialized"}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Iterator[Project]:
    root = write_project(tmp_path_factory.mktemp("outside") / "toy", SCRIPTS)
    with Project.load(root, spark=spark) as made:
        yield made


@pytest.fixture(autouse=True)
def two_days(project: Project) -> None:
    """Each test begins with all of it as the models have it."""
    for day in ("2026-01-01", "2026-01-02"):
        project.run(day)


def states(project: Project) -> dict[str | None, str]:
    """The states by slice, None for the whole table."""
    by_slice: dict[str | None, str] = {}
    for model in project.status():
        for slice_ in model.slices:
            at = "" if slice_.outside_snapshot is None else f" {slice_.outside_snapshot}"
            by_slice[slice_.slice] = slice_.state + at
    return by_slice


def latest(project: Project) -> int:
    return project.snapshots()[0].id


def by_duckdb(project: Project, *statements: str) -> None:
    duck.required()
    with duck.attach(project.lake("main").catalog.uri) as connection:
        for statement in statements:
            connection.execute(statement)


def test_what_runs_made_is_materialized(project: Project) -> None:
    assert states(project) == MADE
    project.lake("main").merge_adjacent_files()
    assert states(project) == MADE


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM days WHERE made = '2026-01-01' AND id = 3",  # in the catalog
        "DELETE FROM days WHERE made = '2026-01-01' AND id < 50",  # in a delete file
        "INSERT INTO days BY NAME (SELECT 1 AS id, '2026-01-01' AS _wm_partition)",
    ],
)
def test_a_slice_that_duckdb_changed(project: Project, statement: str) -> None:
    by_duckdb(project, statement)
    assert states(project) == MADE | {"2026-01-01": f"changed outside {latest(project)}"}


def test_a_column_added_changes_every_slice(project: Project) -> None:
    project.sql("ALTER TABLE days ADD COLUMN note VARCHAR")
    said = f"changed outside {latest(project)}"
    assert states(project) == MADE | {"2026-01-01": said, "2026-01-02": said}


def rolled_back(project: Project) -> None:
    lake = project.lake("main")
    lake.sql("DELETE FROM whole WHERE id < 50")
    before = latest(project)
    lake.sql("DELETE FROM whole WHERE id < 60")
    lake.sql(f"CALL rollback_to_snapshot('whole', {before})")


def dropped(project: Project) -> None:
    by_duckdb(project, "DROP TABLE whole")


def made_anew(project: Project) -> None:
    by_duckdb(project, "CREATE OR REPLACE TABLE whole AS SELECT 7 AS id")


@pytest.mark.parametrize("act", [rolled_back, dropped, made_anew])
def test_a_table_that_others_changed(project: Project, act: Callable[[Project], None]) -> None:
    act(project)
    assert states(project) == MADE | {None: f"changed outside {latest(project)}"}


def test_a_table_of_a_model_that_is_no_more(project: Project, tmp_path: Path) -> None:
    script = project.settings.root / "models" / "whole.sql"
    text = script.read_text()
    script.unlink()
    try:
        with Project.load(project.settings.root) as other:
            (days, whole) = other.status()
    finally:
        script.write_text(text)
    assert (days.model, days.state) == ("days", "materialized")
    assert (whole.model, whole.target, whole.state) == (None, "main.whole", "no model")


def test_what_only_an_expired_snapshot_tells_is_not_known(project: Project) -> None:
    deleted = "DELETE FROM days WHERE made = '2026-01-01' AND id = 4"
    by_duckdb(project, deleted, "CREATE TABLE apart (id INTEGER)")
    assert states(project)["2026-01-01"].startswith("changed outside")
    project.lake("main").sql("CALL ducklake_expire_snapshots('main', older_than => now())")
    assert states(project)["2026-01-01"] == "materialized"
