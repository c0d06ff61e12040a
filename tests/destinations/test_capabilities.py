"""What a destination cannot do is refused in words, before anything runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.destinations.capabilities import DUCKLAKE, Capabilities, refusals
from penstock.engine.planning.make_plan import make_plan
from penstock.engine.planning.plan import Known
from penstock.engine.planning.slices import RunRequest
from penstock.errors import ArgumentError
from penstock.model.values.strategy import Capability
from penstock.project.project import Project
from tests.engine.toy import write_project

FILES = Capabilities("Files", frozenset({Capability.SLICES}))
HEADER = "-- pipeline\n{}\nSELECT id FROM source\n"
KIND = "MODEL (name main.t, kind {});\nSELECT id FROM source\n"
SCRIPTS = {
    "merge rows by key": HEADER.format("-- materialize ducklake://main/t key=id"),
    "close versions of rows": HEADER.format("-- materialize ducklake://main/t key=id history"),
    "keep views": KIND.format("VIEW"),
    "record what a run did": HEADER.format("-- materialize ducklake://main/t append"),
    "run SQL statements": HEADER.format("-- materialize manual ducklake://main/t"),
}


def project_of(root: Path, script: str) -> Project:
    return Project.load(write_project(root / "p", {"models/t": script}))


@pytest.mark.parametrize(("ability", "script"), SCRIPTS.items())
def test_what_a_strategy_needs(tmp_path: Path, ability: str, script: str) -> None:
    (model,) = project_of(tmp_path, script).models
    (refused,) = refusals([model], {"main": FILES})
    assert f"main is a destination of the kind Files, which cannot {ability}" in refused.message
    assert f"a model of the strategy {model.strategy}, needs that" in refused.message
    assert refused.location == model.place("target")
    assert list(refusals([model], {"main": DUCKLAKE})) == []


def test_what_replaces_a_table_or_its_slices_needs_little(tmp_path: Path) -> None:
    daily = HEADER.format("-- partitioned daily\n-- materialize ducklake://main/t")
    (model,) = project_of(tmp_path, daily).models
    assert list(refusals([model], {"main": FILES})) == []
    (refused,) = refusals([model], {"main": Capabilities("Nothing", frozenset())})
    assert "cannot replace one slice of a table" in refused.message


def test_changes_are_those_of_the_input(tmp_path: Path) -> None:
    header = "-- materialize ducklake://main/t key=id\n-- incremental changes"
    (model,) = project_of(tmp_path, HEADER.format(header)).models
    (refused,) = refusals([model], {"main": Capabilities("Files", frozenset({Capability.MERGE}))})
    assert "cannot tell which rows of a table changed" in refused.message


def test_a_plan_is_refused(tmp_path: Path) -> None:
    project = project_of(tmp_path, SCRIPTS["merge rows by key"])
    by_name = {model.name: model for model in project.models}
    known = Known(destinations={"main": FILES})
    with pytest.raises(ArgumentError, match="cannot merge rows by key"):
        make_plan(by_name, project.graph, RunRequest(), known)
