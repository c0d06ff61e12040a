"""The plan of ASOF JOINs: which side a condition is of, what is read, and the text made of it."""

from __future__ import annotations

import pytest

from penstock.model.asof.asof import AsofJoin, NotPlanned, find_join
from penstock.model.asof.asof_plan import Column, Sides, conditions_of, needed, planned, sides_query

SIDES = Sides(
    {"o": ("id", "k", "at")}, (Column("k"), Column("at"), Column("v"), Column("m", False))
)


def join(text: str) -> AsofJoin:
    found = find_join(text, 0)
    assert found is not None
    return found


def on(condition: str, match: str = "o.at >= d.at", where: str = "") -> AsofJoin:
    return join(f"SELECT o.id FROM o ASOF JOIN d MATCH_CONDITION ({match}) ON {condition} {where}")


def plan(text: str) -> str:
    found = join(text)
    conditions = conditions_of(found, SIDES)
    casts = [None] * len(conditions.matches)
    return planned(found, SIDES, conditions, casts, needed(found, SIDES)).text


@pytest.mark.parametrize(
    ("match", "operator"),
    [("o.at >= d.at", ">="), ("d.at >= o.at", "<="), ("d.at < id", ">"), ("id + 1 < d.at", "<")],
)
def test_the_left_side_comes_first(match: str, operator: str) -> None:
    assert conditions_of(on("d.k = o.k", match), SIDES).operator == operator


def test_conditions_of_one_side() -> None:
    found = conditions_of(on("o.k = d.k AND v > 3 AND o.id <> 2 AND o.k <=> d.v"), SIDES)
    assert [piece.text for piece in found.right] == ["v > 3"]
    pairs = [(key.left.text.strip(), key.right.text.strip(), key.null_safe) for key in found.keys]
    assert pairs == [("o.k", "d.k", False), ("o.id <> 2", "TRUE", False), ("o.k", "d.v", True)]


def test_conditions_of_the_query_on_the_left_side_go_first() -> None:
    where = "WHERE o.id > 1 AND d.v = 2 AND rand() < o.id AND id IN (SELECT 1) AND id = 5"
    found = conditions_of(on("o.k = d.k", where=where), SIDES)
    assert [piece.text for piece in found.left] == ["o.id > 1", "id = 5"]


@pytest.mark.parametrize(
    ("condition", "reason"),
    [
        ("o.k = d.k AND o.id <> d.v", "another way"),
        ("k = 1", "not clear"),
        ("o.k = d.k AND nope = 1", "not clear"),
        ("o.k = d.k AND exists(SELECT 1)", "subquery"),
    ],
)
def test_left_to_spark(condition: str, reason: str) -> None:
    with pytest.raises(NotPlanned, match=reason):
        conditions_of(on(condition), SIDES)


@pytest.mark.parametrize(
    ("selected", "names"),
    [("d.v", "v"), ("o.at, at", "at"), ("*", "k at v m"), ("d.*", "k at v m"), ("M, d.k", "k m")],
)
def test_columns_that_the_text_may_use(selected: str, names: str) -> None:
    text = f"SELECT {selected} FROM o ASOF JOIN d MATCH_CONDITION (o.at > d.at) ON o.k = d.k"
    assert [column.name for column in needed(join(text), SIDES)] == names.split()


def test_ties_are_decided_by_columns_that_sort() -> None:
    text = plan("SELECT * FROM o ASOF JOIN d MATCH_CONDITION (o.at < d.at) ON o.k = d.k")
    assert (
        "PARTITION BY k0 ORDER BY k1 DESC NULLS FIRST, s, d.f0 DESC, d.f1 DESC, d.f2 DESC ROWS"
        in text
    )
    assert text.startswith("SELECT * EXCEPT (penstock_asof_0.penstock_row) FROM (")


def test_columns_of_using_are_those_of_the_left_side() -> None:
    text = plan("SELECT k, d.k, abs(d.at) FROM o ASOF JOIN d USING (k, at) WHERE d.at > 1")
    row = "penstock_asof_0.penstock_row.r"
    assert text.startswith(f"SELECT k, {row}.f0 AS k, abs({row}.f1) FROM (")
    assert text.endswith(f"WHERE {row}.f1 > 1")


def test_sides_are_asked_for_with_their_common_tables() -> None:
    text = "WITH a AS (SELECT 1) SELECT 1 FROM a o ASOF JOIN d MATCH_CONDITION (o.at > d.at)"
    assert sides_query(join(text)) == (
        "WITH a AS (SELECT 1) SELECT struct(`o`.*) FROM a o",
        "WITH a AS (SELECT 1) SELECT struct(`d`.*) FROM d",
    )
