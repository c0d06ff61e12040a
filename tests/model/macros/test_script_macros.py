"""Macros and variables of scripts: what a text becomes, compared with what DuckDB does.

Tests ``model/macros/script_macros.py`` (SET VARIABLE).
"""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from penstock.model.macros.macro_libraries import Libraries, find_libraries
from penstock.model.macros.script_macros import Expanded, ScriptMacros, expand_calls
from penstock.model.script.at_text import MacroError

ROOT = Path("/project")
MACROS = """
CREATE MACRO plus(a, b := 1 + 1) AS a + b;
CREATE MACRO shift(a) AS a, (a, b) AS a * 10 + b;
CREATE MACRO typed(a DOUBLE) AS a / 2;
CREATE MACRO nested(a) AS plus(plus(a * 2), b := shift(a, 3));
CREATE MACRO field(s) AS s.v;
CREATE MACRO made(v) AS {v: v, 'w': v};
CREATE MACRO part(l, n) AS l[n:n + 1];
CREATE MACRO key(j) AS j ->> 'a';
CREATE MACRO dual(x) AS x * 2;
CREATE MACRO dual(x) AS TABLE SELECT x AS c;
CREATE MACRO seq(n) AS TABLE SELECT i AS v, n AS m FROM range(n) r(i) WHERE i < n;
CREATE MACRO vals(v) AS TABLE SELECT t.v AS w, v AS z FROM (VALUES (5)) t(v);
CREATE MACRO least_of(n) AS (SELECT min(v) FROM seq(n));
CREATE MACRO many(n) AS TABLE (SELECT n AS c), (n, m) AS TABLE (SELECT n + m AS c);
CREATE MACRO abs(x) AS 42;
CREATE MACRO total(x) AS sum(x);
CREATE MACRO nothing(x := NULL) AS x;
CREATE FUNCTION named(x) AS x || '!';
CREATE MACRO setting() AS getvariable('floor') + 1;
"""
CALLS = (
    "SELECT plus(1), plus(1, 5), plus(b := 3, a := 4), PLUS(b => 1, a => 2) AS c",
    "SELECT shift(7) AS a, shift(1, 2) + 1 AS b, -shift(2) AS c",
    "SELECT typed(3), typeof(typed(3::SMALLINT)) AS t",
    "SELECT nested(4) AS a, nested(nested(1)) AS b",
    "SELECT field({'v': 3}) AS a, made(1) AS b, part([1, 2, 3], 2) AS c",
    "SELECT key('{\"a\": 1}'::JSON) AS a",
    "SELECT dual(3) AS a, c FROM dual(4)",
    "SELECT * FROM seq(3) ORDER BY v",
    "SELECT s.v, r.m FROM seq(2) s, seq(2) AS r ORDER BY ALL",
    "SELECT * FROM vals(1)",
    "SELECT least_of(4) AS a, (SELECT count(*) FROM seq(plus(5))) AS b",
    "SELECT * FROM many(1), many(1, 2) AS x",
    "SELECT abs(-1), 'abs(-1)' AS t -- abs(-1)",
    "SELECT total(v), total(v * 2) AS t FROM seq(4)",
    "SELECT v, total(v) OVER (ORDER BY v) AS t FROM seq(3) ORDER BY v",
    "SELECT nothing() IS NULL AS a, named('x') AS b",
    "SELECT setting() AS a, getvariable('FLOOR') AS b, getvariable('top') AS c",
    "SELECT getvariable('list')[1] AS a FROM seq(5) WHERE v > getvariable('floor') - 7",
    "WITH dual(x) AS (SELECT 1) SELECT x FROM dual UNION ALL SELECT dual(2) AS x ORDER BY x",
)
VARIABLES = """
SET VARIABLE floor = 3 * 3;
SET VARIABLE top = (SELECT max(v) FROM seq(4)) + getvariable('floor');
SET VARIABLE list = [getvariable('floor'), 2];
"""


def libraries(**texts: str) -> Libraries:
    """Those of the texts, of ``macros/NAME.sql``."""
    given = {ROOT / f"macros/{name}.sql": (text, ()) for name, text in texts.items()}
    found, findings = find_libraries({}, given, ROOT, ROOT / "models", "spark")
    assert [str(finding) for finding in findings] == []
    return found


def expanded(text: str, *uses: str, dialect: str = "spark", **texts: str) -> Expanded:
    made = expand_calls(text, 0, dialect, ScriptMacros(libraries=libraries(**texts), uses=uses))
    assert made is not None
    return made


def wrong(text: str, *uses: str, dialect: str = "spark", **texts: str) -> MacroError:
    with pytest.raises(MacroError) as caught:
        expanded(text, *uses, dialect=dialect, **texts)
    return caught.value


LIBRARY = libraries(all=f"-- macros\n-- dialect duckdb\n{MACROS}")


