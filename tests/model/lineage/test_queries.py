"""What each form of a query derives from: ``cases.jsonl`` has a query a line.

``columns`` are the inputs of each column (`given.short`) with what is not known of them behind
``?``, ``rows`` those of the rows, ``unknown`` the beginning of why there may be more of either.
A model cannot have a query with ``of_view``: Spark has no such form, but a view of DuckDB may.

Tests ``model/lineage/expressions.py`` (expressions); ``model/lineage/relation.py`` (relations);
``model/lineage/scope.py`` (names); ``model/lineage/script.py`` (a script's query); and
``model/lineage/sources.py`` (sources of FROM).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.model.lineage.given import columns, lineage, short

LINES = Path(__file__).with_name("cases.jsonl").read_text().splitlines()
CASES: dict[str, dict[str, Any]] = {case["case"]: case for case in map(json.loads, LINES)}


@pytest.mark.parametrize("name", CASES)
def test_case(name: str) -> None:
    case = CASES[name]
    found = lineage(case["sql"], case["dialect"], of_view=case.get("of_view", False))
    assert list(columns(found).items()) == list(case["columns"].items())
    if "unknown" not in case:
        assert (short(found.rows), found.unknown, found.complete) == (case["rows"], (), True)
        return
    why = "; ".join(map(str, found.unknown))
    assert why.startswith(case["unknown"])
    assert bool(found.unknown) is bool(case["unknown"])


def test_each_case_has_a_name() -> None:
    assert len(CASES) == len(LINES)


def test_a_column_of_the_only_table_is_known_without_its_schema() -> None:
    found = lineage("SELECT q.a, q.a + b AS x FROM (SELECT * FROM w WHERE c = 1) AS q")
    assert columns(found) == {"a": "w.a", "x": "w.a w.b"}
    assert short(found.rows) == "w.c:filter"
    assert found.complete


def test_what_a_star_leaves_out_is_not_looked_for_behind_it() -> None:
    found = lineage("SELECT a FROM (SELECT * EXCEPT (a) FROM w)")
    assert columns(found) == {"a": "? line 1: no table of the query has a column a"}


def test_a_file_whose_call_names_its_columns() -> None:
    for named in ("{'a': 'INT', 'b': 'DATE'}", "['a', 'b']"):
        found = lineage(f"SELECT * FROM read_csv('x.csv', columns = {named})")
        assert found.complete
        assert [column.name for column in found.columns] == ["a", "b"]
        assert not any(column.unknown for column in found.columns)


def test_files_are_assets() -> None:
    found = lineage("SELECT a, b + 1 AS b FROM read_csv('data/x.csv', header = true) WHERE c = 1")
    assert columns(found) == {"a": "data/x.csv.a", "b": "data/x.csv.b"}
    assert short(found.rows) == "data/x.csv.c:filter"
    (star,) = lineage("-- $day (text)\nSELECT * FROM read_csv('data/' || $day || '.csv')").unknown
    assert star.reason == (
        "a star cannot be expanded: the columns of data/$day.csv are not known without reading it"
    )


def test_the_change_feed_has_the_columns_of_its_table() -> None:
    found = lineage("SELECT * FROM table_changes('u', 1, 3)")
    assert columns(found) == {
        "snapshot_id": "u.*",
        "rowid": "u.*",
        "change_type": "u.*",
        "id": "u.id",
        "d": "u.d",
        "e": "u.e",
    }


def test_a_manual_script_says_so() -> None:
    found = lineage("DELETE FROM t", manual=True)
    assert [str(why) for why in found.unknown] == [
        "a manual script writes its table by statements of its own"
    ]
    assert not found.complete


def test_conditions_of_a_thousand_terms() -> None:
    sql = f"SELECT a FROM t WHERE {' OR '.join(f'b = {n}' for n in range(1000))}"
    assert short(lineage(sql).rows) == "t.b:filter"


def test_unions_of_many_branches() -> None:
    sql = " UNION ALL ".join(["SELECT a FROM t", *["SELECT d FROM u"] * 100])
    assert columns(lineage(sql)) == {"a": "t.a u.d"}


def test_a_name_may_be_a_column_that_is_not_known_or_a_row() -> None:
    found = lineage("SELECT count(t) AS n FROM w, t", "duckdb")
    (reason,) = found.columns[0].unknown
    assert reason.reason == "t may be of w or a row of t: the columns of main.w are not known"
    assert columns(lineage("SELECT count(t) AS n FROM w, t")) == {"n": "w.t"}  # Spark has no rows
