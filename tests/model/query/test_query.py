"""Queries as text in, text for Spark out.

Tests ``model/query/analysis.py`` (tables and edits of a statement) and ``model/script/sources.py``
(tables, files, functions).
"""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import pytest

from penstock.errors import Diagnostic
from penstock.model.query.query import Query, ScriptKind, of_cte, read_query
from penstock.model.query.render import RenderedQuery
from penstock.model.script.constants import Bindings
from penstock.model.script.sources import FileSource, QuerySource, TableSource
from penstock.model.time.partition import PartitionSpec
from penstock.model.values.asset import Names

NAMES = Names(("main", "analytics"), aliases={"dl": "main"})
DAILY = PartitionSpec("daily")


def read(text: str, **options: Any) -> tuple[Query | None, tuple[Diagnostic, ...]]:
    settings = {"kind": ScriptKind(partition=DAILY), **options}
    return read_query(text, Path("m.sql"), names=NAMES, **settings)


def query(text: str, **options: Any) -> Query:
    found, findings = read(text, **options)
    assert found is not None, findings
    return found


def render(text: str, **options: Any) -> RenderedQuery:
    found = query(text, **options)
    return found.render({source: f"`v{n}`" for n, source in enumerate(found.sources)})


def tables(text: str, **options: Any) -> list[str]:
    return [str(table) for table in query(text, **options).reads]


def error(text: str, **options: Any) -> tuple[int | None, int | None, str]:
    found, findings = read(text, **options)
    assert found is None
    first = next(finding for finding in findings if finding.severity == "error")
    assert first.hint
    return first.location.line, first.location.column, first.rule


@pytest.mark.parametrize(
    ("text", "rendered"),
    [
        ("SELECT a::int  FROM dl.t x", "SELECT a::int  FROM `v0` x"),
        ("SELECT a FROM dl.t", "SELECT a FROM `v0` AS t"),
        ("SELECT t.a, dl.t.b FROM dl.t", "SELECT t.a, t.b FROM `v0` AS t"),
        ("SELECT dl.t.* FROM dl.t", "SELECT t.* FROM `v0` AS t"),
        ("SELECT dl.main.t.a.b FROM dl.main.t", "SELECT t.a.b FROM `v0` AS t"),
        ("SELECT main.t.a FROM dl.main.t", "SELECT t.a FROM `v0` AS t"),
        ("SELECT x.a.b FROM dl.t x", "SELECT x.a.b FROM `v0` x"),
        ("SELECT * FROM dl.`a b`", "SELECT * FROM `v0` AS `a b`"),
        ("SELECT * FROM dl.a, dl.b y", "SELECT * FROM `v0` AS a, `v1` y"),
        (
            "SELECT * FROM dl.a JOIN dl.b USING (x)",
            "SELECT * FROM `v0` AS a JOIN `v1` AS b USING (x)",
        ),
        (
            "SELECT * FROM dl.a x JOIN dl.a y USING (k)",
            "SELECT * FROM `v0` x JOIN `v0` y USING (k)",
        ),
        ("SELECT * FROM (SELECT * FROM dl.a)", "SELECT * FROM (SELECT * FROM `v0` AS a)"),
        ("SELECT (SELECT max(x) FROM dl.a)", "SELECT (SELECT max(x) FROM `v0` AS a)"),
        ("SELECT 1 WHERE 1 IN (SELECT x FROM t)", "SELECT 1 WHERE 1 IN (SELECT x FROM `v0` AS t)"),
        (
            "SELECT * FROM t LATERAL VIEW explode(a) e AS x",
            "SELECT * FROM `v0` AS t LATERAL VIEW explode(a) e AS x",
        ),
        ("SELECT * FROM t TABLESAMPLE (5 ROWS)", "SELECT * FROM `v0` TABLESAMPLE (5 ROWS) AS t"),
        ("SELECT * FROM t TABLESAMPLE (5 ROWS) x", "SELECT * FROM `v0` TABLESAMPLE (5 ROWS) x"),
        ("SELECT * FROM range(5)", "SELECT * FROM range(5)"),
        ("SELECT * FROM VALUES (1) AS v(a)", "SELECT * FROM VALUES (1) AS v(a)"),
        ("SELECT v:a.b::int FROM t", "SELECT v:a.b::int FROM `v0` AS t"),
        ("SELECT * FROM t |> WHERE a > 1", "SELECT * FROM `v0` AS t |> WHERE a > 1"),
        ("SELECT /*+ BROADCAST(t) */ * FROM t", "SELECT /*+ BROADCAST(t) */ * FROM `v0` AS t"),
    ],
)
def test_table_references(text: str, rendered: str) -> None:
    assert render(text).sql == rendered


