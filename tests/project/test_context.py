"""A context never changes, and another one has other models. No Spark."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from pathlib import Path

import pytest
from bench import known_slices

from penstock.errors import ArgumentError, LakeClosed, TableNotFound
from penstock.events import Event, SparkStarting
from penstock.model.definition.by_model import ByModel
from penstock.model.slicing.needs import edges_of
from penstock.model.slicing.table_reads import table_reads_of
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


def test_a_plan_derives_only_what_it_is_of(tmp_path: Path) -> None:
    known_slices.make(tmp_path / "toy", 60, 2)
    with Project.load(tmp_path / "toy") as project:
        context = project.context
        plan = project.plan("g0/m0002")
        above = {"g0/m0002", *context.graph.upstream("g0/m0002")}
        assert [step.name for step in plan.steps] == ["g0/m0002"]
        for values in (context.edges, context.table_reads, context.fingerprints):
            assert isinstance(values, ByModel)
            assert values.derived <= above
        _, known = context.lineage(above)
        assert len(known.tables) == len(above) < len(context.lineage()[1].tables) == 60


def test_a_small_project_learns_all_of_its_queries_at_once(tmp_path: Path) -> None:
    known_slices.make(tmp_path / "toy", 20, 2)
    with Project.load(tmp_path / "toy") as project:
        assert not isinstance(project.context.edges, ByModel)
        assert not isinstance(project.context.table_reads, ByModel)


def test_edges_and_reads_are_those_of_the_whole_project(tmp_path: Path) -> None:
    known_slices.make(tmp_path / "toy", 60, 2)
    with Project.load(tmp_path / "toy") as project:
        project.plan("g0/m0002")
        context, models = project.context, project.models
        assert context.edges == edges_of(models)
        assert context.table_reads == table_reads_of(models)
        assert context.fingerprints.keys() == context.by_name.keys()
    with Project.load(tmp_path / "toy") as project:  # from the cache
        assert project.edges == context.edges


def test_a_view_of_a_lake_may_read_any_table(tmp_path: Path) -> None:
    known_slices.make(tmp_path / "toy", 60, 2)
    with Project.load(tmp_path / "toy") as project:
        project.context.lake("main").sql("CREATE VIEW seen AS SELECT id FROM m0050")
    with Project.load(tmp_path / "toy") as project:
        _, known = project.context.lineage({"g0/m0000"})
        assert len(known.tables) == 60


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
