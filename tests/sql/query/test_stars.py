"""``*`` of a table, whose columns may be others tomorrow, and of a query, which has its own."""

from __future__ import annotations

import pytest

from penstock.sql.query.stars import selects_all
from penstock.sql.tokens import tokenize

OF_TABLES = (
    "SELECT * FROM t",
    "SELECT t.* FROM t",
    "SELECT a, t.* EXCEPT (b) FROM t JOIN u ON t.id = u.id",
    "WITH x AS (SELECT * FROM t) SELECT a FROM x",
    "WITH x AS (SELECT a FROM t) SELECT * FROM x, u",
    "SELECT struct(*) FROM t",
    "SELECT s.t.* FROM s.t",
    "SELECT a.b.* FROM (SELECT a FROM t) AS a",
    "SELECT a FROM (SELECT * FROM t)",
    "SELECT a FROM u UNION ALL SELECT * FROM t",
    "FROM t SELECT *",
    "CREATE TEMP VIEW v AS SELECT * FROM t",
)
OF_QUERIES = (
    "SELECT a FROM t",
    "SELECT a * 2, count(*) FROM t",
    "WITH x AS (SELECT a FROM t) SELECT * FROM x",
    "WITH x AS (SELECT a FROM t) SELECT x.*, u.b FROM x JOIN u ON x.a = u.a",
    "SELECT * FROM (SELECT a FROM t)",
    "WITH x AS (SELECT a FROM t), y AS (SELECT * FROM x) SELECT * FROM y",
)


@pytest.mark.parametrize("text", OF_TABLES)
def test_columns_follow_those_of_a_table(text: str) -> None:
    assert selects_all(tokenize(text))


@pytest.mark.parametrize("text", OF_QUERIES)
def test_columns_are_those_of_the_text(text: str) -> None:
    assert not selects_all(tokenize(text))
