"""Which queries are simple enough to be answered without Spark."""

from __future__ import annotations

import pytest

from penstock.sql.plain_select import PlainSelect, SortKey, plain_select


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT * FROM t", PlainSelect(("t",))),
        (" select `a b`, c\nfrom main.`x y`;", PlainSelect(("main", "x y"), ("a b", "c"))),
        ("SELECT * FROM l.s.t LIMIT 3", PlainSelect(("l", "s", "t"), limit=3)),
        (
            "SELECT a FROM t WHERE b = 'x' LIMIT 3",
            PlainSelect(("t",), ("a",), None, "b = 'x'", (), 3),
        ),
        ("SELECT * FROM t WHERE a = ' LIMIT 3'", PlainSelect(("t",), where="a = ' LIMIT 3'")),
        ("SELECT count(*) FROM t", PlainSelect(("t",), count="count(1)")),
        ("SELECT COUNT(1) AS n FROM t", PlainSelect(("t",), count="n")),
        (
            "SELECT a FROM t ORDER BY a DESC, `b` nulls last",
            PlainSelect(
                ("t",), ("a",), order=(SortKey("a", True, False), SortKey("b", False, False))
            ),
        ),
    ],
)
def test_plain(text: str, expected: PlainSelect) -> None:
    assert plain_select(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT count(*) FROM t", PlainSelect(("t",), count="count_star()")),
        ("SELECT count(1) FROM t", PlainSelect(("t",), count="count(1)")),
        (
            "SELECT a FROM t ORDER BY a DESC, b, c NULLS FIRST",
            PlainSelect(
                ("t",),
                ("a",),
                order=(
                    SortKey("a", True, False),
                    SortKey("b", False, False),
                    SortKey("c", False, True),
                ),
            ),
        ),
        ("SELECT `a` FROM t", None),
    ],
)
def test_plain_in_the_dialect_of_duckdb(text: str, expected: PlainSelect | None) -> None:
    assert plain_select(text, "duckdb") == expected


@pytest.mark.parametrize(
    "text",
    [
        "SELECT a + 1 FROM t",
        "SELECT a AS b FROM t",
        "SELECT a b FROM t",
        'SELECT "a" FROM t',
        "SELECT DISTINCT a FROM t",
        "SELECT current_date FROM t",
        "SELECT t.a FROM t",
        "SELECT * FROM t, u",
        "SELECT * FROM t u",
        "SELECT * FROM t AT (VERSION => 3)",
        "SELECT * FROM t -- all\n",
        "SELECT * FROM t ORDER BY 1",
        "SELECT * FROM t ORDER BY a + 1",
        "SELECT * FROM t LIMIT ALL",
        "SELECT * FROM 'x.csv'",
        "SELECT count(*) FROM t ORDER BY a",
        "FROM t",
        "-- dialect duckdb\nSELECT * FROM t",
    ],
)
def test_left_to_spark(text: str) -> None:
    assert plain_select(text) is None
