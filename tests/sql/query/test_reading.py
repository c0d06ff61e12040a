"""The structure of queries over their words."""

from __future__ import annotations

import pytest

from penstock.sql.query.nesting import Unclear
from penstock.sql.query.reading import Query, Select, read_query, selects
from penstock.sql.tokens import tokenize


def read(text: str) -> Query:
    return read_query(tokenize(text))


def first(text: str) -> Select:
    select = read(text).terms[0]
    assert isinstance(select, Select)
    return select


def test_the_relations_of_a_from_and_how_they_are_joined() -> None:
    select = first(
        "SELECT 1 FROM a x, b.c LEFT OUTER JOIN (SELECT 2) AS d(e) ON LEFT(d.e, 1) = x.f AND g "
        "NATURAL JOIN h LEFT ANTI JOIN i USING (j), LATERAL (SELECT 3) k, range(5) WHERE l"
    )
    assert [(each.join, each.name, each.table) for each in select.sources] == [
        ("inner", "x", "a"),
        ("inner", "c", ""),
        ("left", "d", ""),
        ("other", "h", "h"),
        ("half", "i", "i"),
        ("inner", "k", ""),
        ("inner", "range", ""),
    ]
    of = select.sources
    assert None not in (of[2].query, of[2].columns, of[2].on)
    assert (of[4].using is not None, of[5].lateral) == (True, True)


def test_set_operations_and_withs() -> None:
    query = read(
        "WITH a AS (SELECT * EXCEPT (b) FROM c), D(e) AS (SELECT 1) (SELECT 2) EXCEPT ALL SELECT 3"
    )
    assert [(each.name, each.columns is not None) for each in query.ctes] == [
        ("a", False),
        ("d", True),
    ]
    assert [type(term) for term in query.terms] == [Query, Select]


def test_clauses_are_those_of_the_outermost_select() -> None:
    select = first(
        "SELECT t.order, sum(a) FILTER (WHERE b), CASE WHEN c THEN 1 END, d IS DISTINCT FROM e "
        "FROM t WHERE f IN (SELECT g FROM u LIMIT 1) GROUP BY h ORDER BY i"
    )
    assert list(select.clauses) == ["FROM", "WHERE", "GROUP", "ORDER"]
    assert len(select.inside) == 1


@pytest.mark.parametrize(
    "text",
    [
        "WITH RECURSIVE a AS (SELECT 1) SELECT 1 FROM a",
        "SELECT 1 UNION BY NAME SELECT 2",
        "FROM a SELECT b",
        "VALUES (1)",
        "(SELECT 1 FROM a) LIMIT 1",
        "SELECT CASE WHEN 1 FROM a",
    ],
)
def test_what_is_not_known_is_unclear(text: str) -> None:
    with pytest.raises(Unclear):
        read(text)


def test_parts_that_are_not_understood_leave_the_others() -> None:
    tokens = tokenize("WITH RECURSIVE a AS (FROM b) SELECT 1 FROM a WHERE c IN (SELECT 2 FROM d)")
    parts = selects(tokens, read_query(tokens, whole=False))
    assert [
        (part.understood, [each.name for each in part.sources], [cte.name for cte in seen])
        for part, seen, _ in parts
    ] == [(False, [], []), (True, ["a"], ["a"]), (True, ["d"], ["a"])]
