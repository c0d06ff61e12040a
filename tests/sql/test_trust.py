"""What SQL of a catalog may do, and what it may not wherever it stands. Starts no Spark."""

from __future__ import annotations

import pytest

from penstock.errors import UnsupportedFeature
from penstock.sql.trust import harmless_expression, harmless_query

HARMLESS = [
    "SELECT a, upper(b) AS u FROM main.t WHERE a IN (1, 2) AND EXISTS (SELECT 1 FROM s)",
    "WITH c(x) AS (SELECT 1), d(y) AS (SELECT x FROM c) SELECT y FROM d",
    "SELECT v.a, sum(v.a) OVER (PARTITION BY b ORDER BY a) FROM (VALUES (1, 2)) v(a, b)",
    "SELECT transform(l, x -> x + 1) AS using_, CAST(a AS DECIMAL(10, 2)) FROM t JOIN u USING (a)",
    "SELECT a FROM t AT (VERSION => 3) LATERAL VIEW explode(l) e AS x",
    "SELECT 'reflect(1); TRANSFORM(a) USING x' AS text, `text` FROM t",
]
HARMFUL = [
    ("SELECT reflect('java.lang.System', 'getProperty', 'user.name')", "calls reflect"),
    ("SELECT `Reflect` ('a', 'b')", "calls `Reflect`"),
    ("SELECT reflect/* c */('a', 'b')", "calls reflect"),
    ("SELECT reflect -- c\n('a', 'b')", "calls reflect"),
    ("SELECT (SELECT max(java_method('a', 'b')) FROM t)", "calls java_method"),
    ("SELECT a FROM t WHERE a IN (SELECT try_reflect('a', 'b'))", "calls try_reflect"),
    ("SELECT upper(reflect('a', 'b')) AS upper", "calls reflect"),
    ("SELECT system.builtin.upper('a')", "calls upper"),
    ("SELECT IDENTIFIER('reflect')('a', 'b')", "calls IDENTIFIER"),
    ("SELECT 1 AS a, reflect('a', 'b') AS (c)", "calls reflect"),
    ("WITH reflect AS (SELECT 1) SELECT reflect('a', 'b') FROM reflect", "calls reflect"),
    ("SELECT /*+ COALESCE(1) */ reflect('a', 'b')", "calls reflect"),
    ("SELECT my_udf(a) FROM t", "calls my_udf"),
    ("SELECT TRANSFORM(a) USING 'sh' AS (x) FROM t", "runs a program"),
    ("FROM t MAP a USING 'sh'", "holds MAP"),
    ("FROM t |> SELECT a", "holds |>"),
    ("FROM t INSERT OVERWRITE DIRECTORY '/tmp/x' SELECT a", "holds INSERT"),
    ("SELECT 1; SELECT 2", "holds ;"),
    ("SELECT $$a$$", r"holds \$"),
    ("SELECT * FROM text.`/etc/passwd`", "may read a file"),
    ("SELECT * FROM a, `CSV` . `/etc/passwd` AS t", "may read a file"),
    ("SELECT * FROM `a.b.TextFormat`.`/etc/passwd`", "may read a file"),
    ("SELECT * FROM parquet.data", "reads the file parquet.data"),
    ("SELECT * FROM read_csv('/etc/passwd')", "calls read_csv"),
    ("SELECT 1 /* a /* b */ , reflect('a', 'b') */", "comment"),
    ("SELECT 1 -- \\\n, 2", "comment"),
    ("SELECT 1\x0b", "control"),
    ("SELECT \u2028 1", "not understood"),
    ("BEGIN SELECT 1", "other than a query"),
    ("DROP TABLE t", "other than a query"),
    ("SET a = b", "other than a query"),
]


@pytest.mark.parametrize("text", HARMLESS)
def test_what_only_computes(text: str) -> None:
    assert harmless_query(text, "the view v", lambda _, __: False) == text


@pytest.mark.parametrize(("text", "why"), HARMFUL)
def test_what_does_more(text: str, why: str) -> None:
    with pytest.raises(UnsupportedFeature, match=why.replace("|", r"\|")):
        harmless_query(text, "the view v", lambda _, __: False)


def test_functions_of_the_lake_may_be_called() -> None:
    def own(schema: str | None, name: str) -> bool:
        return (schema, name) in {(None, "snapshots"), ("main", "my_macro")}

    text = "SELECT main.my_macro(a) FROM snapshots()"
    assert harmless_query(text, "the view v", own) == text
    with pytest.raises(UnsupportedFeature, match="calls my_macro"):
        harmless_query("SELECT s.my_macro(a)", "the view v", own)


def test_comments_and_hints_go_and_places_stay() -> None:
    text = "SELECT /*+ BROADCAST(t) */ a -- all of it\nFROM t"
    clean = harmless_query(text, "the view v", lambda _, __: False)
    assert clean.split() == ["SELECT", "a", "FROM", "t"]
    assert clean.index("FROM") == text.index("FROM")


def test_expressions() -> None:
    assert harmless_expression("lower(a) || 'b'", "the sort key") == "lower(a) || 'b'"
    with pytest.raises(UnsupportedFeature, match="reads the file"):
        harmless_expression("(SELECT max(value) FROM text.x)", "the sort key")