@pytest.mark.parametrize(
    ("text", "rendered"),
    [
        ("FROM t", "SELECT * FROM `v0` AS t"),
        ("FROM t WHERE a", "SELECT * FROM `v0` AS t WHERE a"),
        ("FROM t SELECT a", "FROM `v0` AS t SELECT a"),
        ("TABLE dl.t", "SELECT * FROM `v0` AS t"),
        ("SELECT * FROM (FROM t)", "SELECT * FROM (SELECT * FROM `v0` AS t)"),
        ("WITH a AS (FROM t) FROM a", "WITH a AS (SELECT * FROM `v0` AS t) SELECT * FROM a"),
        ("SELECT 1 UNION ALL FROM t", "SELECT 1 UNION ALL SELECT * FROM `v0` AS t"),
        ("SELECT extract(year FROM d) FROM t", "SELECT extract(year FROM d) FROM `v0` AS t"),
        ("SELECT a IS DISTINCT FROM b FROM t", "SELECT a IS DISTINCT FROM b FROM `v0` AS t"),
        ("SELECT DISTINCT a FROM t", "SELECT DISTINCT a FROM `v0` AS t"),
        ("SELECT ALL a FROM t", "SELECT ALL a FROM `v0` AS t"),
        ("SELECT trim(both 'x' FROM a) FROM t", "SELECT trim(both 'x' FROM a) FROM `v0` AS t"),
    ],
)
def test_from_first(text: str, rendered: str) -> None:
    assert render(text).sql == rendered


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("WITH t AS (SELECT 1) SELECT * FROM t", []),
        ("WITH t AS (SELECT 1) SELECT * FROM T", []),
        ("WITH t AS (SELECT 1) SELECT * FROM dl.t", ["main.t"]),
        ("WITH t AS (SELECT * FROM t) SELECT * FROM t", ["main.t"]),
        ("WITH RECURSIVE t AS (SELECT 1 UNION ALL SELECT * FROM t) SELECT * FROM t", []),
        ("WITH a AS (SELECT * FROM b), b AS (SELECT 1) SELECT * FROM a, b", ["main.b"]),
        ("WITH a AS (SELECT 1), b AS (SELECT * FROM a) SELECT * FROM b", []),
        ("WITH a AS (SELECT 1) SELECT * FROM (SELECT * FROM a)", []),
        ("SELECT * FROM (WITH a AS (SELECT 1) SELECT * FROM a), a", ["main.a"]),
        ("WITH a AS (WITH b AS (SELECT 1) SELECT * FROM b) SELECT * FROM a, b", ["main.b"]),
        ("WITH a AS (SELECT 1) SELECT 1 WHERE EXISTS (SELECT 1 FROM a)", []),
        ("WITH a AS (SELECT 1) (SELECT * FROM a) UNION ALL SELECT * FROM a", []),
    ],
)
def test_ctes_shadow_tables(text: str, found: list[str]) -> None:
    assert tables(text) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("SELECT * FROM t", ["main.t"]),
        ("SELECT * FROM clean.t", ["main.clean.t"]),
        ("SELECT * FROM dl.clean.t", ["main.clean.t"]),
        ("SELECT * FROM analytics.main.t", ["analytics.main.t"]),
        ("USE analytics; SELECT * FROM t", ["analytics.main.t"]),
        (
            "ATTACH 'ducklake://analytics' AS a; SELECT * FROM a.t, dl.t, a.t x",
            ["analytics.main.t", "main.t"],
        ),
        ("SELECT 'FROM dl.x' /* FROM dl.y */ -- FROM dl.z\n", []),
    ],
)
def test_which_table_is_meant(text: str, found: list[str]) -> None:
    assert tables(text) == found


