"""Two environments in one lake: a developer's tables beside those that it reads.

Tests ``engine/session/own_models.py`` and ``model/definition/own_tables.py``.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from penstock.errors import ArgumentError
from penstock.project.project import Project
from tests.engine.toy import CONFIG, write_project

SCRIPTS = {
    "models/raw": """
        -- pipeline
        -- materialize ducklake://main/raw
        -- partitioned daily start=2026-01-01
        SELECT id, '{partition}' AS day FROM range(3)
    """,
    "models/daily": """
        -- pipeline
        -- materialize ducklake://main/daily
        -- partitioned daily start=2026-01-01
        -- data_test relationships id -> ducklake://main/raw.id
        SELECT id, day FROM raw WHERE day = '{partition}'
    """,
    "models/totals": """
        -- pipeline
        -- materialize ducklake://main/totals
        SELECT count(*) AS n FROM daily
    """,
    "models/shown": """
        MODEL (name main.shown, kind VIEW);
        SELECT n FROM totals
    """,
}
ENVIRONMENTS = """
[environments.dev]
schema_suffix = "_dev"
reads = "default"
[environments.bob]
schema_suffix = "_bob"
reads = "default"
"""
DAY = "2026-01-01"


def tables(root: Path, spark: SparkSession) -> set[str]:
    with Project.load(root, spark=spark) as project:
        catalog = project.lake("main").catalog
        latest = catalog.latest().id
        return {f"{t.schema_name}.{t.name}" for t in catalog.tables(latest)} | set(
            catalog.views(latest)
        )


def test_an_environment_makes_its_own_tables_and_reads_the_others(
    spark: SparkSession, tmp_path: Path
) -> None:
    root = write_project(tmp_path / "shop", SCRIPTS, CONFIG + ENVIRONMENTS)
    with Project.load(root, spark=spark) as prod:
        assert prod.run(partition=DAY).state == "done"
    before = tables(root, spark)
    with Project.load(root, spark=spark, environment="dev") as dev:
        plan = dev.plan("daily", partition=DAY)
        assert plan.notices == ("read from environment default: main.raw",)
        assert dev.run("daily", partition=DAY).state == "done"
        assert dev.status("daily")[0].target == "main.main_dev.daily"
        assert dev.run("shown").state == "done"
        assert dev.query("SELECT n FROM shown").rows == ((3,),)
    assert tables(root, spark) - before == {"main_dev.daily", "main_dev.shown"}
    with Project.load(root, spark=spark, environment="bob") as bob:
        assert bob.run("totals+").state == "done"
        with pytest.raises(ArgumentError, match=r"bob does not change main\.daily"):
            bob.drop("daily")
    with Project.load(root, spark=spark) as prod:
        assert {each.model for each in prod.status()} == {"raw", "daily", "totals", "shown"}
        assert not any(step.slices and not step.skipped for step in prod.plan(partition=DAY).steps)
