"""Which models an environment makes itself, and what others it reads. No Spark.

Tests ``model/definition/own_tables.py`` as well.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from penstock import Lake
from penstock.errors import ArgumentError, ModelError
from penstock.project.project import Project
from tests.engine.toy import CONFIG, write_project

DEV = '[environments.dev]\nschema_suffix = "_dev"\nreads = "default"\n'
HEADER = "-- pipeline\n-- materialize ducklake://main/{0}\n"
SCRIPTS = {
    f"models/{name}": HEADER.format(name) + query
    for name, query in {
        "raw": "SELECT 1 AS id",
        "daily": "-- data_test relationships id -> ducklake://main/raw.id\nSELECT id FROM raw",
        "totals": "-- on ducklake://main/daily\nSELECT count(*) AS n FROM main.daily",
        "twice": "SELECT d.id FROM daily AS d JOIN Raw USING (id)",
    }.items()
}
SCRIPTS["models/part"] = "MODEL (name main.part, kind EMBEDDED);\nSELECT id FROM raw"
SCRIPTS["models/outer"] = HEADER.format("outer") + "SELECT id FROM part"
SCRIPTS["models/step.py"] = """
# pipeline
# materialize ducklake://main/step
# on ducklake://main/raw
import penstock
import pyarrow

def main(raw: pyarrow.Table):
    return penstock.lake("main").read("daily")
"""
SCRIPTS["models/by_hand"] = (
    "-- pipeline\n-- materialize manual ducklake://main/by_hand\nDELETE FROM by_hand"
)
Made = Callable[..., Project]


@pytest.fixture
def dev(tmp_path: Path) -> Made:
    """The project in the environment, where these tables are in the lake."""

    def load(*tables: str, scripts: Mapping[str, str] = SCRIPTS, config: str = DEV) -> Project:
        root = write_project(tmp_path / "shop", scripts, CONFIG + config)
        if tables:
            place = root / "lake"
            uri = f"ducklake:sqlite:{place / 'meta.sqlite'}"
            with Lake.attach(uri, data_path=str(place / "data")) as lake:
                for table in tables:
                    lake.sql(f"CREATE SCHEMA IF NOT EXISTS {table.partition('.')[0]}")
                    lake.sql(f"CREATE TABLE {table} (id BIGINT)")
        return Project.load(root, environment="dev")

    return load


def targets(project: Project) -> dict[str, str]:
    return {m.name: m.target.qualified for m in project.models if m.strategy.runs}


def read(project: Project, name: str) -> list[str]:
    return [table.qualified for table in project.model(name).inputs]


def test_without_own_tables_all_are_read_where_they_are(dev: Made) -> None:
    with dev("main.raw") as project:
        assert targets(project)["daily"] == "main.daily"
        assert not project.model("daily").own
        assert project.model("part").own  # it has no table


def test_a_model_that_is_run_is_its_own_and_reads_the_others(dev: Made) -> None:
    with dev("main.raw", "main.daily") as project:
        plan = project.plan("daily")
        assert [str(step.model.target) for step in plan.steps] == ["main.main_dev.daily"]
        assert read(project, "daily") == ["main.raw"]
        assert plan.notices == ("read from environment default: main.raw",)


def test_a_table_that_is_there_is_read_by_all_own_models(dev: Made) -> None:
    with dev("main.raw", "main_dev.raw") as project:
        project.plan("daily", "twice", "outer")
        assert read(project, "daily") == ["main_dev.raw"]
        assert read(project, "twice") == ["main_dev.daily", "main_dev.raw"]
        assert read(project, "outer")[-1] == "main_dev.raw"
        assert project.model("daily").test_reads == project.model("daily").reads
        assert read(project, "totals") == ["main.daily"]  # not run: as the others have it


def test_what_a_run_makes_is_read_by_its_other_steps(dev: Made) -> None:
    with dev("main.raw") as project:
        plan = project.plan("+totals")
        assert [step.name for step in plan.steps] == ["raw", "daily", "totals"]
        assert all(step.model.target.schema == "main_dev" for step in plan.steps)
        assert plan.notices == ()


def test_the_next_request_begins_from_what_is_there(dev: Made) -> None:
    with dev("main.raw", "main.daily") as project:
        project.plan("raw")
        project.plan("daily")
        assert read(project, "daily") == ["main.raw"]
        project.status()
        assert not project.model("daily").own


def test_a_definition_changes_with_what_its_names_mean(dev: Made) -> None:
    with dev("main.raw") as project:
        project.plan("daily")
        alone = project.model("daily").definition_hash
        project.plan("raw", "daily")
        assert project.model("daily").definition_hash != alone


def test_a_python_step_reads_by_its_helpers_what_queries_read(dev: Made) -> None:
    with dev("main_dev.daily") as project:
        project.plan("step")
        assert read(project, "step") == ["main.raw", "main_dev.daily"]


def test_without_reads_every_table_is_its_own(dev: Made) -> None:
    with dev("main.raw", config='[environments.dev]\nschema_suffix = "_dev"\n') as project:
        assert targets(project)["raw"] == "main_dev.raw"
        assert read(project, "daily") == ["main_dev.raw"]


def test_statements_that_name_their_table_stay_with_the_other(dev: Made) -> None:
    with dev("main.raw") as project:
        with pytest.raises(ArgumentError, match="its statements write what they name"):
            project.plan("by_hand")
        assert "by_hand" not in [step.name for step in project.plan().steps]


@pytest.mark.parametrize("change", ["drop", "adopt"])
def test_tables_of_others_are_not_changed(dev: Made, change: str) -> None:
    with dev("main.raw", "main.daily") as project:
        said = r"environment dev does not change main\.daily, which it only reads"
        with pytest.raises(ArgumentError, match=said):
            getattr(project, change)("daily")
        with pytest.raises(ArgumentError, match=said):
            project.rollback("daily", 1)


def test_names_of_queries_mean_own_tables(dev: Made) -> None:
    with dev("main.raw", "main_dev.raw") as project:
        assert [str(table.name) for table in project.explain("SELECT * FROM raw").tables] == [
            "main.main_dev.raw"
        ]


def test_a_schema_with_the_suffix_that_models_have_is_refused(dev: Made) -> None:
    other = {"models/x": "MODEL (name main_dev.x, kind FULL);\nSELECT 1 AS id"}
    with pytest.raises(ModelError, match="would make"):
        dev(scripts={**SCRIPTS, **other})
