"""Scripts in DuckDB's dialect: what cannot be translated is reported at its place.

Tests ``model/script/rewrites.py`` (spellings that Spark lacks).
"""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.errors import Diagnostic
from penstock.model.query.query import read_query
from penstock.model.script import rewrites
from penstock.model.script.rewrites import duckdb_forms
from penstock.model.values.asset import Names
from penstock.sql.missing import _of_pyspark
from penstock.sql.tokens import tokenize
from penstock.sql.trust import FUNCTIONS

NAMES = Names(("main",), aliases={"dl": "main"})


def findings(text: str, dialect: str = "duckdb") -> tuple[Diagnostic, ...]:
    return read_query(text, Path("m.sql"), names=NAMES, dialect=dialect)[1]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("-- head\nSELECT id,\n  §hash(id) AS h FROM dl.t", "hash"),
        ("SELECT §a FROM dl.t UNION ALL BY NAME SELECT * FROM dl.u", "BY NAME"),
        ("SELECT id, §strftime(ts, '%c') AS s FROM dl.t", "%c"),
        ("SELECT §* REPLACE (a + 1 AS a) FROM dl.t", "REPLACE"),
        ("CREATE TEMP VIEW v AS SELECT id,\n  §hash(id) AS h FROM dl.t;\nFROM v", "hash"),
        ("SELECT upper(s) || 'x', §hash(id) FROM dl.t AT (VERSION => 3)", "hash"),
    ],
)
def test_what_cannot_be_translated_has_a_place(text: str, reason: str) -> None:
    (finding,) = findings(text.replace("§", ""))
    at = text.index("§")
    line, column = text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)
    assert (finding.location.line, finding.location.column) == (line, column)
    assert reason in finding.message
    assert finding.severity == "error"


def test_what_can_be_translated_is_no_finding() -> None:
    text = "SELECT * EXCLUDE (a), log(x), l[-1], 1_000, strftime(ts, '%Y-%m-%dT%H') FROM dl.t"
    assert findings(text) == ()


@pytest.mark.parametrize(
    "text",
    [
        "SELECT §strptime(s, '%Y') AS d FROM dl.t",
        "SELECT id,\n  §arg_max(a, b) AS m FROM dl.t",
        "SELECT * §EXCLUDE (a) FROM dl.t",
        "SELECT §1_000 AS n",
        "SELECT §unnest([1, 2]) AS x",
        "SELECT §date_diff('day', a, b) AS days FROM dl.t",
        "SELECT l§[1:2] AS part FROM dl.t",
        "SELECT §COLUMNS('a') FROM dl.t",
        "SELECT §[1, 2] AS l",
        "SELECT a IN §[1, 2] AS k FROM dl.t",
        "SELECT §MAP {'k': 1} AS m",
        "SELECT §{'k': 1} AS s",
        "SELECT a FROM dl.t §UNION ALL BY NAME SELECT a FROM dl.u",
        "SELECT §DISTINCT ON (a) a FROM dl.t",
        "SELECT a FROM dl.t §USING SAMPLE 10%",
        "SELECT * §REPLACE (1 AS a) FROM dl.t",
        "SELECT dl.t.* §REPLACE (1 AS a) FROM dl.t",
        "SELECT a FROM dl.t LIMIT §10%",
        "SELECT a FROM dl.t WHERE a §GLOB 'x*'",
        "SELECT a FROM dl.t WHERE a §SIMILAR TO 'x'",
        "SELECT §range(3) AS l",
        "SELECT explode(§range(3)) AS i",
        "SELECT §today() AS d",
        "SELECT a §// 2 AS h FROM dl.t",
        "SELECT j§->>'a' AS a FROM dl.t",
        "SELECT filter(l, §lambda x: x > 1) AS k FROM dl.t",
    ],
)
def test_duckdb_forms_in_spark_name_the_dialect(text: str) -> None:
    finding = findings(text.replace("§", ""), "spark")[0]
    at = text.index("§")
    line, column = text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)
    assert (finding.location.line, finding.location.column) == (line, column)
    assert "-- dialect duckdb" in (finding.hint or "")


def test_what_spark_has_is_no_form_of_duckdb() -> None:
    text = (
        "SELECT date_diff(b, a), datediff(day, a, b), l[0], element_at(m, 'a:b'), v:path.x, "
        "strlen, t.list, transform(l, x -> x + 1), array_agg(a), 'strptime(s)', "
        "datediff('2026-01-02', a), date_diff('2026-01-02', f(a, b)) FROM dl.t"
    )
    assert findings(text, "spark") == ()


@pytest.mark.parametrize(
    "text",
    [
        "SELECT a * replace(b, 'x', 'y'), m['a'], (l)[0], f(x)[1], array(1)[0], v:l[0].b FROM dl.t",
        "SELECT CASE WHEN a THEN b[0] ELSE c[1] END[0], l[0][1], `x`[1], 6 / 2 / 3 FROM dl.t",
        "SELECT r.id FROM dl.t JOIN range(3) r ON true, range(4) s LIMIT 10 % 3",
        "SELECT id FROM (SELECT id FROM range(10)) WHERE id IN (SELECT id FROM (range(3)))",
        "SELECT range, similar, glob FROM dl.t JOIN dl.u USING (sample)",
        "SELECT DISTINCT (a), b glob FROM dl.t UNION SELECT 1, 2 ORDER BY name",
        "SELECT time_bucket(INTERVAL '1' DAY, ts), datepart('year', ts), map(1, 2) FROM dl.t",
        "SELECT sum(a) OVER (ORDER BY b RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) FROM dl.t",
    ],
)
def test_what_looks_like_duckdbs_and_is_sparks(text: str) -> None:
    assert list(duckdb_forms(tokenize(text))) == []


def test_no_function_of_spark_is_taken_for_one_of_duckdb() -> None:
    installed = _of_pyspark()
    assert "time_bucket" in installed
    assert not rewrites._FUNCTIONS & (FUNCTIONS | installed)
