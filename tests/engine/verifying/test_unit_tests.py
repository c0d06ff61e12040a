"""Unit tests of models, run on Spark without a lake."""

from __future__ import annotations

from textwrap import dedent
from typing import TYPE_CHECKING

import pytest

from penstock.errors import ArgumentError, ModelError
from tests.engine.conftest import Make

if TYPE_CHECKING:
    from penstock.project.project import Project

MODELS = {
    "models/clean": """
    -- partitioned daily
    -- materialize ducklake://main/clean
    -- $limit (int) = 10
    CREATE TEMP VIEW busy AS SELECT carrier, count(*) AS n FROM raw GROUP BY carrier;
    WITH late AS (
      SELECT * FROM raw WHERE day = '{partition}' AND delay > $limit
    )
    SELECT late.id, late.delay / 2 AS half, seen, busy.n, price, tags
    FROM late JOIN busy USING (carrier)
    """,
    "models/marts/shouted": """
    -- materialize ducklake://main/shouted
    -- dialect duckdb
    SELECT upper(name) AS name, at FROM read_csv('in.csv') WHERE n >= 2
    """,
    "models/daily": """
    MODEL (name main.daily, kind INCREMENTAL_BY_TIME_RANGE (time_column d), start '2026-01-01');
    SELECT d, n, @execution_ds AS made FROM raw WHERE d BETWEEN @start_date AND @end_date
    """,
}
TESTS = """
right:
  model: clean
  partition: 2026-01-02
  vars: {limit: 15}
  inputs:
    raw:
      columns: {price: 'DECIMAL(10, 2)'}
      rows:
        - {id: 1, carrier: UA, delay: 20.0, day: '2026-01-02', price: 1.5, tags: [a, b],
           seen: 2026-01-02T10:00:00}
        - {id: 2, carrier: UA, delay: 10, day: '2026-01-02'}
        - {id: 3, carrier: AA, delay: 99.5, day: '2026-01-03'}
  outputs:
    ctes:
      late: {partial: true, rows: [{id: 1, delay: 20}]}
      busy: [{carrier: AA, n: 1}, {n: 2, carrier: UA}]
    query:
      - {id: 1, half: 10.0, seen: 2026-01-02 10:00:00, n: 2, price: 1.50, tags: [a, b]}
wrong:
  model: main.clean
  partition: 2026-01-02
  inputs:
    main.raw:
      format: csv
      rows: |
        id,carrier,delay,day,seen,price,tags
        1,UA,20,2026-01-02,,,
  outputs:
    query: [{id: 1, half: 11}]
by_time:
  model: daily
  vars: {start: 2026-01-01, end: 2026-01-02, execution_time: 2026-01-05}
  inputs: {raw: [{d: 2026-01-01, n: 1}, {d: 2026-01-02, n: 2}, {d: 2026-01-03, n: 3}]}
  outputs:
    query:
      - {d: 2026-01-01, n: 1, made: '2026-01-05'}
      - {d: 2026-01-02, n: 2, made: '2026-01-05'}
of_dbt: {model: shouted, inputs: {}, outputs: {query: []}}
"""
DBT = """
unit_tests:
  - name: file
    model: shouted
    given: [{input: in.csv, fixture: some}]
    expect: {rows: [{name: STRASSE}]}
  - {name: off, model: shouted, expect: {rows: []}, config: {enabled: false}}
"""


def with_tests(make: Make, **files: str) -> Project:
    project = make(MODELS)
    for name, text in files.items():
        path = project.settings.root / "tests" / name.replace("__", "/").replace("_", ".", 1)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text))
    return project


@pytest.mark.spark
def test_results(make: Make) -> None:
    project = with_tests(
        make, a_yaml=TESTS, b_yml=DBT, fixtures__some_csv="name,n,at\nstrasse,2,\n"
    )
    results = {result.name: result for result in project.test()}
    states = {name: result.state for name, result in results.items()}
    assert states == {
        "right": "passed",
        "wrong": "failed",
        "by_time": "passed",
        "of_dbt": "error",
        "file": "passed",
        "off": "skipped",
    }
    (row,) = (results["wrong"].differences or {})[""]
    shown = [(cell.column, cell.expected, cell.actual) for cell in row.cells]
    assert shown == [("half", 11.0, 10.0), ("n", None, 1)]
    error = results["of_dbt"].error
    assert "of_dbt has no rows for in.csv, which the query of shouted reads" in str(error)
    assert [result.name for result in project.test("tests/b.yml")] == ["file", "off"]
    assert project.snapshots() == ()


@pytest.mark.spark
@pytest.mark.parametrize(
    ("test", "message"),
    [
        ("{model: nosuch, outputs: {query: []}}", "model nosuch does not exist"),
        ("{model: clean, outputs: {query: []}}", "says no partition"),
        ("{model: clean, partition: x, outputs: {query: []}}", "'x' is not a valid daily"),
        ("{model: shouted, vars: {x: 1}, outputs: {query: []}}", "no script has an argument 'x'"),
        ("{model: shouted, outputs: {ctes: {q: []}}}", "no common table expression q"),
        ("{model: shouted, inputs: {in.csv: []}, outputs: {query: []}}", "columns of no rows"),
        (
            "{model: shouted, inputs: {in.csv: {columns: {n: NUMBRE}, rows: [{n: 1}]}}, "
            "outputs: {query: []}}",
            "'NUMBRE' is not a type",
        ),
        (
            "{model: shouted, inputs: {in.csv: {columns: {n: INT}, rows: [{n: x}]}}, "
            "outputs: {query: []}}",
            "column n: 'x' is not a valid int",
        ),
        (
            "{model: shouted, inputs: {in.csv: [{n: 1}, {n: x}]}, outputs: {query: []}}",
            "the column n has no type: its values are int and string",
        ),
        (
            "{model: shouted, inputs: {in.csv: [{n: 1, name: a, at: b}]}, "
            "outputs: {query: [{x: 1}]}}",
            "the query makes no column x",
        ),
        ("{model: shouted, inputs: {in.csv: [{n: 1}]}, outputs: {query: []}}", "name"),
        ("{model: shouted, inputs: {in.csv: {path: no.csv}}, outputs: {query: []}}", "no file of"),
    ],
)
def test_what_cannot_run(make: Make, test: str, message: str) -> None:
    (result,) = with_tests(make, t_yaml=f"t: {test}").test()
    assert result.state == "error"
    assert result.error is not None
    assert message in result.error.message
    assert result.error.location is not None


def test_files_that_cannot_be_read_and_names_of_none(make: Make) -> None:
    project = with_tests(make, t_yaml="t: {model: clean}")
    with pytest.raises(ModelError, match=r"t\.yaml:1:4: error: the test t says no outputs"):
        project.test()
    project = with_tests(make, t_yaml="right: {model: clean, outputs: {query: []}}")
    with pytest.raises(ArgumentError, match="did you mean right"):
        project.test("rigth")
