"""Constants of DuckDB's SQL: values, or nothing where DuckDB's is not known to be the same."""

from __future__ import annotations

import pytest

from penstock.sql.literals import Value, constant


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1 + 1", 2),
        ("(2 * 3) - -4", 10),
        ("-(5)", -5),
        ("'x' || 'y' || 'z'", "xyz"),
        ("concat('a', 'b')", "ab"),
        ("7 / 2", None),
        ("1.5 + 1", None),
        ("2147483647 + 1", None),
        ("'a' || 1", None),
        ("1 + NULL", None),
        ("random()", None),
        ("a + 1", None),
        ("1 +", None),
    ],
)
def test_values(text: str, value: Value | None) -> None:
    assert constant(text) == value
