"""Query forms that read a sliced input: `penstock.model.slicing.windows`, `needs` and what plans
make of them. No slice that differs from a recomputation is called materialized; `python -m
tests.engine.strategies.input_forms` runs all forms.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from penstock.engine.planning.behind import Changed, Input, Inputs
from penstock.model.definition.model import Model
from penstock.model.slicing.needs import Edge
from penstock.model.time.interval import Interval
from penstock.model.time.slice import Part, Slice
from penstock.project.project import Project
from tests import duck
from tests.engine.strategies.input_forms import (
    DAY,
    DAYS,
    Corrected,
    known_cases,
    scripts_of,
    silent,
)
from tests.engine.toy import write_project

CASES = known_cases()
#: parts of queries for which a slice may be behind in vain: they look at rows, a type decides what
#: they compare, or the column might be NULL
IN_VAIN = (" AND g", "EXISTS", "a.v <> b.v", "max(d)", "NOT IN", "coalesce(d, '')", "IS NULL")


@pytest.fixture(scope="module")
def edges(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Edge]]:
    """The edges from the reader of each case to its input, by dialects."""
    root = tmp_path_factory.mktemp("forms")
    return {dialect: edges_of(root, dialect) for dialect in ("spark", "duckdb")}


def edges_of(root: Path, dialect: str) -> list[Edge]:
    cases = [replace(case, dialect=dialect) for case, _ in CASES]
    scripts = scripts_of(cases)
    unknown = [name for name, text in scripts.items() if dialect == "duckdb" and "LIKE" in text]
    for name in unknown:  # a computed pattern, which DuckDB's dialect does not have
        scripts[name] = scripts_of([case for case, _ in CASES])[name]
    project = Project.load(write_project(root / dialect, scripts))
    return [project.edges[f"r{number}"][0] for number in range(len(cases))]


def test_the_analysis_understands_the_query(edges: dict[str, list[Edge]]) -> None:
    for edge, (case, is_understood) in zip(edges["spark"], CASES, strict=True):
        assert edge.need.in_doubt is not is_understood, f"{case}: {edge.need}"


def test_both_dialects_are_read_alike(edges: dict[str, list[Edge]]) -> None:
    for spark, duckdb, (case, _) in zip(edges["spark"], edges["duckdb"], CASES, strict=True):
        needs = {replace(edge.need, condition="") for edge in (spark, duckdb)}
        assert len(needs) == 1, str(case)
        assert bool(spark.selection) is bool(duckdb.selection), str(case)


def slice_of(model: Model, day: date) -> Slice:
    start = datetime.combine(day, datetime.min.time(), UTC)
    return Part(f"{day:%Y-%m-%d}") if model.by_time is None else Interval(start, start + DAY)


def behind(edge: Edge, corrected: date) -> set[date]:
    """Return the days of a reader whose slices are behind, once a day of the input is another."""
    changes = [Changed(slice_of(edge.upstream, corrected), 2)]
    inputs = Inputs((Input(edge, lambda: changes, 2),))
    by_slice = {slice_of(edge.reader, day): day for day in DAYS}
    found = inputs.behind({each: {"main": 1} for each in by_slice})
    return {by_slice[each] for each in found}


def test_every_slice_that_a_correction_changes_is_behind(edges: dict[str, list[Edge]]) -> None:
    """For every form, in both dialects; and of the forms that are understood none in vain."""
    corrected, in_vain = Corrected([case for case, _ in CASES]), Counter[str]()
    for day in DAYS:
        for number, differing in enumerate(corrected.differing(day)):
            case, is_understood = CASES[number]
            found = behind(edges["spark"][number], day)
            assert differing <= found, f"{day}: {case}"
            assert differing <= behind(edges["duckdb"][number], day), f"{day}: {case} in DuckDB's"
            in_vain[case.query] += len(found - differing) * is_understood
    without_reason = [query for query in +in_vain if not any(why in query for why in IN_VAIN)]
    assert without_reason == []


def test_a_slice_that_differs_is_not_called_materialized(tmp_path: Path) -> None:
    duck.required()
    assert silent(tmp_path / "f", [case for case, _ in CASES[:: len(CASES) // 3]]) == []
