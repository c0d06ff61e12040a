"""Models and their tests in DuckDB's dialect, run."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from penstock.project import Project

pytestmark = pytest.mark.spark

Make = Callable[..., Project]
SCRIPTS = {
    "models/foreign": """
        -- pipeline
        -- dialect duckdb
        -- data_test tests/few
        -- materialize ducklake://main/foreign
        SELECT log(x) AS digits, dayofweek(d) AS day, (1.5)::INT AS rounded, l[-1] AS last,
          strftime(d, '%G-W%V') AS week, "x" // 7 AS weeks, count(*)
        FROM (VALUES (100, DATE '2026-01-04', [1, 2])) AS v("x", d, l)
        GROUP BY ALL
    """,
    "tests/few": "-- dialect duckdb\nFROM foreign WHERE len(week) <> 8",
}


def test_a_model_and_its_test(make: Make) -> None:
    project = make(SCRIPTS)
    project.run()
    df = project.sql("FROM foreign")
    assert df.columns[:7] == ["digits", "day", "rounded", "last", "week", "weeks", "count_star()"]
    assert [tuple(row)[:7] for row in df.collect()] == [(2.0, 0, 2, 2, "2026-W01", 14, 1)]
