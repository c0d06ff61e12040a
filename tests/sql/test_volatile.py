"""Functions whose value may differ although their arguments do not, found by their names."""

from __future__ import annotations

import pytest

from penstock.sql.tokens import tokenize
from penstock.sql.volatile import volatile_calls


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
