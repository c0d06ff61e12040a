"""Unit tests of models: two spellings of YAML, one value.

Tests ``model/files/yaml_file.py`` (what YAML says, and where).
"""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from penstock.model.definition.model import Model
from penstock.model.definition.tests import UnitTest, read_unit_tests
from penstock.model.project.loader import load_models
from penstock.model.script.constants import misread_condition
from penstock.sql.identifiers import fold

PATH = Path("tests/t.yaml")

SQLMESH = """
late:
  model: marts/late
  description: only late ones
  partition: 2026-01-02
  vars: {limit: 15}
  inputs:
    raw:
      columns: {id: BIGINT}
      rows:
        - {id: 1, carrier: UA}
    other:
      - id: 2
    third: {query: SELECT 1 AS id}
    fourth: {path: rows.csv, format: csv}
  outputs:
    partial: true
    query:
      rows: [{id: 1}]
    ctes:
      inner:
        rows: []
"""
DBT = """
unit_tests:
  - name: late
    model: late
    given:
      - {input: "ref('pkg', 'raw')", rows: [{id: 1}]}
      - {input: "source('s', 't')", format: csv, rows: "id\\n1"}
      - {input: this, format: sql, rows: SELECT 1 AS id}
      - {input: plain, fixture: some}
    expect: {rows: [{id: 1}]}
    overrides: {vars: {limit: 15, partition: x}}
  - name: off
    model: late
    expect: {rows: []}
    config: {enabled: false}
"""


def read(text: str) -> tuple[UnitTest, ...]:
    tests, findings = read_unit_tests(text, PATH)
    assert findings == ()
    return tests


def test_sqlmeshs_spelling() -> None:
    (test,) = read(SQLMESH)
    assert (test.name, test.model, test.partition) == ("late", "marts/late", "2026-01-02")
    assert test.values == {"limit": 15}
    assert (test.location.line, test.location.column) == (3, 3)
    raw, other, third, fourth = (given.rows for given in test.given)
    assert [given.name for given in test.given] == ["raw", "other", "third", "fourth"]
    assert (raw.rows, raw.columns) == (({"id": 1, "carrier": "UA"},), {"id": "BIGINT"})
    assert (other.rows, third.query, fourth.file) == (({"id": 2},), "SELECT 1 AS id", "rows.csv")
    assert [(e.cte, e.partial, e.rows.rows) for e in test.expected] == [
        (None, True, ({"id": 1},)),
        ("inner", True, ()),
    ]


def test_dbts_spelling() -> None:
    test, off = read(DBT)
    assert [given.name for given in test.given] == ["raw", "s.t", "this", "plain"]
    rows = [given.rows for given in test.given]
    assert (rows[0].rows, rows[1].csv) == (({"id": 1},), "id\n1")
    assert (rows[2].query, rows[3].file) == ("SELECT 1 AS id", "some")
    assert (test.values, test.partition) == ({"limit": 15}, "x")
    (expected,) = test.expected
    assert expected.partial
    assert (test.enabled, off.enabled) == (True, False)


def test_an_empty_file() -> None:
    assert read("# nothing yet\n") == ()


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("a: [", 1, "while parsing|expected"),
        ("- a", 1, "the file is not a mapping"),
        ("t:\n  model: m\n  outputs: {query: [{a: !x 1}]}", 3, "the tag !x is not known"),
        ("- " * 20_000, 1, "nested more than 100 deep"),
        ("[" * 20_000, 1, "nested more than 100 deep"),
        ("t:\n  model: [m]\n  outputs: {query: []}", 2, "a text is expected, not a list"),
        ("? [a]\n: {}", 1, "a text is expected, not a list"),
        ("t:\n  outputs: {query: []}", 2, "the test t names no model"),
        ("t:\n  model: m", 2, "the test t says no outputs"),
        ("t:\n  model: m\n  outputs: {}", 3, "neither query nor ctes"),
        ("t:\n  modl: m\n  outputs: {query: []}", 2, "the test t has no modl"),
        ("t:\n  model: m\n  model: n\n  outputs: {query: []}", 3, "has model twice"),
        ("t:\n  model: m\n  outputs: {query: {rows: 1}}", 3, "rows is not a list"),
        ("t:\n  model: m\n  outputs: {query: {rows: [1]}}", 3, "a row is not a mapping"),
        ("t:\n  model: m\n  outputs: {query: {format: xml, rows: []}}", 3, "xml is not a format"),
        ("t:\n  model: m\n  outputs: {query: {columns: {a: INT}}}", 3, "there are no rows"),
        ("unit_tests:\n  - {name: a, model: m}", 2, "the test a expects nothing"),
        ("unit_tests:\n  - {model: m, given: [{rows: []}], expect: []}", 2, "an input has no name"),
        ("unit_tests:\n  - {model: m, expect: [], overrides: {macros: {}}}", 2, "has no macros"),
    ],
)
def test_what_is_wrong_has_its_place(text: str, line: int, message: str) -> None:
    _, findings = read_unit_tests(dedent(text), PATH)
    assert findings
    assert findings[0].location.line == line
    assert any(part in findings[0].message for part in message.split("|"))
    assert all(finding.hint for finding in findings)


