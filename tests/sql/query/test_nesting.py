"""What stands outside of brackets and CASE."""

from __future__ import annotations

import pytest

from penstock.sql.query.nesting import conjuncts, is_in_from, outermost, table_calls
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


@pytest.mark.parametrize(
    ("query", "table"),
    [
        ("SELECT a FROM f(1)", True),
        ("SELECT a FROM t, (u JOIN (f(1)))", True),
        ("SELECT a FROM t JOIN u ON a = f(1)", False),
        ("SELECT a FROM t JOIN u ON a = b, f(1)", True),
        ("SELECT a FROM g(f(1))", False),
        ("SELECT a FROM VALUES (1), (f(1))", False),
        ("SELECT a, (f(1)) FROM t", False),
    ],
)
def test_where_tables_stand(query: str, table: bool) -> None:
    tokens = tokenize(query)
    at = next(at for at, token in enumerate(tokens) if token.text == "f")
    assert is_in_from(tokens, at) == table


def test_calls_where_tables_stand() -> None:
    tokens = tokenize("SELECT f(1) FROM l.s.F(2, (3)) AS a JOIN g(4), f(5) WHERE f(6) > h")
    found = [
        "".join(token.text for token in tokens[first : last + 1])
        for first, _, last in table_calls(tokens, {"f"}.__contains__)
    ]
    assert found == ["l.s.F(2,(3))", "f(5)"]
