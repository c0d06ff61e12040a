"""Arguments put into the text of a macro's definition."""

from __future__ import annotations

import pytest

from penstock.errors import UnsupportedFeature
from penstock.sql.macros import bare, filled

FILLED = {
    "a + 1": "A + 1",
    "t.a + `a` - 'a' -- a": "t.a + A - 'a' -- a",
    "a(a) + b(a)": "a(A) + b(A)",
    "f(a := a, b => a)": "f(a := A, b => A)",
    "SELECT a AS a, a b FROM t": "SELECT A AS a, A b FROM t",
    "SELECT x a, (a) a, INTERVAL a DAY FROM s.t a": "SELECT x a, (A) a, INTERVAL A DAY FROM s.t a",
    "SELECT a.x, t.a FROM t": "SELECT A.x, t.a FROM t",
    "SELECT a.x FROM t AS a": "SELECT a.x FROM t AS a",
    "SELECT a.x FROM t a": "SELECT a.x FROM t a",
    "SELECT r.a, a FROM (VALUES (a)) r(a)": "SELECT r.a, A FROM (VALUES (A)) r(a)",
    "FROM t AS r(a)": "FROM t AS r(a)",
    "FROM t r(a)": "FROM t r(a)",
    "{a: a, 'b': a}": "{a: A, 'b': A}",
    "l[a:a] || l[a]": "l[A:A] || l[A]",
    "a -> 'k'": "A -> 'k'",
    "a -> 0": "A -> 0",
}


@pytest.mark.parametrize("text", FILLED)
def test_filled(text: str) -> None:
    assert filled(text, {"a": "A"}, "duckdb") == FILLED[text]


@pytest.mark.parametrize("text", ["f(l, a -> a + 1)", "f(l, lambda a: a + 1)"])
def test_a_lambda_with_the_name_of_a_parameter(text: str) -> None:
    with pytest.raises(UnsupportedFeature, match="a lambda's parameter is called a"):
        filled(text, {"a": "A"}, "duckdb")


@pytest.mark.parametrize(
    ("value", "wanted"), [("1", "1"), ("'x'", "'x'"), ("$n", "$n"), ("x", "(x)"), ("-1", "(-1)")]
)
def test_what_is_no_constant_is_in_brackets(value: str, wanted: str) -> None:
    assert bare(value, "spark") == wanted
