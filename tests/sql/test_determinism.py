"""Which queries are row by row over one table; the reason where one is not."""

from __future__ import annotations

import pytest

from penstock.sql.determinism import volatile_calls, why_not
from penstock.sql.tables import analyse
from penstock.sql.tokens import tokenize


@pytest.mark.parametrize(
    "query",
    [
        "SELECT a, upper(b) FROM t WHERE c > 1",
        "SELECT * FROM (SELECT a FROM ((SELECT a FROM t))) x WHERE a > 1",
        "WITH q AS (SELECT a FROM t) SELECT a + 1 FROM q",
        "SELECT a, explode(b) FROM t",
        "SELECT filter(a, x -> x > 1), transform(a, x -> x + 1) FROM t",
        "SELECT CASE WHEN a IN (1, 2) THEN 1 END, CAST(a AS DECIMAL(10, 2)), a::int FROM t AS x",
        "SELECT a FROM t ORDER BY a",
    ],
)
def test_row_by_row(query: str) -> None:
    assert why_not(analyse(query)) is None


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("SELECT count(*) FROM t", "count() looks at several rows"),
        ("SELECT a, any(b) FROM t GROUP BY a", "any() looks at several rows"),
        ("SELECT a FROM t GROUP BY a", "GROUP BY"),
        ("SELECT DISTINCT a FROM t", "DISTINCT"),
        ("SELECT row_number() OVER (ORDER BY a) FROM t", "a window"),
        ("SELECT a FROM t LIMIT 3", "LIMIT"),
        ("SELECT a FROM t UNION ALL SELECT a FROM t", "a set operation"),
        ("SELECT a FROM t, u", "a join"),
        ("SELECT a FROM t LATERAL VIEW explode(b) x AS y", "LATERAL"),
        ("SELECT a FROM t WHERE a IN (SELECT b FROM t)", "a subquery in a condition"),
        ("SELECT a FROM t WHERE EXISTS (SELECT 1 FROM t)", "a subquery in a condition"),
        ("SELECT (SELECT a FROM t) b", "a subquery in an expression"),
        ("SELECT a, now() FROM t", "now() differs from run to run"),
        ("SELECT a FROM t WHERE d > CURRENT_DATE", "CURRENT_DATE differs from run to run"),
        ("SELECT rand() FROM t", "rand() differs from run to run"),
        ("SELECT mine(a) FROM t", "mine() is not known"),
        ("SELECT a FROM t TABLESAMPLE (10 PERCENT)", "TABLESAMPLE"),
        ("SELECT 1", "it reads 0 tables"),
    ],
)
def test_not_row_by_row(query: str, reason: str) -> None:
    why = why_not(analyse(query))
    assert why is not None
    assert reason in why


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("SELECT now(), current_date FROM t", ["now", "current_date"]),
        ("SELECT Rand() AS r", ["Rand"]),
        ("SELECT `uuid`() AS r", ["`uuid`"]),
        ("SELECT now, uuid, rand FROM t", []),
        ("SELECT 'now()' AS a -- now()", []),
        ("SELECT t.random FROM t", []),
        ("SELECT input_file_name() FROM t", ["input_file_name"]),
        ("SELECT * FROM t TABLESAMPLE (10 PERCENT)", ["TABLESAMPLE"]),
        ("SELECT 1", []),
        ("", []),
    ],
)
def test_calls_are_found(text: str, named: list[str]) -> None:
    assert [token.text for token in volatile_calls(tokenize(text))] == named
