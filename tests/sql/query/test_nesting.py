"""What stands outside of brackets and CASE."""

from __future__ import annotations

import pytest

from penstock.sql.query.nesting import conjuncts, outermost
from penstock.sql.tokens import tokenize


@pytest.mark.parametrize(
    ("text", "level"),
    [("a + f(b) + end", 6), ("CASE WHEN a THEN b END + end", 3), ("c.case + a", 5)],
)
def test_words_outside_of_brackets_and_cases(text: str, level: int) -> None:
    tokens = tokenize(text)
    assert len(list(outermost(tokens, 0, len(tokens)))) == level


@pytest.mark.parametrize(
    ("condition", "count"),
    [
        ("a AND b AND (c AND (d))", 4),
        ("a OR b AND c", 1),
        ("(a OR b) AND c", 2),
        ("((a OR b))", 1),
        ("x BETWEEN 1 AND 2 AND CASE WHEN a AND b THEN c END", 2),
    ],
)
def test_conjuncts(condition: str, count: int) -> None:
    assert len(conjuncts(tokenize(condition))) == count
