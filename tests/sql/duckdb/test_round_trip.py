"""Which of Spark's queries are stored as DuckDB's: those that come back from it as they were."""

from __future__ import annotations

import pytest

from penstock.sql.duckdb.round_trip import in_duckdb

QUERIES = {
    "SELECT id, count(*) AS n FROM people WHERE id IN (1, 2) GROUP BY id": (
        "SELECT id, COUNT(*) AS n FROM people WHERE id IN (1, 2) GROUP BY id"
    ),
    "SELECT upper(name) AS n FROM people": None,  # letters beyond ASCII differ
    "SELECT `a b` FROM s.t AT (VERSION => 3)": 'SELECT "a b" FROM s.t AT (VERSION => 3)',
    "SELECT id / 2 AS h FROM t": None,  # DuckDB divides by zero, Spark fails
    "SELECT transform(l, x -> x + 1) AS l FROM t": (
        "SELECT LIST_TRANSFORM(l, LAMBDA x : x + 1) AS l FROM t"
    ),
    "SELECT nobody_knows(a) FROM t": None,
    "SELECT a FROM t LATERAL VIEW explode(l) AS x": None,
    "SELECT FROM WHERE": None,
}


@pytest.mark.parametrize("text", QUERIES)
def test_in_duckdb(text: str) -> None:
    counterpart = in_duckdb(text)
    assert (None if counterpart is None else counterpart.text) == QUERIES[text]
