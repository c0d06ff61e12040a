"""A context never changes, and another one has other models. No Spark."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from pathlib import Path

import pytest

from penstock.errors import ArgumentError, LakeClosed, TableNotFound
from penstock.events import Event, SparkStarting
from penstock.model.values.asset import TableName
from penstock.project.project import Project
from tests.engine.toy import write_project

MODEL = "-- materialize ducklake://main/orders\nSELECT 1 AS id"
OWN = '[environments.dev]\nschema_suffix = "_dev"\nreads = "prod"\n[environments.prod]\n'


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write_project(tmp_path / "toy", {"models/orders": MODEL})


def test_a_context_is_frozen_and_keeps_what_it_derives(root: Path) -> None:
    with Project.load(root) as project:
        context = project.context
        with pytest.raises(FrozenInstanceError):
            context.loaded = context.loaded  # type: ignore[misc]  # that this fails is the test
        assert context.graph is context.graph
        assert context.edges is context.edges
        assert context.with_own(["orders"]) is context  # no environment has tables of its own
        assert context.model("orders") is context.by_name["orders"]
        with pytest.raises(ArgumentError, match="orderz"):
            context.model("orderz")


def test_a_lake_that_no_run_has_built_has_no_catalog(root: Path) -> None:
    with Project.load(root) as project:
        context = project.context
        assert context.catalog("main") is None
        assert context.existing_catalogs() == {}
        assert context.latest_snapshots() == {"main": 0}
        with pytest.raises(TableNotFound, match="lake main does not exist yet"):
            context.catalog_of(TableName("main", "main", "orders"))
    with pytest.raises(LakeClosed):
        context.existing_catalogs()


def test_an_environment_with_tables_of_its_own_has_another_context(root: Path) -> None:
    with (root / "penstock.toml").open("a") as file:
        file.write(OWN)
    with Project.load(root, environment="dev") as project:
        context = project.context
        own = context.with_own(["orders"])
        assert own is not context
        assert str(context.model("orders").target) == "main.orders"
        assert str(own.model("orders").target) == "main.main_dev.orders"
        assert own.with_own(["orders"]) is own
        project.render("orders")
        assert project.context is context  # a preview changes nothing
        project.plan("orders")
        assert project.context.models == own.models


def test_the_sink_of_a_project_may_be_replaced(root: Path) -> None:
    events: list[Event] = []
    with Project.load(root) as project:
        project.on_event = events.append
        event = SparkStarting("local[2]")
        project.context.sink(event)
    assert events == [event]