@pytest.mark.parametrize("call", CALLS)
def test_as_duckdb(call: str) -> None:
    with duckdb.connect() as real:
        real.execute(MACROS)
        real.execute(VARIABLES)
        wanted = real.execute(call)
        columns, rows = [column[0] for column in wanted.description or ()], wanted.fetchall()
    macros = ScriptMacros(libraries=LIBRARY)
    made = expand_calls(f"{VARIABLES}{call}", 0, "duckdb", macros)
    assert made is not None
    with duckdb.connect() as plain:
        found = plain.execute(made.mapped.text)
        assert [column[0] for column in found.description or ()] == columns
        assert found.fetchall() == rows


PLACED = {
    "CREATE TEMP MACRO f(x) AS x * 2; SELECT f(a + 1)": "SELECT ((a + 1) * 2)",
    "CREATE OR REPLACE TEMP FUNCTION f(x) AS x; SELECT f(1)": "SELECT (1)",
    "SET VARIABLE x = 1 + 1; SELECT getvariable('X')": "SELECT (1 + 1)",
    "SET VARIABLE x TO '{partition}'; SELECT getvariable('x')": "SELECT '{partition}'",
    "SET VARIABLE x = $n; RESET VARIABLE x; SELECT getvariable('x')": "SELECT NULL",
    "SET VARIABLE x = f(2); SELECT getvariable('x')": "SELECT ((2 + 1))",
    "SELECT main.f(1), f, t.f(2), CAST(a AS f(2)), f(3)": "SELECT main.f(1), f, t.f(2), "
    "CAST(a AS f(2)), (3 + 1)",
    "WITH f(a) AS (SELECT f(1)) SELECT a FROM f": "WITH f(a) AS (SELECT (1 + 1)) SELECT a FROM f",
    "SELECT g(1) FROM g(2)": "SELECT (1) FROM (SELECT 2 AS c) AS `g`",
}


@pytest.mark.parametrize("text", PLACED)
def test_in_the_text_of_spark(text: str) -> None:
    library = (
        "-- macros\nCREATE MACRO f(x) AS x + 1; CREATE MACRO g(x) AS x;"
        "CREATE MACRO g(x) AS TABLE SELECT x AS c"
    )
    made = expanded(text, lib=library)
    assert made.mapped.text.rpartition("; ")[2] == PLACED[text]


def test_a_value_that_is_not_constant_is_a_view() -> None:
    text = "SET VARIABLE x = (SELECT 1);\nSET VARIABLE r = rand();\nSELECT getvariable('r')"
    assert expanded(text).mapped.text == (
        "CREATE TEMP VIEW penstock_variable_1 AS SELECT ((SELECT 1)) AS value;\n"
        "CREATE TEMP VIEW penstock_variable_2 AS SELECT (rand()) AS value;\n"
        "SELECT (SELECT value FROM penstock_variable_2)"
    )


@pytest.mark.parametrize(
    ("text", "at", "message", "hint"),
    [
        ("SET VARIABLE floor = 1; SELECT getvariable('flor')", 31, "is not set", "mean floor?"),
        ("SELECT 1, getvariable('x')", 10, "x is not set", "SET VARIABLE x = ..."),
        ("SELECT getvariable(x)", 7, "takes the name as a text", "getvariable('x')"),
        ("SET VARIABLE x", 14, "the variable x has no value", "SET VARIABLE x = value"),
        ("SET VARIABLE x = 1, y = 2", 18, "sets one variable", "SET VARIABLE x = value"),
        ("SET VARIABLE x = abc", 17, "no column `abc`", "'text'"),
        ("RESET VARIABLE x y", 17, "`y` is not expected", "RESET VARIABLE x"),
        ("SELECT 1, f(1, 2)", 10, "do not fit the macro f (macros/lib.sql:2)", "f(x)"),
        ("SELECT 1, v()", 10, "x is not set, in v (macros/lib.sql:3)", "SET VARIABLE x"),
        ("SELECT * FROM f(1)", 14, "is an expression", "AS TABLE"),
        ("SELECT t(1)", 7, "is a table", "in a FROM"),
        ("CREATE TEMP MACRO m(a) AS ;", 25, "what the macro stands for is expected", "CREATE"),
        ("CREATE TEMP FUNCTION m(a INT) RETURNS INT RETURN a", 30, "RETURNS", "CREATE MACRO"),
    ],
)
def test_what_is_wrong_at_which_place(text: str, at: int, message: str, hint: str) -> None:
    library = (
        "-- macros\nCREATE MACRO f(x) AS x + 1;\nCREATE MACRO v() AS getvariable('x');\n"
        "CREATE MACRO t(x) AS TABLE SELECT x AS c"
    )
    error = wrong(text, lib=library)
    assert message in str(error)
    assert hint in error.hint
    assert error.at == at


def test_a_variable_of_a_manual_script_is_a_constant() -> None:
    text = "SET VARIABLE x = (SELECT 1); INSERT INTO t SELECT getvariable('x')"
    with pytest.raises(MacroError, match="a variable of a manual script is a constant"):
        expand_calls(text, 0, "spark", ScriptMacros(), manual=True)


def test_what_calls_nothing_stays_as_it_is() -> None:
    assert expand_calls("SELECT a FROM b", 0, "spark", ScriptMacros(libraries=LIBRARY)) is None
