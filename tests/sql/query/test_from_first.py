"""Queries that begin with FROM or TABLE, written out with SELECT."""

from __future__ import annotations

import pytest

from penstock.sql.query.edits import edited
from penstock.sql.query.from_first import from_first, table_first
from penstock.sql.tokens import tokenize


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
