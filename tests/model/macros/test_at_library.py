"""SQLMesh's macros that make SQL of their arguments, as SQLMesh 0.236.4 renders them."""

from __future__ import annotations

import pytest
import sqlglot
from sqlglot import exp

from penstock.model.macros.at_macros import expand
from penstock.model.macros.at_scope import AtMacros, Call
from penstock.model.script.at_text import MacroError


def expanded(text: str, dialect: str = "spark", macros: AtMacros | None = None) -> str:
    made = expand(text, 0, dialect, macros or AtMacros())
    return text if made is None else made.text


def tree(query: str, dialect: str) -> exp.Expr:
    """A query without quotes of names."""
    found = sqlglot.parse_one(query, dialect=dialect)
    for name in found.find_all(exp.Identifier):
        name.set("quoted", False)
    return found


KEY = "_sqlmesh_surrogate_key_null_"
CASE = "CASE WHEN a IS NULL AND b IS NULL THEN NULL ELSE COALESCE(a, 0) {} COALESCE(b, 0) END"


@pytest.mark.parametrize(
    ("text", "sqlmesh"),
    [
        ("@SAFE_ADD(a, b)", CASE.format("+")),
        ("@SAFE_SUB(a, b)", CASE.format("-")),
        ("@SAFE_ADD(@EACH([a, b], x -> x))", CASE.format("+")),
        (
            "@SAFE_ADD(a + 1, c)",
            "CASE WHEN (a + 1) IS NULL AND c IS NULL THEN NULL "
            "ELSE COALESCE(a + 1, 0) + COALESCE(c, 0) END",
        ),
        (
            "@SAFE_DIV(a, b), @SAFE_DIV(a + 1, b - 2)",
            "a / NULLIF(b, 0), (a + 1) / NULLIF(b - 2, 0)",
        ),
        (
            "@GENERATE_SURROGATE_KEY(a, b)",
            f"MD5(CONCAT(COALESCE(CAST(a AS STRING), '{KEY}'), '|', "
            f"COALESCE(CAST(b AS STRING), '{KEY}')))",
        ),
        (
            "@PIVOT(status, ['x', 'y'])",
            "SUM(CASE WHEN status = 'x' THEN 1 ELSE 0 END) AS `x`, "
            "SUM(CASE WHEN status = 'y' THEN 1 ELSE 0 END) AS `y`",
        ),
        (
            "@PIVOT(a, ['v'], then_value := tv, suffix := '_sfx', quote := FALSE)",
            "SUM(CASE WHEN a = 'v' THEN tv ELSE 0 END) AS v_sfx",
        ),
        (
            "@HAVERSINE_DISTANCE(a, b, c, d, 'km')",
            "7922 * ASIN(SQRT((POWER(SIN(RADIANS((c - a) / 2)), 2)) + (COS(RADIANS(a)) * "
            "COS(RADIANS(c)) * POWER(SIN(RADIANS((d - b) / 2)), 2)))) * 1.60934",
        ),
        ("@VAR('x', 5)", "5"),
    ],
)
def test_it_is_what_sqlmesh_renders(text: str, sqlmesh: str) -> None:
    made = tree(f"SELECT {expanded(text)} FROM t", "spark")
    assert made == tree(f"SELECT {sqlmesh} FROM t", "spark")


@pytest.mark.parametrize(
    ("text", "sqlmesh"),
    [
        (
            "SELECT @GENERATE_SURROGATE_KEY(a, b), "
            "@GENERATE_SURROGATE_KEY(a, hash_function := 'SHA256')",
            f"SELECT MD5(CONCAT(COALESCE(CAST(a AS TEXT), '{KEY}'), '|', COALESCE(CAST(b AS TEXT), "
            f"'{KEY}'))), SHA256(CONCAT(COALESCE(CAST(a AS TEXT), '{KEY}')))",
        ),
        (
            "@DEDUPLICATE(t, [a, b::date], ['c DESC', 'd ASC'])",
            "SELECT * FROM t QUALIFY ROW_NUMBER() OVER (PARTITION BY a, CAST(b AS DATE) "
            "ORDER BY c DESC, d ASC) = 1",
        ),
    ],
)
def test_it_is_what_sqlmesh_renders_for_duckdb(text: str, sqlmesh: str) -> None:
    assert tree(expanded(text, "duckdb"), "duckdb") == tree(sqlmesh, "duckdb")


def test_what_spark_has_in_other_words() -> None:
    assert expanded("@DEDUPLICATE(s.t, [a], ['c DESC'])") == (
        "SELECT * EXCEPT (_w) FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY a ORDER BY c DESC) "
        "AS _w FROM s.t) AS _t WHERE _w = 1"
    )
    assert expanded("@GENERATE_SURROGATE_KEY(a, hash_function := 'SHA256')").startswith("SHA2(CON")


def test_a_macro_of_the_project_stands_before_it() -> None:
    def own(call: Call) -> str:
        return f"mine({', '.join(call.plain)})"

    assert expanded("@SAFE_ADD(a, b)", macros=AtMacros({}, {"safe_add": own})) == "mine(a, b)"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("@SAFE_DIV(a)", "@SAFE_DIV has 1 arguments"),
        ("@DEDUPLICATE(t, [a], [c])", "`c` is not a text"),
        ("@VAR('x')", "macro @x does not exist"),
        ("@HAVERSINE_DISTANCE(a, b, c, d, 'm')", "`m` is not a unit of @HAVERSINE_DISTANCE"),
    ],
)
def test_what_is_wrong(text: str, message: str) -> None:
    with pytest.raises(MacroError, match=message):
        expanded(text)
