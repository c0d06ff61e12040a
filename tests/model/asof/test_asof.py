"""The forms of ASOF JOIN."""

from __future__ import annotations

import pytest

from penstock.model.asof.asof import AsofJoin, NotPlanned, asof_joins, find_join, plain
from penstock.sql.query.edits import edited
from penstock.sql.tokens import tokenize


@pytest.mark.parametrize(
    "join",
    [
        "o ASOF JOIN d ON (o.at >= d.at) AND o.k = d.k WHERE true",
        "o ASOF LEFT JOIN d ON (o.at >= d.at) AND o.k = d.k",
        "o ASOF LEFT JOIN d ON (o.at > d.at) LIMIT 1",
        "o ASOF JOIN d USING (k, at)",
        "o LEFT JOIN d ON o.k = d.k",
    ],
)
def test_there_and_back(join: str) -> None:
    """Spark's form is what sqlglot reads once more, for file filters."""
    text = f"SELECT 1 FROM {join}"
    assert plain(edited(text, asof_joins(text, tokenize(text))).text) == text


ON = "MATCH_CONDITION (o.at >= d.at) ON o.k = d.k"


def found(text: str, skip: int = 0) -> AsofJoin:
    join = find_join(text, skip)
    assert join is not None
    return join


@pytest.mark.parametrize(
    ("text", "left", "right"),
    [
        (f"SELECT * FROM o ASOF JOIN d {ON}", "o", "d"),
        (
            f"SELECT * FROM orders AS o LEFT ASOF JOIN (SELECT 1) d {ON}",
            "orders AS o",
            "(SELECT 1) d",
        ),
        (f"SELECT * FROM x, o JOIN y ON o.a = y.a ASOF JOIN d {ON}", "o JOIN y ON o.a = y.a", "d"),
        (f"SELECT * FROM x, VALUES (1), (2) o(k) ASOF JOIN d {ON}", "VALUES (1), (2) o(k)", "d"),
        (
            f"SELECT * FROM o JOIN y ON o.a IS NOT DISTINCT FROM y.a ASOF JOIN d {ON}",
            "o JOIN y ON o.a IS NOT DISTINCT FROM y.a",
            "d",
        ),
    ],
)
def test_sides(text: str, left: str, right: str) -> None:
    join = found(text)
    assert (text[slice(*join.left)], text[slice(*join.right)]) == (left, right)
    assert text[join.end :] == ""


def test_a_second_join_waits_for_the_first() -> None:
    text = (
        f"SELECT * FROM o ASOF JOIN d {ON} ASOF JOIN e MATCH_CONDITION (o.at < e.at) WHERE o.x > 1"
    )
    join = found(text)
    assert (join.lefts, join.right_name) == (("o",), "d")
    with pytest.raises(NotPlanned, match="cannot be read"):
        find_join(text, 1)
    assert find_join(text, 2) is None


def test_common_tables_that_it_sees() -> None:
    inner = f"WITH c (x) AS (SELECT 2) SELECT * FROM o ASOF JOIN d {ON}"
    text = f"WITH a AS (SELECT 1), b AS ({inner}) SELECT * FROM b"
    assert found(text).with_tables == "WITH a AS (SELECT 1), c (x) AS (SELECT 2) "


def test_conditions_after_an_outer_join_stay_where_they_are() -> None:
    conditions = "WHERE o.x > 1 AND o.y IS NULL GROUP BY 1"
    assert len(found(f"SELECT 1 FROM o ASOF JOIN d {ON} {conditions}").where) == 2
    assert not found(f"SELECT 1 FROM o ASOF JOIN d {ON} RIGHT JOIN e ON true {conditions}").where


def test_a_column_called_like_the_end_of_a_case() -> None:
    assert len(found(f"SELECT o.end FROM o ASOF JOIN d {ON} WHERE o.end > 1 AND o.x").where) == 2


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (f"FROM o ASOF JOIN d {ON} SELECT 1", "begin with SELECT"),
        (f"SELECT 1 FROM (o ASOF JOIN d {ON}) JOIN e", "brackets"),
        (f"SELECT 1 FROM o JOIN p USING (k) ASOF JOIN d {ON}", "USING"),
        (f"SELECT 1 FROM o JOIN o ON true ASOF JOIN d {ON}", "one name"),
        (f"SELECT 1 FROM (SELECT 1) ASOF JOIN d {ON}", "no name"),
        (f"SELECT 1 FROM o ASOF JOIN d {ON} NATURAL JOIN e", "NATURAL follows"),
        (f"SELECT struct(*) FROM o ASOF JOIN d {ON}", "in a call"),
        (f"WITH RECURSIVE r AS (SELECT 1) SELECT 1 FROM r ASOF JOIN d {ON}", "recursive"),
    ],
)
def test_left_to_spark(text: str, reason: str) -> None:
    with pytest.raises(NotPlanned, match=reason):
        find_join(text, 0)
