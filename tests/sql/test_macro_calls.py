"""Expanding macros in text; no Spark."""

from __future__ import annotations

import pytest

from penstock.errors import QueryFailed, UnsupportedFeature
from penstock.sql.macro_calls import called, expand
from penstock.sql.macros import Book, Macro, MacroForm, Parameter
from penstock.sql.tokens import SqlText


def macro(name: str, sql: str, *names: str, dialect: str = "duckdb", kind: str = "scalar") -> Macro:
    parameters = tuple(Parameter(one) for one in names)
    return Macro(1, "main", name, (MacroForm(kind, dialect, sql, parameters),), 1)


BOOK = Book(
    (
        macro("f", "(x + 1)", "x"),
        macro("third", "l[n]", "l", "n"),
        macro("g", "concat(CAST(x AS VARCHAR), 'a')", "x", dialect="spark"),
        macro("loop", "loop(x)", "x"),
        macro("tab", "SELECT a FROM t WHERE (a > n)", "n", kind="table"),
        macro("both", "(x * 2)", "x"),
        macro("both", "SELECT both(a) FROM t LIMIT n", "n", kind="table"),
        macro("lam", "main.list_apply(l, (lambda x: (x + n)))", "l", "n"),
    )
)

EXPANDED = {
    "SELECT f(a), 'f(a)' -- f(a)": "SELECT (((a) + 1)), 'f(a)' -- f(a)",
    "SELECT f(f(2)) * 3": "SELECT (((((2 + 1))) + 1)) * 3",
    "SELECT main.F(`x y`) FROM t": "SELECT (((`x y`) + 1)) FROM t",
    "SELECT other.f(1)": "SELECT other.f(1)",
    "SELECT third(l, 2)": "SELECT (TRY_ELEMENT_AT((l), 2))",
    "SELECT third(l, -1)": "SELECT (TRY_ELEMENT_AT((l), -1))",
    "SELECT g(1)": "SELECT (concat(CAST(1 AS VARCHAR), 'a'))",
    "SELECT * FROM tab(3)": "SELECT * FROM (SELECT a FROM main.t WHERE (a > 3)) AS `tab`",
    "SELECT * FROM tab(3) AS z": "SELECT * FROM (SELECT a FROM main.t WHERE (a > 3)) AS z",
    "SELECT both(1), both(2) FROM t": "SELECT ((1 * 2)), ((2 * 2)) FROM t",
    "SELECT both(a) FROM t, both(3) AS z WHERE both(4) > 1": (
        "SELECT (((a) * 2)) FROM t, (SELECT ((a * 2)) FROM main.t LIMIT 3) AS z WHERE ((4 * 2)) > 1"
    ),
    "SELECT lam(l, 5)": "SELECT (TRANSFORM((l), x -> (x + 5)))",
}


@pytest.mark.parametrize("text", EXPANDED)
def test_expanded(text: str) -> None:
    assert "".join(expand(text, BOOK).split()) == "".join(EXPANDED[text].split())


def test_lines_stay() -> None:
    text = "SELECT f(\n  a\n),\n  b"
    assert expand(text, BOOK).count("\n") == text.count("\n")


def test_recursion_is_said() -> None:
    with pytest.raises(QueryFailed, match="calls itself"):
        expand("SELECT loop(1)", BOOK)


def test_an_index_that_is_computed_is_refused() -> None:
    with pytest.raises(UnsupportedFeature, match="index"):
        expand("SELECT third(l, n)", BOOK)


def test_names_that_are_called() -> None:
    assert called(SqlText("SELECT F(a), count(*), `odd one`(1), 'no(1)' FROM tab(3)")) == {
        *("f", "count", "odd one", "tab"),
    }
