"""A project that is served follows its files, and keeps its last good version."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from penstock.errors import ConfigError
from penstock.project.context import ProjectContext
from penstock.project.project import Project
from penstock.scheduler.subscription import Subscription
from penstock.server.served_project import ServedProject, digest_files, reload_context
from tests.engine.toy import CONFIG, write_project

ORDERS = "-- pipeline\n-- materialize ducklake://main/orders\nSELECT 1 AS id\n"


def subscribe(context: ProjectContext) -> dict[str, Subscription]:
    return {model.name: Subscription(model.name) for model in context.models}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write_project(tmp_path / "p", {"models/orders": ORDERS})


def served(root: Path, seconds: list[float]) -> ServedProject:
    return ServedProject(Project.load(root).context, subscribe, lambda: seconds[0])


def test_a_new_model_is_served(root: Path) -> None:
    seconds = [0.0]
    project = served(root, seconds)
    (root / "models" / "days.sql").write_text(ORDERS.replace("orders", "days"))
    assert not project.refresh()  # it looked a moment ago
    seconds[0] = 5.0
    assert project.refresh()
    assert sorted(project.version.subscriptions) == ["days", "orders"]
    seconds[0] = 10.0
    assert not project.refresh()


def test_a_project_with_errors_keeps_its_last_version(root: Path) -> None:
    seconds = [0.0]
    project = served(root, seconds)
    connections = project.version.context.connections
    (root / "models" / "bad.sql").write_text("-- pipeline\n-- materialize nothing\nSELECT\n")
    seconds[0] = 5.0
    assert not project.refresh()
    assert project.problem is not None
    assert "bad.sql" in project.problem
    assert sorted(project.version.subscriptions) == ["orders"]
    connections.check_open()
    (root / "models" / "bad.sql").unlink()
    seconds[0] = 10.0
    assert project.refresh()
    assert project.problem is None


def test_other_lakes_need_a_restart(root: Path) -> None:
    context = Project.load(root).context
    (root / "penstock.toml").write_text(CONFIG.replace("meta.sqlite", "other.sqlite"))
    with pytest.raises(ConfigError, match="the lakes or the settings of Spark") as caught:
        reload_context(context)
    assert caught.value.hint == "restart penstock serve"


def test_files_of_lakes_and_caches_do_not_count(root: Path) -> None:
    settings = Project.load(root).context.settings
    before = digest_files(settings)
    for folder in ("lake/data/main", "__pycache__"):
        (root / folder).mkdir(parents=True)
        (root / folder / "a.csv").write_text("1")
    assert digest_files(settings) == before
    os.utime(root / "models" / "orders.sql", ns=(1, 1))
    assert digest_files(settings) != before