@pytest.mark.parametrize(
    ("text", "rendered"),
    [
        ("SELECT '{partition}'", "SELECT :penstock_partition"),
        ('SELECT "a" FROM dl."t"', "SELECT `a` FROM `v0` AS `t`"),
        ("SELECT '{partition}'::date", "SELECT :penstock_partition::date"),
        ("SELECT DATE '{partition}'", "SELECT CAST(:penstock_partition AS DATE)"),
        ("SELECT 'a/' || '{partition}'", "SELECT 'a/' || :penstock_partition"),
        ("SELECT $partition", "SELECT :penstock_arg_partition"),
        (
            "SELECT a='{partition}'OR'{partition}'",
            "SELECT a=:penstock_partition OR :penstock_partition",
        ),
        ("SELECT 1 -- '{partition}' $x\n, 2", "SELECT 1 -- '{partition}' $x\n, 2"),
        ("SELECT /* '{partition}' */ '$x'", "SELECT /* '{partition}' */ '$x'"),
    ],
)
def test_the_partition_is_bound(text: str, rendered: str) -> None:
    assert render(text).sql == rendered


def test_values_never_enter_the_text() -> None:
    evil = "x' OR '1'='1"
    found = render("SELECT * FROM t WHERE a = '{partition}' AND b = $partition")
    args = found.args(Bindings(evil, {"partition": evil}))
    assert evil not in found.sql
    assert args == {"penstock_partition": evil, "penstock_arg_partition": evil}


@pytest.mark.parametrize(
    ("declared", "rendered"),
    [
        ("text", ":penstock_arg_x"),
        ("int", ":penstock_arg_x"),
        ("date", ":penstock_arg_x"),
        ("bigint", "CAST(:penstock_arg_x AS BIGINT)"),
        ("decimal(9,2)", "CAST(:penstock_arg_x AS DECIMAL(9,2))"),
        ("timestamp", "CAST(:penstock_arg_x AS TIMESTAMP_NTZ)"),
        ("timestamptz", "CAST(:penstock_arg_x AS TIMESTAMP_LTZ)"),
    ],
)
def test_arguments_are_bound_with_their_type(declared: str, rendered: str) -> None:
    assert render(f"-- $x ({declared})\nSELECT $x").sql == f"SELECT {rendered}"


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("SELECT\n  $x", (2, 3, "argument")),
        ("SELECT $1", (1, 8, "argument")),
        ("SELECT 's3:///lake/{partition}/x'", (1, 8, "partition-token")),
        ("SELECT `{partition}`", (1, 8, "partition-token")),
        ("SELECT 'a' '{partition}'", (1, 12, "partition-token")),
        ("SELECT {partition}", (1, 8, "partition-token")),
        ("SELECT * FROM read_csv('a', delim = '{partition}x')", (1, 37, "not-constant")),
        ("SELECT * FROM read_csv($y)", (1, 24, "argument")),
        ("SELECT * FROM read_csv(upper('a'))", (1, 24, "not-constant")),
        ("SELECT * FROM read_csv()", (1, 24, "not-constant")),
        ("SELECT * FROM read_csv('a', 'b')", (1, 29, "not-constant")),
        ("SELECT * FROM read_csv('a', header = true, header = true)", (1, 44, "not-constant")),
        ("SELECT * FROM read_csv('a', header = )", (1, 29, "not-constant")),
        ("SELECT * FROM read_csv(header = true)", (1, 24, "not-constant")),
        ("SELECT read_csv('a')", (1, 8, "file")),
        ("SELECT * FROM 'a.csv'", (1, 15, "file")),
        ("SELECT * FROM nope.s.t", (1, 15, "unknown-lake")),
        ("SELECT * FROM t AT (VERSION => a)", (1, 32, "not-constant")),
        ("SELECT 1 AT (VERSION => 3)", (1, 10, "time-travel")),
        ("SELECT a b c FROM t", (1, 12, "unreadable-query")),
        ("SELECT a,\n(b FROM t", (2, 4, "unreadable-query")),
        ("SELECT * FROM a ASOF JOIN b", (1, 22, "asof-join")),
        ("SELECT * FROM a ASOF RIGHT JOIN b ON a.k = b.k AND a.t > b.t", (1, 17, "asof-join")),
        ("SELECT * FROM a ASOF JOIN b ON a.t > b.t AND a.n > b.n", (1, 29, "asof-join")),
        ("SELECT * FROM a ASOF JOIN b ON a.t > b.t OR a.k = b.k", (1, 29, "asof-join")),
        ("SELECT * FROM a ASOF JOIN b ON a.k = b.k", (1, 29, "asof-join")),
    ],
)
def test_errors_have_a_place(text: str, place: tuple[int, int, str]) -> None:
    assert error(text) == place