LAKES = ("main",)
STEP = "-- pipeline\n-- materialize ducklake://main/t\n{}SELECT 1 AS id, 2 AS amount"
POSITIVE = """
-- $column (name)
-- $limit (int) = 0
-- $day (date)
SELECT * FROM t WHERE $column <= $limit AND d = $day -- $column
""".lstrip()


def files(root: Path, line: str, test: str, more: str = "") -> Path:
    for name, text in (
        ("models/t", STEP.format(f"-- data_test {line}\n{more}")),
        ("tests/p", test),
    ):
        path = root / f"{name}.sql"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return root


def model_of(root: Path) -> Model:
    (model,) = load_models(root, lakes=LAKES).models
    return model


def test_names_are_quoted_and_values_bound(tmp_path: Path) -> None:
    line = "tests/p column='a`b' day=2026-01-31"
    (script,) = model_of(files(tmp_path, line, POSITIVE)).test_scripts
    (source,) = script.query.sources
    rendered = script.query.render({source: "`v`"})
    assert "`a``b` <= :" in rendered.sql
    assert {key: str(value) for key, value in script.arguments.items()} == {
        "limit": "0",
        "day": "2026-01-31",
    }
    assert script.text.startswith("SELECT * FROM t WHERE $column")


def test_the_same_test_twice(tmp_path: Path) -> None:
    day = "day=2026-01-31"
    line = f"tests/p column=a limit=1 {day}\n-- data_test tests/p column=a limit=2 {day}"
    scripts = model_of(files(tmp_path, line, POSITIVE)).test_scripts
    assert [script.arguments["limit"] for script in scripts] == [1, 2]


def test_an_argument_that_the_model_has_too_is_that_of_the_run(tmp_path: Path) -> None:
    root = files(tmp_path, "tests/p column=a", POSITIVE, "-- $day (date)\n")
    (script,) = model_of(root).test_scripts
    assert [*script.arguments] == ["limit"]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("tests/p day=2026-01-31", "tests/p needs column\n  → write tests/p column=column"),
        ("tests/p column=a", "tests/p needs day\n  → write day=VALUE after it"),
        (
            "tests/p column=a dya=2026-01-31",
            "tests/p has no argument 'dya'\n  → did you mean day=?",
        ),
        (
            "tests/p column=a day=today",
            "tests/p: argument day: 'today' is not a valid date\n  → write it like day=2026-05-16",
        ),
    ],
)
def test_wrong_arguments_are_placed_at_the_line(tmp_path: Path, line: str, said: str) -> None:
    (finding,) = load_models(files(tmp_path, line, POSITIVE), lakes=LAKES).errors
    assert str(finding) == f"{tmp_path}/models/t.sql:3:4: error: {said}"


def test_a_test_without_arguments_takes_none(tmp_path: Path) -> None:
    (finding,) = load_models(files(tmp_path, "tests/p a=1", "SELECT 1"), lakes=LAKES).errors
    assert (finding.message, finding.hint) == (
        "tests/p has no argument 'a'",
        "it takes no arguments",
    )


def test_names_in_the_dialect_of_the_script(tmp_path: Path) -> None:
    test = "-- dialect duckdb\n-- $column (name)\nSELECT * FROM t WHERE $column::INT < 0"
    (script,) = model_of(files(tmp_path, "tests/p column=Amount", test)).test_scripts
    (source,) = script.query.sources
    assert "`amount`" in fold(script.query.render({source: "v"}).sql)


@pytest.mark.parametrize("dialect", ["spark", "duckdb"])
@pytest.mark.parametrize(
    ("sql", "message", "at"),
    [
        ("a > 0) OR (1 = 1", "the condition cannot be read", None),
        ("a >", "the condition cannot be read", None),
        ("a = 'b", "`'` is opened here and never closed", 4),
        ("a > 0; SELECT 1", "a condition is one expression", 5),
        ("a > (SELECT 1)", "a condition is of one row: it has no subquery and no window", 5),
        ("a > $least", "a condition has no $least", 4),
        ("d = '{partition}'", "a condition has no '{partition}'", 4),
        ("sum(a) > 0", "a condition is of one row: sum is of many", 0),
    ],
)
def test_what_is_not_a_condition(dialect: str, sql: str, message: str, at: int | None) -> None:
    problem = misread_condition(sql, dialect)
    assert problem is not None
    assert problem.message.startswith(message)
    assert at is None or problem.at == at


@pytest.mark.parametrize(
    "sql", ["a > 0", "a IN (1, 2) -- two", "exists(xs, x -> x > 0)", 'length("a b") > 0', "a"]
)
def test_conditions(sql: str) -> None:
    assert misread_condition(sql, "spark") is None


def test_a_wrong_condition_is_placed_in_its_line(tmp_path: Path) -> None:
    (finding,) = load_models(files(tmp_path, "expression id > $x", ""), lakes=LAKES).errors
    assert str(finding) == (
        f"{tmp_path}/models/t.sql:3:30: error: a condition has no $x\n"
        "  → write the test as a script in tests/, which may have them"
    )
