"""Macros in DuckDB's dialect are known to `check` once a catalog has them, without Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.errors import ModelError
from penstock.project.project import Project
from tests.engine.toy import write_project

MODEL = """
    -- pipeline
    -- dialect duckdb
    -- materialize ducklake://main/made
    SELECT 1 AS a,
           twice(21) AS b
"""


def test_a_macro_is_known_where_its_catalog_is(tmp_path: Path) -> None:
    root = write_project(tmp_path / "p", {"models/made": MODEL})
    with pytest.raises(ModelError) as caught:
        Project.load(root)
    assert "models/made.sql:5:8: error: the function twice of DuckDB" in str(caught.value)
    with Project.load(write_project(tmp_path / "p", {"models/made": ""})) as project:
        project.lake("main").sql("CREATE MACRO twice(x) AS x * 2")
    with Project.load(write_project(tmp_path / "p", {"models/made": MODEL})) as project:
        assert project.check() == ()
        project.lake("main").sql("CREATE OR REPLACE MACRO twice(x, y) AS x * y")
    with pytest.raises(ModelError) as caught:
        Project.load(root)
    assert "made.sql:5:8: error: the arguments do not fit the macro main.twice" in str(caught.value)
