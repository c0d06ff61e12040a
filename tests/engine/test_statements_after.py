"""Statements that follow the query of a MODEL: in the step's transaction, before its audits."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.errors import DataTestFailed, ModelError
from penstock.project.project import Project
from tests.engine.conftest import Make
from tests.engine.toy import rows, step, write_project

MODEL = """
MODEL (name main.t, kind {kind}, dialect {dialect}, audits (not_null(columns := (id, n))));
SELECT id, CAST(id * 2 AS BIGINT) AS n FROM (VALUES (1), (2), (3)) AS v(id);
{after}
"""
AFTER = "DELETE FROM @this_model WHERE id = 3;\nUPDATE main.t SET n = n + 1 WHERE id = 1"


@pytest.mark.spark
@pytest.mark.parametrize("dialect", ["spark", "duckdb"])
def test_they_change_what_is_published(make: Make, dialect: str) -> None:
    project = make({"models/t": MODEL.format(kind="FULL", dialect=dialect, after=AFTER)})
    for _ in range(2):  # a second run does not add to the first one's
        result = project.run(force=True)
        assert step(result, "t").rows == 2, step(result, "t").reason
        assert rows(project, "SELECT * FROM t ORDER BY id") == [(1, 3), (2, 4)]


@pytest.mark.spark
def test_audits_see_what_they_left(make: Make) -> None:
    bad = "UPDATE main.t SET n = NULL WHERE id = 1"
    project = make({"models/t": MODEL.format(kind="FULL", dialect="spark", after=bad)})
    assert isinstance(step(project.run(), "t").error, DataTestFailed)
    assert not project.lake("main").table("main.t").exists()


@pytest.mark.spark
def test_an_error_has_its_place(make: Make) -> None:
    wrong = "DELETE FROM main.t\nWHERE nope = 1"
    project = make({"models/t": MODEL.format(kind="FULL", dialect="spark", after=wrong)})
    error = step(project.run(), "t").error
    assert error is not None
    assert error.location is not None
    assert error.location.line in {3, 4}


@pytest.mark.parametrize(
    "text",
    [
        "MODEL (name main.t, kind VIEW);\nSELECT 1 AS a;\nDELETE FROM main.t",
        "MODEL (name main.t, kind FULL);\nDELETE FROM main.t;\nSELECT 1 AS a",
        "-- pipeline\n-- materialize ducklake://main/t\nSELECT 1 AS a;\nDELETE FROM main.t",
    ],
)
def test_where_none_may_stand(tmp_path: Path, text: str) -> None:
    with pytest.raises(ModelError, match="DELETE writes, and a managed script only reads"):
        Project.load(write_project(tmp_path / "toy", {"models/t": text}))


def test_what_they_read_runs_before(tmp_path: Path) -> None:
    after = "DELETE FROM main.t WHERE id IN (SELECT id FROM main.gone)"
    scripts = {
        "models/t": MODEL.format(kind="FULL", dialect="spark", after=after),
        "models/z": "MODEL (name main.gone, kind FULL);\nSELECT 1 AS id",
    }
    with Project.load(write_project(tmp_path / "toy", scripts)) as project:
        assert project.graph.order() == ("z", "t")
