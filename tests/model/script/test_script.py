from __future__ import annotations

from pathlib import Path

import pytest

from penstock.errors import Diagnostic
from penstock.model.files.source_map import Source
from penstock.model.script.script import Script, Setting, read_script
from penstock.model.values.asset import Names

NAMES = Names(("main", "analytics"))


def script(text: str, *, manual: bool = False) -> Script:
    return read_script(Source(Path("m.sql"), text), NAMES, manual=manual)


def errors(text: str) -> list[Diagnostic]:
    return [finding for finding in script(text).findings if finding.severity == "error"]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT 1",
        "WITH a AS (SELECT 1) SELECT * FROM a",
        "FROM t",
        "FROM t SELECT a",
        "VALUES (1), (2)",
        "TABLE t",
        "(SELECT 1) UNION ALL (SELECT 2)",
        "SELECT ';' /* ; */ -- ;\n, \";\", `;`",
    ],
)
@pytest.mark.parametrize("end", ["", ";", ";;\n-- done\n;"])
def test_one_query(query: str, end: str) -> None:
    found = script(f"ATTACH 'ducklake://main' AS dl;\n{query}{end}")
    assert found.findings == ()
    assert len(found.statements) == 1


@pytest.mark.parametrize(
    ("text", "rule", "line", "column"),
    [
        ("", "script-no-select", 1, 1),
        ("-- nothing\n", "script-no-select", 1, 1),
        ("ATTACH 'ducklake://main' AS dl;", "script-no-select", 1, 1),
        ("SELECT 1;\nSELECT 2", "script-selects", 2, 1),
        ("SELECT 1;\nSELECT 2;\nSELECT 3", "script-selects", 2, 1),
        ("SELECT 1;\n  USE main", "script-after-select", 2, 3),
        ("SELECT 1;\nATTACH 'ducklake://main' AS dl", "script-after-select", 2, 1),
        ("SELECT 1;\nCREATE TEMP VIEW a AS SELECT 1", "script-after-select", 2, 1),
        ("INSERT INTO t SELECT 1", "script-writes", 1, 1),
        ("CREATE TABLE t AS SELECT 1", "script-writes", 1, 1),
        ("CREATE OR REPLACE TABLE t AS SELECT 1", "script-writes", 1, 1),
        ("DROP TABLE t;\nSELECT 1", "script-writes", 1, 1),
        ("WITH a AS (SELECT 1) INSERT INTO t SELECT * FROM a", "script-writes", 1, 22),
        ("FROM a INSERT INTO t SELECT 1", "script-writes", 1, 8),
        ("SELEC 1", "script-statement", 1, 1),
        ("EXPLAIN SELECT 1", "script-statement", 1, 1),
        ("SELECT 'abc", "unclosed", 1, 8),
        ("CREATE TEMP TABLE t (a INT); SELECT 1", "create-temp", 1, 1),
        ("CREATE TEMP VIEW t (a) AS SELECT 1; SELECT 1", "create-temp", 1, 13),
        ("CREATE TEMP SEQUENCE f; SELECT 1", "create-temp", 1, 1),
        ("ATTACH 's3://x' AS x; SELECT 1", "attach", 1, 8),
        ("ATTACH dl; SELECT 1", "attach", 1, 1),
        ("ATTACH 'ducklake://nope' AS x; SELECT 1", "unknown-lake", 1, 8),
        ("USE nope; SELECT 1", "unknown-lake", 1, 1),
    ],
)
def test_broken_rules(text: str, rule: str, line: int, column: int) -> None:
    (error,) = errors(text)
    assert (error.rule, error.location.line, error.location.column) == (rule, line, column)
    assert error.hint


def test_a_misspelt_statement() -> None:
    assert errors("SELEC 1")[0].hint == "did you mean SELECT?"


def test_a_misspelt_lake() -> None:
    assert (
        errors("ATTACH 'ducklake://analytic' AS a; SELECT 1")[0].hint == "did you mean analytics?"
    )


@pytest.mark.parametrize(
    ("attach", "alias", "lake"),
    [
        ("ATTACH 'ducklake://main' AS dl", "dl", "main"),
        ("attach 'ducklake' as DL", "dl", "main"),
        ("ATTACH IF NOT EXISTS 'ducklake://analytics' AS a (READ_ONLY)", "a", "analytics"),
        ("ATTACH 'ducklake://analytics'", "analytics", "analytics"),
    ],
)
def test_attach(attach: str, alias: str, lake: str) -> None:
    found = script(f"{attach}; SELECT 1")
    assert found.findings == ()
    assert found.names.aliases == {alias: lake}


@pytest.mark.parametrize(
    ("use", "expected"),
    [
        ("USE analytics", ("analytics", "main")),
        ("USE analytics.clean", ("analytics", "clean")),
        ("ATTACH 'ducklake://analytics' AS dl; USE dl", ("analytics", "main")),
    ],
)
def test_use(use: str, expected: tuple[str, str]) -> None:
    assert script(f"{use}; SELECT 1").names.use == expected


@pytest.mark.parametrize(
    "text",
    ["INSTALL ducklake", "LOAD httpfs", "PRAGMA threads=4", "SET memory_limit = '1GB'", "DETACH x"],
)
def test_what_is_passed_over_is_noticed(text: str) -> None:
    found = script(f"{text}; SELECT 1")
    assert [(finding.severity, finding.rule) for finding in found.findings] == [
        ("warning", "ignored-statement")
    ]
    assert len(found.statements) == 1


def test_settings_of_spark() -> None:
    found = script("SET spark.sql.shuffle.partitions = 4; SELECT 1")
    assert found.settings == (Setting("spark.sql.shuffle.partitions", "4"),)
    assert found.findings == ()


@pytest.mark.parametrize(
    ("create", "name"),
    [
        ("CREATE TEMP VIEW a AS SELECT 1", "a"),
        ("CREATE TEMPORARY TABLE a AS (SELECT 1)", "a"),
        ("create or replace temp table `a b` as from t", "a b"),
        ("CREATE TEMP TABLE IF NOT EXISTS a AS WITH b AS (SELECT 1) SELECT * FROM b", "a"),
    ],
)
def test_temporary_tables(create: str, name: str) -> None:
    found = script(f"{create}; SELECT * FROM a")
    assert found.findings == ()
    assert [temporary.name for temporary in found.temporaries] == [name]


@pytest.mark.parametrize(
    "second", ["SELECT 2", "INSERT INTO dl.t SELECT 1", "USE main", "DROP TABLE x"]
)
def test_a_manual_script_may_do_anything(second: str) -> None:
    found = script(
        f"ATTACH 'ducklake://main' AS dl; CREATE TABLE dl.t AS SELECT 1; {second}", manual=True
    )
    assert found.findings == ()
    assert found.statements[0].word == "CREATE"


@pytest.mark.parametrize("word", ["BEGIN", "commit", "ROLLBACK", "START TRANSACTION"])
def test_a_manual_script_is_one_transaction(word: str) -> None:
    (finding,) = script(f"DELETE FROM t;\n{word};", manual=True).findings
    assert (finding.rule, finding.location.line) == ("script-transaction", 2)
    assert f"{word.split(maxsplit=1)[0].upper()} cannot stand in a script" in finding.message
