"""Queries in Spark's SQL: what is refused before Spark sees it, and what never is.

Tests ``sql/query/edits.py`` (FROM before SELECT).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from penstock.errors import Diagnostic
from penstock.model.query.query import Query, read_query
from penstock.model.values.asset import Names

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: what sqlglot cannot read and Spark can, with the tables in it
SPARKS_OWN = {
    "TABLE t |> SET x = 1 |> WHERE x > 0 |> DROP y": ["t"],
    "FROM s.t |> JOIN u USING (id) |> SELECT a, b |> ORDER BY a |> OFFSET 1": ["s.t", "u"],
    "VALUES (0), (1) v(a) |> SELECT a": [],
    "WITH RECURSIVE r(n) MAX RECURSION LEVEL 9 AS (SELECT 1 FROM t UNION ALL SELECT n + 1 FROM r)"
    " SELECT * FROM r, u AS x": ["t", "u"],
    "SELECT * FROM f(TABLE(t) PARTITION BY a ORDER BY b), u": ["t", "u"],
    "SELECT * FROM f(TABLE(SELECT a FROM t) WITH SINGLE PARTITION)": ["t"],
    "SELECT row_number() OVER IDENTIFIER('w') FROM t WINDOW w AS (ORDER BY a)": ["t"],
    "SELECT a !< b, a !> b, ~~a FROM t WHERE extract(YEAR FROM d) = 1": ["t"],
    "SELECT a >>> 2 FROM t WHERE b IS DISTINCT FROM c": ["t"],
    "SELECT corr(DISTINCT a, b), randstr(1, 2, 3) FROM (SELECT * FROM t) GROUP BY a, b": ["t"],
    "SELECT * FROM t WATERMARK ts DELAY OF INTERVAL 10 SECONDS AS w": ["t"],
    "SELECT * FROM t JOIN u APPROX NEAREST 5 BY DISTANCE t.a - u.a": ["t", "u"],
    "SELECT q FROM t LATERAL VIEW explode(m) e LATERAL VIEW OUTER json_tuple(x, y) j q, z": ["t"],
    "SELECT * FROM (t) PIVOT (ceil(sum(a)), avg(a) + 1 AS b FOR c IN ('x', 'y'))": ["t"],
    "FROM t SELECT * SELECT * WHERE a > 1": ["t"],
    "SELECT a, from AS b FROM t": ["t"],
}  # fmt: skip
#: what sqlglot reads otherwise than somebody may think
ODD = ["SELECT a, order, limit FROM t", "SELECT a, from FROM t", "SELECT 1 AS from"]


def read(text: str) -> tuple[Query | None, tuple[Diagnostic, ...]]:
    return read_query(text, Path("q.sql"), names=Names(("main",)))


@pytest.mark.parametrize("text", SPARKS_OWN)
def test_what_only_spark_can_read_is_no_error(text: str) -> None:
    query, (finding,) = read(text)
    assert query is not None
    assert (finding.severity, finding.rule) == ("warning", "sparks-own")
    assert [table.qualified.removeprefix("main.") for table in query.reads] == SPARKS_OWN[text]


@pytest.mark.parametrize("text", ODD)
def test_words_that_are_columns(text: str) -> None:
    assert read(text)[1] == ()


@pytest.mark.parametrize(
    ("text", "column", "said"),
    [
        ("SELECT a,, b", 10, "before the comma"),
        ("SELECT a,, b FROM t", 10, "before the comma"),
        ("SELECT a, (SELECT b, ) FROM t", 20, "after the comma"),
        ("SELECT f(a,, b) FROM t", 12, "before the comma"),
        ("SELECT f(a, ) FROM t", 11, "after the comma"),
        ("SELECT f(, a) FROM t", 10, "before the comma"),
        ("SELECT a FROM t,, u", 17, "before the comma"),
        ("SELECT a FROM t GROUP BY a,", 27, "after the comma"),
        ("SELECT a FROM t GROUP BY", 17, "after GROUP BY"),
        ("SELECT a FROM t ORDER   BY", 17, "after ORDER"),
        ("SELECT a FROM t JOIN u ON", 24, "after ON"),
        ("SELECT FROM t", 1, "names no column"),
        ("SELECT a b c FROM t", 12, "near `c`"),
        ("SELECT a FROM t WHERE", 17, "near `WHERE`"),
        ("SELECT a FORM t", 15, "near `t`"),
        ("SELECT a FROM t |> , b", 20, "the query cannot be read"),
    ],
)
def test_what_no_parser_takes_is_an_error_with_its_place(text: str, column: int, said: str) -> None:
    query, (finding,) = read(text)
    assert query is None
    assert (finding.severity, finding.rule) == ("error", "unreadable-query")
    assert (finding.location.line, finding.location.column) == (1, column)
    assert said in finding.message


@pytest.mark.parametrize(
    "text", ["SELECT * FROM a.IDENTIFIER('t')", "TABLE t |> JOIN IDENTIFIER('u') USING (a)"]
)
def test_a_computed_name_is_refused_there_too(text: str) -> None:
    assert "cannot be computed by IDENTIFIER" in read(text)[1][0].message


@pytest.mark.spark
def test_spark_takes_what_is_said_to_be_its_own(spark: SparkSession) -> None:
    refused = []
    for text in (*SPARKS_OWN, *ODD):
        try:
            spark.sql(text)
        except Exception as error:  # the tables are not there: only its grammar is asked
            refused += [text] if "PARSE_SYNTAX_ERROR" in str(error) else []
    assert refused == []


def test_a_name_that_is_one_word_to_the_parser_alone_is_placed_by_its_end() -> None:
    query, findings = read("SELECT a FROM §u")
    assert query is not None, findings
    assert [(edit.start, edit.end) for edit in query.parts[0].sources] == [(14, 16)]
