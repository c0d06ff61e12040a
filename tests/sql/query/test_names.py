"""What the names of tables in a query's tree mean."""

from __future__ import annotations

import pytest

from penstock.lazy import exp
from penstock.sql.query.names import all_sources, called, common_table, is_plain, select_around
from penstock.sql.text import parse_query

COMMON = {
    "WITH a AS (SELECT 1) SELECT * FROM A": ["a"],
    "WITH a AS (SELECT * FROM a) SELECT 1": [],
    "WITH RECURSIVE a AS (SELECT 1 UNION ALL SELECT * FROM a) SELECT 1": ["a"],
    "WITH a AS (SELECT * FROM b), b AS (SELECT 1) SELECT 1": [],
    "WITH a AS (SELECT 1), b AS (SELECT * FROM a) SELECT * FROM s.b": ["a"],
    "WITH a AS (SELECT 1) SELECT (SELECT max(k) FROM (SELECT * FROM a))": ["a"],
}


@pytest.mark.parametrize("query", COMMON)
def test_names_of_common_tables(query: str) -> None:
    tables = parse_query(query).find_all(exp.Table)
    found = [cte.alias for table in tables if (cte := common_table(table)) is not None]
    assert found == COMMON[query]


def test_a_common_table_is_the_nearest_of_its_name() -> None:
    query = "WITH a AS (SELECT 1) SELECT * FROM (WITH a AS (SELECT 2) SELECT * FROM a)"
    (table,) = parse_query(query).find_all(exp.Table)
    cte = common_table(table)
    assert cte is not None
    assert cte.this.sql() == "SELECT 2"


def test_sources_in_brackets_and_lateral_views() -> None:
    query = "SELECT 1 FROM (a JOIN b AS B2) JOIN c LATERAL VIEW explode(d) v, (e JOIN f) AS g"
    sources = list(all_sources(parse_query(query)))
    assert sorted(map(called, sources)) == ["a", "b2", "c", "g", "v"]


def test_plain_sources() -> None:
    query = (
        "SELECT 1 FROM a x, b AS r (k), c TABLESAMPLE (1 PERCENT), d PIVOT (sum(k) FOR l IN (1))"
    )
    plain = [is_plain(source) for source in all_sources(parse_query(query))]
    assert plain == [True, False, False, False]


@pytest.mark.parametrize(
    ("query", "seen"),
    [
        ("SELECT 1 FROM t WHERE EXISTS (SELECT 2)", True),
        ("SELECT 1 FROM t, LATERAL (SELECT 2) u", True),
        ("SELECT 1 FROM (SELECT 2)", False),
        ("WITH a AS (SELECT 2) SELECT 1", False),
    ],
)
def test_the_tables_around_a_select_that_it_sees(query: str, seen: bool) -> None:
    inner = next(s for s in parse_query(query).find_all(exp.Select) if s.sql() == "SELECT 2")
    assert (select_around(inner) is not None) == seen
