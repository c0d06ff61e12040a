"""A materialization of the project: staged, tested and published like any strategy."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.errors import DataTestFailed, StepError
from tests.engine.conftest import Make
from tests.engine.toy import rows, step

CLASS = """
from penstock import CustomMaterialization

class Capped(CustomMaterialization):
    def insert(self, table, df, properties):
        table.append(df.where(df.n < int(properties["most"])))
"""
MODEL = """
MODEL (name s.t, kind CUSTOM (materialization 'Capped', materialization_properties (most = {})),
  audits (number_of_rows(threshold := 1)));
SELECT n FROM VALUES (1), (2), (3) AS v(n)
"""


@pytest.mark.spark
def test_it_stages_within_the_step(make: Make, tmp_path: Path) -> None:
    directory = tmp_path / "toy" / "materializations"
    directory.mkdir(parents=True)
    (directory / "capped.py").write_text(CLASS)
    project = make({"models/t": MODEL.format(3)})
    assert step(project.run(), "t").rows == 2
    assert step(project.run(), "t").rows == 4
    assert rows(project, "SELECT count(*) FROM s.t") == [(4,)]
    assert project.status("t")[0].strategy == "custom"
    wrong = step(make({"models/t": MODEL.format("'x'")}).run(), "t").error
    assert isinstance(wrong, StepError)
    assert "the materialization Capped failed at capped.py:6: ValueError: invalid" in wrong.message
    assert rows(project, "SELECT count(*) FROM s.t") == [(4,)]


@pytest.mark.spark
def test_a_failing_audit_keeps_what_it_staged_from_being_published(
    make: Make, tmp_path: Path
) -> None:
    directory = tmp_path / "toy" / "materializations"
    directory.mkdir(parents=True)
    (directory / "capped.py").write_text(CLASS)
    project = make({"models/t": MODEL.format(0)})
    assert isinstance(step(project.run(), "t").error, DataTestFailed)
    assert project.lake("main").tables() == []
