"""``TABLE t`` written out, wherever it is a query of its own."""

from __future__ import annotations

import pytest

from penstock.lake.sql.table_queries import in_full

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
    assert in_full(text) == WRITTEN[text]