@pytest.mark.parametrize(
    "text", ["SELECT '{partition}'", "FROM read_csv('{partition}')", "SELECT $partition"]
)
def test_without_a_partition(text: str) -> None:
    assert error(text, kind=ScriptKind())[2] in {"partition-token", "argument"}


def test_an_argument_nearly_right() -> None:
    _, findings = read("-- $cutoff (date)\nSELECT $cutof")
    assert findings[0].hint == "did you mean $cutoff?"


def test_all_errors_are_found_at_once() -> None:
    _, findings = read("SELECT $x, 'a{partition}' FROM nope.s.t, read_csv(1 + 1)")
    assert len(findings) == 4


@pytest.mark.parametrize(
    "clause",
    [
        "AT (VERSION => 3)",
        "at ( version => 3 )",
        "VERSION AS OF 3",
        "FOR VERSION AS OF 3",
        "FOR SYSTEM_VERSION AS OF 3",
    ],
)
def test_time_travel_by_version(clause: str) -> None:
    found = query(f"SELECT t.a FROM dl.t {clause}")
    (source,) = found.tables
    assert source.at is not None
    assert (source.at.kind, source.at.value.evaluate(Bindings())) == ("version", 3)
    assert found.render({source: "v"}).sql == "SELECT t.a FROM v AS t"
    aliased = query(f"SELECT o.a FROM dl.t {clause} o")
    assert aliased.render({source: "v"}).sql == "SELECT o.a FROM v o"


@pytest.mark.parametrize(
    "clause",
    [
        "AT (TIMESTAMP => '2026-01-01')",
        "AT (TIMESTAMP => TIMESTAMP '2026-01-01')",
        "AT (TIMESTAMP => '2026-01-01'::timestamp)",
        "TIMESTAMP AS OF '2026-01-01'",
        "FOR SYSTEM_TIME AS OF '2026-01-01'",
        "FOR TIMESTAMP AS OF TIMESTAMP '2026-01-01'",
        "AT (TIMESTAMP => '{partition}')",
    ],
)
def test_time_travel_by_time(clause: str) -> None:
    (source,) = query(f"SELECT * FROM t {clause}").tables
    assert source.at is not None
    assert source.at.kind == "timestamp"
    assert source.at.value.evaluate(Bindings("2026-01-01")) == "2026-01-01"


def test_one_table_at_two_versions_is_two_sources() -> None:
    text = "SELECT * FROM t AT (VERSION => 1) a, t AT (VERSION => 2) b, t AT (VERSION => 1) c"
    assert render(text).sql == "SELECT * FROM `v0` a, `v1` b, `v0` c"
    assert tables(text) == ["main.t"]


def test_a_column_named_version_is_no_time_travel() -> None:
    text = "SELECT version AS of, at, timestamp FROM t"
    assert render(text).sql == text.replace("FROM t", "FROM `v0` AS t")


@pytest.mark.parametrize("assign", ["=", "=>", ":="])
def test_files(assign: str) -> None:
    text = (
        "SELECT f.a FROM read_csv('d/' || '{partition}' || '.csv',\n"
        f"  Header {assign} true, delim {assign} ';', columns {assign} {{'a': 'INTEGER'}}) AS f"
    )
    found = query(text)
    (file,) = found.files
    bindings = Bindings("2013-01-02")
    assert file.path.evaluate(bindings) == "d/2013-01-02.csv"
    options = {name: value.evaluate(bindings) for name, value in file.options}
    assert options == {"header": True, "delim": ";", "columns": {"a": "INTEGER"}}
    assert found.render({file: "v"}).sql == "SELECT f.a FROM v AS f"


