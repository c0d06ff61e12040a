"""Models and their tests in DuckDB's dialect, run."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from penstock.errors import QueryFailed, UnsupportedFeature
from penstock.project.project import Project

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


def test_names_in_double_quotes(make: Make) -> None:
    """A test's condition over a name in double quotes sees the rows, and bad ones stop the run."""
    made = """
        -- pipeline
        -- data_test tests/known
        -- materialize ducklake://main/orders
        SELECT "id" AS id, "status" FROM VALUES (1, 'paid'), (2, 'bogus') AS v("id", "status")
    """
    project = make(
        {"models/orders": made, "tests/known": "SELECT * FROM orders WHERE \"status\" = 'bogus'"}
    )
    result = project.run()
    (step,) = result.steps
    assert step.state == "failed"
    assert [check.failures for check in step.checks] == [1]
    assert [tuple(row) for row in project.preview("orders").collect()] == [
        (1, "paid"),
        (2, "bogus"),
    ]


def test_a_text_in_double_quotes_says_what_to_write(make: Make) -> None:
    project = make({})
    with pytest.raises(QueryFailed) as caught:
        project.sql("SELECT *\nFROM VALUES (1, 'paid') AS v(id, status) WHERE status = \"paid\"")
    assert caught.value.hint == "\"paid\" is a name: write 'paid' for the text"
    assert str(caught.value.location) == "query:2:57"


def test_queries(make: Make) -> None:
    project = make({})
    project.sql("CREATE TABLE notes (id INT, s VARCHAR); INSERT INTO notes VALUES (1, 'a b')")
    query = "SELECT * EXCLUDE (id), id / 2 AS half FROM notes WHERE s[1:1] = 'a'"
    with pytest.raises(QueryFailed, match=r"query:1:\d+: a slice of string"):
        project.sql(query, dialect="duckdb")
    with pytest.raises(QueryFailed, match=r"query:1:\d+: UNION of texts and other values"):
        project.sql("SELECT s FROM notes UNION ALL FROM notes SELECT id", dialect="duckdb")
    text = "SELECT * EXCLUDE (id), id / 2 AS half, $n AS n FROM notes AT (VERSION => 2)"
    lake = project.lake("main")
    df = lake.sql(text, {"n": 7}, dialect="duckdb")
    assert [row.asDict() for row in df.collect()] == [{"s": "a b", "half": 0.5, "n": 7}]
    with pytest.raises(UnsupportedFeature, match=r"hash .*, at line 2:3"):
        lake.sql("SELECT id,\n  hash(id) FROM notes", dialect="duckdb")
    project.sql("INSERT INTO notes SELECT n, 'x' || n FROM range(2) t(n)", dialect="duckdb")
    assert lake.table("notes").to_df().count() == 3


def test_texts_stay_as_written(make: Make) -> None:
    """Spark's variables, as ``${env:NAME}``, are texts in models and their tests."""
    select = "SELECT a, upper(a) AS b FROM (VALUES ('${env:PATH}')) AS v(a)"
    header = "-- pipeline\n-- data_test expression a = '${env:PATH}'\n"
    project = make(
        {
            "models/spark": f"{header}-- materialize ducklake://main/s\n{select}",
            "models/duck": f"{header}-- dialect duckdb\n-- materialize ducklake://main/d\n{select}",
        }
    )
    assert [step.state for step in project.run().steps] == ["done", "done"]
    for table in ("s", "d"):
        shown = project.sql(f"SELECT a, b, '${{system:user.home}}' AS c FROM {table}")
        assert [tuple(row) for row in shown.collect()] == [
            ("${env:PATH}", "${ENV:PATH}", "${system:user.home}")
        ]
