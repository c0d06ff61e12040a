"""Unit tests of models: two spellings of YAML, one value.

Tests ``model/files/yaml_file.py`` (what YAML says, and where).
"""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from penstock.model.definition.unit_test import UnitTest, read_unit_tests

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
