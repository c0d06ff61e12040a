"""Query forms that read a sliced input: `penstock.model.slicing.windows`, `needs` and what plans
make of them. No slice that differs from a recomputation is called materialized; `python -m
tests.engine.strategies.input_forms` runs all forms.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from penstock.model.slicing.needs import Edge
from penstock.project.project import Project
from tests import duck
from tests.engine.strategies.input_forms import known_cases, scripts_of, silent
from tests.engine.toy import write_project

CASES = known_cases()


def edges_of(root: Path, dialect: str) -> list[Edge]:
    cases = [replace(case, dialect=dialect) for case, _ in CASES]
    scripts = scripts_of(cases)
    unknown = [name for name, text in scripts.items() if dialect == "duckdb" and "LIKE" in text]
    for name in unknown:  # a computed pattern, which DuckDB's dialect does not have
        scripts[name] = scripts_of([case for case, _ in CASES])[name]
    project = Project.load(write_project(root / dialect, scripts))
    return [project.edges[f"r{number}"][0] for number in range(len(cases))]


def test_the_analysis_understands_the_query(tmp_path: Path) -> None:
    edges = edges_of(tmp_path, "spark")
    for edge, (case, is_understood) in zip(edges, CASES, strict=True):
        assert edge.need.in_doubt is not is_understood, f"{case}: {edge.need}"


def test_both_dialects_are_read_alike(tmp_path: Path) -> None:
    both = (edges_of(tmp_path, dialect) for dialect in ("spark", "duckdb"))
    for spark, duckdb, (case, _) in zip(*both, CASES, strict=True):
        assert str(spark.need) == str(duckdb.need), str(case)


def test_a_slice_that_differs_is_not_called_materialized(tmp_path: Path) -> None:
    duck.required()
    assert silent(tmp_path / "f", [case for case, _ in CASES[:: len(CASES) // 9]]) == []