@pytest.mark.parametrize(
    ("call", "function"),
    [
        ("read_csv_auto('a')", "read_csv"),
        ("READ_JSON('a')", "read_json"),
        ("read_ndjson('a')", "read_json"),
        ("read_parquet(['a', 'b'])", "read_parquet"),
        ("parquet_scan('a')", "read_parquet"),
    ],
)
@pytest.mark.parametrize("dialect", ["spark", "duckdb"])
def test_file_functions(call: str, function: str, dialect: str) -> None:
    (source,) = query(f"FROM {call}", dialect=dialect).files
    assert source.function == function


def test_sources_come_in_order_of_mention() -> None:
    found = query("SELECT * FROM b, read_csv('x'), a, b c")
    kinds = [type(source) for source in found.sources]
    assert kinds == [TableSource, FileSource, TableSource]
    assert found.tables[0].location is not None
    assert (found.tables[0].location.line, found.tables[0].location.column) == (1, 15)


def test_temporary_tables_become_a_with() -> None:
    text = """\
        CREATE TEMP VIEW a AS SELECT * FROM dl.t WHERE d = '{partition}';
        CREATE TEMP TABLE b AS FROM a;
        WITH a2 AS (SELECT * FROM b) SELECT * FROM a2 ORDER BY 1"""
    expected = """\
        WITH a AS (
        SELECT * FROM `v0` AS t WHERE d = :penstock_partition
        ), b AS (
        SELECT * FROM a
        )
        (WITH a2 AS (SELECT * FROM b) SELECT * FROM a2 ORDER BY 1
        )"""
    assert render(textwrap.dedent(text)).sql == textwrap.dedent(expected)


@pytest.mark.parametrize(
    ("text", "rendered"),
    [
        ("a ASOF JOIN b ON a.k = b.k AND a.t >= b.t", "MATCH_CONDITION (a.t >= b.t) ON a.k = b.k"),
        ("a ASOF JOIN b ON a.t >= b.t AND a.k = b.k", "MATCH_CONDITION (a.t >= b.t) ON a.k = b.k"),
        ("a ASOF JOIN b ON a.t >= b.t", "MATCH_CONDITION (a.t >= b.t)"),
        (
            "a ASOF INNER JOIN b ON (a.k = b.k AND (a.t < b.t))",
            "MATCH_CONDITION (a.t < b.t) ON a.k = b.k",
        ),
        (
            "a ASOF JOIN b ON a.t > b.t AND b.n > 3 AND a.x >= a.y",
            "MATCH_CONDITION (a.t > b.t) ON b.n > 3 AND a.x >= a.y",
        ),
        ("a ASOF JOIN b USING (k, t)", "USING (k, t)"),
        (
            "a ASOF JOIN b ON a.k = b.k AND a.x BETWEEN 1 AND 2 AND a.t > b.t WHERE 1 > 0",
            "MATCH_CONDITION (a.t > b.t) ON a.k = b.k AND a.x BETWEEN 1 AND 2 WHERE 1 > 0",
        ),
        (
            "a ASOF JOIN b MATCH_CONDITION (a.t >= b.t) ON a.k = b.k",
            "MATCH_CONDITION (a.t >= b.t) ON a.k = b.k",
        ),
        (
            "a ASOF JOIN b MATCH_CONDITION (a.t >= b.t) USING (k)",
            "MATCH_CONDITION (a.t >= b.t) USING (k)",
        ),
    ],
)
def test_asof_join(text: str, rendered: str) -> None:
    found = render(f"SELECT * FROM {text}")
    assert found.sql == f"SELECT * FROM `v0` AS a ASOF JOIN `v1` AS b {rendered}"
    assert found.settings == {"spark.sql.join.asofJoin.enabled": "true"}


def test_asof_left_join() -> None:
    found = render("SELECT * FROM a ASOF LEFT JOIN dl.b x ON a.k = x.k AND a.t >= x.t")
    assert "a LEFT ASOF JOIN `v1` x MATCH_CONDITION (a.t >= x.t) ON a.k = x.k" in found.sql


def test_settings_travel_with_the_query() -> None:
    found = render("SET spark.sql.ansi.enabled = false; SELECT 1")
    assert found.settings == {"spark.sql.ansi.enabled": "false"}


