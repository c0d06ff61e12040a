"""Macros and variables of scripts: what a text becomes, compared with what DuckDB does."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from penstock.model.at_macros import MacroError
from penstock.model.macro_libraries import Libraries, find_libraries
from penstock.model.script_macros import Expanded, ScriptMacros, expand_calls

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
