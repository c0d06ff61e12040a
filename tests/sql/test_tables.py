"""Which tables a query names: pure text.

Tests ``sql/time_travel.py``.
"""

from __future__ import annotations

import pytest

from penstock.errors import QueryFailed, UnsupportedFeature
from penstock.sql.tables import analyse, in_full, scope_of
from penstock.sql.text import Unreadable
from penstock.sql.time_travel import Travel
from penstock.sql.tokens import SqlText

FOUND = {
    "SELECT * FROM main.orders o JOIN `a b`.`c``d` ON 1 = 1": ["main.orders", "`a b`.`c``d`"],
    "WITH t AS (SELECT * FROM t) SELECT * FROM t, main.t": ["t", "main.t"],
    "WITH RECURSIVE t AS (SELECT 1 n UNION ALL SELECT n + 1 FROM t) SELECT * FROM t": [],
    "WITH a AS (SELECT 1), b AS (SELECT * FROM a) SELECT * FROM b WHERE 1 IN (SELECT * FROM c)": [
        "c"
    ],
    "SELECT (WITH a AS (SELECT 1 x) SELECT x FROM a), * FROM a": ["a"],
    "SELECT /*+ BROADCAST(t) */ * FROM t": ["t"],
    "SELECT * FROM range(3), VALUES (1) v(x), parquet.`/tmp/x`": [],
    "SELECT t.* REPLACE ((SELECT max(a) FROM u) AS a) FROM t": ["u", "t"],
    "FROM t |> WHERE a = 1 |> JOIN main.u USING (x)": ["t", "main.u"],
    "SELECT ':x', '{t}', \"q\" FROM t -- FROM u": ["t"],
}


@pytest.mark.parametrize("query", FOUND)
def test_names_and_places(query: str) -> None:
    found = analyse(query).tables
    assert [query[one.start : one.end] for one in found] == FOUND[query]


TRAVELS = {
    "t AT (VERSION => 3)": Travel("version", "3"),
    "t AT (TIMESTAMP => '2013-01-02 03:04:05')": Travel("timestamp", "2013-01-02 03:04:05"),
    "t VERSION AS OF 3": Travel("version", "3"),
    "t FOR VERSION AS OF 3": Travel("version", "3"),
    "t FOR SYSTEM_VERSION AS OF 3": Travel("version", "3"),
    "t TIMESTAMP AS OF '2013-01-02'": Travel("timestamp", "2013-01-02"),
    "t AT (VERSION => :v)": Travel("version", parameter="v"),
    "t TIMESTAMP AS OF DATE '2013-01-02'": Travel("timestamp", "2013-01-02"),
    "t AT (TIMESTAMP => '2013-01-02'::TIMESTAMP)": Travel("timestamp", "2013-01-02"),
    "t TIMESTAMP AS OF now() - INTERVAL 1 DAY": Travel("timestamp", text="now() - INTERVAL 1 DAY"),
    "t VERSION AS OF :v": Travel("version", parameter="v"),
    "t VERSION AS OF (:v + 1) * 2": Travel("version", text="(:v + 1) * 2"),
}


@pytest.mark.parametrize("aliased", [False, True])
@pytest.mark.parametrize("text", TRAVELS)
def test_time_travel_is_part_of_the_place(text: str, aliased: bool) -> None:
    query = f"SELECT *\nFROM {text}{' AS x' if aliased else ''} WHERE a = (1)"
    (found,) = analyse(query).tables
    assert (query[found.start : found.end], found.travel) == (text, TRAVELS[text])
    assert found.aliased is aliased


def test_words_that_begin_no_time_travel() -> None:
    query = "SELECT version AS of, timestamp AS of FROM t WHERE version > 3"
    assert [one.travel for one in analyse(query).tables] == [None]


def test_qualified_columns() -> None:
    query = "SELECT main.t.a, t.b FROM main.t"
    (found,) = analyse(query).qualifiers
    assert (query[found.start : found.end], found.schema, found.name) == ("main.", "main", "t")


REFUSED = {
    "INSERT INTO t SELECT 1": (UnsupportedFeature, "INSERT"),
    "DELETE FROM t": (UnsupportedFeature, "DELETE"),
    "SHOW TABLES": (UnsupportedFeature, "SHOW"),
    "SELECT 1; SELECT 2": (QueryFailed, "2 statements"),
    "": (QueryFailed, "0 statements"),
    "SELECT * FROM t VERSION AS OF v": (UnsupportedFeature, "names a column"),
    "SELECT * FROM t AT (VERSION => f(v))": (UnsupportedFeature, "names a column"),
    "SELECT * FROM t AT (OFFSET => 3)": (
        UnsupportedFeature,
        r"AT \(OFFSET => 3\) is not understood",
    ),
    "SELECT * FROM t FOR VERSION BETWEEN 1 AND 2": (UnsupportedFeature, "names no snapshot"),
    "SELECT * FROM f(1) VERSION AS OF 3": (QueryFailed, "no table is before the snapshot"),
}


@pytest.mark.parametrize("query", REFUSED)
def test_what_is_refused(query: str) -> None:
    kind, words = REFUSED[query]
    with pytest.raises(kind, match=words):
        analyse(query)


def test_what_is_not_understood() -> None:
    with pytest.raises(Unreadable):
        analyse("SELECT FROM WHERE")


WRITTEN = {
    "table t": "SELECT * FROM t",
    "-- one\nTABLE s.`t u`;": "-- one\nSELECT * FROM s.`t u`;",
    "(TABLE a) UNION ALL TABLE b": "(SELECT * FROM a) UNION ALL SELECT * FROM b",
    "WITH q AS (TABLE t) TABLE q": "WITH q AS (SELECT * FROM t) SELECT * FROM q",
    "SELECT table FROM t": "SELECT table FROM t",
    "SELECT * FROM f(TABLE t)": "SELECT * FROM f(TABLE t)",
    "SELECT 'TABLE t', table.x FROM table": "SELECT 'TABLE t', table.x FROM table",
}


@pytest.mark.parametrize("text", WRITTEN)
def test_in_full(text: str) -> None:
    assert in_full(SqlText(text)).text == WRITTEN[text]


@pytest.mark.parametrize("condition", ["USING (k, at)", "ON o.k = d.k AND o.at >= d.at"])
def test_no_row_of_the_right_side_of_an_asof_join_is_left_out(condition: str) -> None:
    """Another one would be the nearest; rows of the left side are independent of each other."""
    left, right = analyse(f"SELECT 1 FROM o ASOF JOIN d {condition} WHERE d.v = 1").tables
    assert right.node is not None
    assert scope_of(right.node) is None
    assert left.node is not None
    assert scope_of(left.node) is not None