def test_a_manual_script_renders_each_statement() -> None:
    text = (
        "CREATE TABLE dl.t AS SELECT 1; INSERT INTO dl.t SELECT a FROM dl.s WHERE d = '{partition}'"
    )
    found = query(text, kind=ScriptKind(partition=DAILY, manual=True))
    names: dict[QuerySource, str] = {s: s.table.table.upper() for s in found.tables}
    rendered = [statement.sql for statement in found.render_statements(names)]
    assert rendered == [
        "CREATE TABLE T AS SELECT 1",
        "INSERT INTO T SELECT a FROM S AS s WHERE d = :penstock_partition",
    ]


@pytest.mark.parametrize(
    ("text", "others"),
    [
        ("SELECT a FROM VALUES (1) AS t(a)", False),
        ("SELECT a FROM (SELECT 1) t (a)", False),
        ("WITH x(a) AS (SELECT 1) SELECT a FROM x", False),
        ("SELECT upper(a) FROM dl.t", False),
        ("SELECT CAST(a AS DECIMAL(10, 2)) FROM dl.t", False),
        ("SELECT shout(a) FROM dl.t", True),
        ("SELECT a FROM VALUES (shout(1)) AS t(a)", True),
    ],
)
def test_a_name_of_columns_is_no_call(text: str, others: bool) -> None:
    assert query(text, kind=ScriptKind()).calls_others is others


@pytest.mark.parametrize(
    ("text", "rendered"),
    [
        ("SELECT a, FROM t", "SELECT a FROM t"),
        ("SELECT a, -- the last\nFROM t", "SELECT a -- the last\nFROM t"),
        (
            "SELECT a, FROM (SELECT 1 AS a, FROM t) AS q",
            "SELECT a FROM (SELECT 1 AS a FROM t) AS q",
        ),
        ("WITH q AS (SELECT 1 AS a, FROM t) SELECT a, FROM q", None),
        ("@DEF(k, 3); SELECT @k AS a, FROM t", None),
        ("SELECT a, from FROM t", "SELECT a, from FROM t"),
        ("SELECT ', FROM t' AS a FROM t", "SELECT ', FROM t' AS a FROM t"),
    ],
)
def test_a_comma_before_from_is_left_out(text: str, rendered: str | None) -> None:
    found, findings = read(text)
    assert found is not None, findings
    words = found.render(dict.fromkeys(found.sources, "t")).sql.replace(" AS t", "")
    assert rendered is None or words == rendered
    left_out = [finding for finding in findings if finding.rule == "trailing-comma"]
    assert len(left_out) == (rendered != text)


def test_the_place_of_a_comma_that_is_left_out() -> None:
    _, findings = read("SELECT a,\n  b,\nFROM t")
    (finding,) = findings
    assert (finding.location.line, finding.location.column) == (2, 4)


NAMES_OF_MAIN = Names(("main",))
TEXT_OF_CTES = """CREATE TEMP VIEW tmp AS SELECT * FROM a;
WITH x AS (SELECT * FROM b WHERE n IN (1, 2)), "y z" AS MATERIALIZED (SELECT * FROM x)
SELECT c.d FROM "y z" JOIN tmp USING (id) JOIN c USING (id)"""


def _cte_query(text: str, dialect: str) -> Query:
    query, findings = read_query(text, Path("m.sql"), names=NAMES_OF_MAIN, dialect=dialect)
    assert query is not None, findings
    return query


@pytest.mark.parametrize("dialect", ["spark", "duckdb"])
@pytest.mark.parametrize(
    ("name", "tables"), [("x", ["a", "b"]), ("Y Z", ["a", "b"]), ("tmp", ["a"])]
)
def test_what_the_query_reads_up_to_a_cte(name: str, tables: list[str], dialect: str) -> None:
    found = of_cte(_cte_query(TEXT_OF_CTES, dialect), name)
    assert found is not None
    assert [table.table for table in found.reads] == tables
    sql = found.render({source: f"v{n}" for n, source in enumerate(found.sources)}).sql
    assert sql.rstrip("\n)").replace('"', "`").endswith(f"SELECT * FROM `{name}`") or name == "tmp"
    assert "JOIN" not in sql


@pytest.mark.parametrize(
    "text", [TEXT_OF_CTES, "SELECT 1 AS one", "WITH q AS (SELECT 1 AS n) FROM q"]
)
def test_a_cte_that_is_not_there(text: str) -> None:
    assert of_cte(_cte_query(text, "spark"), "nosuch") is None
