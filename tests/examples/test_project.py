"""The example as a project; no Spark."""

from __future__ import annotations

from itertools import product
from pathlib import Path

from penstock import Project
from tests.examples.conftest import copy_of_example


def test_it_shows_every_strategy_on_both_units(tmp_path: Path) -> None:
    models = Project.load(copy_of_example(tmp_path)).models
    shown = {(model.strategy.name, model.partition is not None) for model in models}
    assert shown == set(product(("replace", "append", "merge"), (True, False)))


def test_it_checks_without_a_warning(tmp_path: Path) -> None:
    project = Project.load(copy_of_example(tmp_path))
    assert list(project.check()) == []
    assert [warning for model in project.models for warning in model.warnings] == []
