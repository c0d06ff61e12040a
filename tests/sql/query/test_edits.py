"""Edits of a text, and the way back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.sql.query.edits import Edit, edited, from_first, table_first, template
from penstock.sql.tokens import tokenize

TEXT = "abcdefghijkl"


@given(st.lists(st.integers(0, len(TEXT)), max_size=6, unique=True), st.text("XY", max_size=3))
def test_what_stays_leads_back_to_itself(places: list[int], new: str) -> None:
    bounds = sorted(places)
    edits = [Edit(*pair, new) for pair in zip(bounds[::2], bounds[1::2], strict=False)]
    mapped = edited(TEXT, edits)
    for at, letter in enumerate(mapped.text):
        origin = mapped.back(at)
        starts = letter in "XY" and any(origin == edit.start for edit in edits)
        assert starts or TEXT[origin] == letter
    assert mapped.back(len(mapped.text)) == len(TEXT)


def test_a_template_keeps_braces() -> None:
    assert template("a {b} c", [Edit(6, 7, "{t0}")]) == "a {{b}} {t0}"


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("FROM t", "SELECT * FROM t"),
        ("TABLE t", "SELECT * FROM t"),
        ("FROM t WHERE a = 1", "SELECT * FROM t WHERE a = 1"),
        ("FROM t SELECT a", "FROM t SELECT a"),
        ("SELECT a FROM t", "SELECT a FROM t"),
        ("WITH x AS (FROM t) FROM x", "WITH x AS (SELECT * FROM t) SELECT * FROM x"),
        ("FROM a UNION ALL FROM b", "SELECT * FROM a UNION ALL SELECT * FROM b"),
    ],
)
def test_a_query_without_select_gets_one(text: str, written: str) -> None:
    assert edited(text, from_first(tokenize(text))).text == written


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("TABLE t", "SELECT * FROM t"),
        ("FROM t", "FROM t"),
        ("SELECT * FROM f(TABLE t)", "SELECT * FROM f(TABLE t)"),
    ],
)
def test_only_table_is_written_out_where_from_is_meant_as_it_is(text: str, written: str) -> None:
    assert edited(text, table_first(tokenize(text))).text == written
