from __future__ import annotations

from pathlib import Path

import pytest

from penstock.model.definition.build_model import ScriptFile, build_model
from penstock.model.headers.annotation import declare, parse
from penstock.model.values.asset import Names

HEAD = "-- pipeline\n-- materialize ducklake://main/t key=a\n-- partitioned daily\n"
BODY = "ATTACH 'ducklake://main' AS dl;\nSELECT a, 'x y' AS b FROM dl.s WHERE d = '{partition}';\n"


def digest(text: str) -> str:
    path = Path("m.sql")
    names = Names(("main", "other"))
    declaration, _ = declare(text, path, parse(text, path)[0], names)
    assert declaration is not None
    built, findings = build_model(ScriptFile("m", text, declaration), names, ())
    assert built is not None, findings
    return built.definition_hash


@pytest.mark.parametrize(
    "text",
    [
        HEAD + BODY,
        HEAD + "\n\n" + BODY.replace(" FROM", "\n  FROM"),
        HEAD + "-- what it is for\n-- tag heavy\n" + BODY,
        HEAD + BODY.replace("SELECT a", "select /* all of it */ a -- note\n"),
        HEAD + BODY.rstrip(";\n"),
        HEAD + "-- data_test not_null a\n-- freshness 1h\n" + BODY,
        HEAD.replace("-- ", "# ") + BODY,
    ],
)
def test_what_does_not_count(text: str) -> None:
    assert digest(text) == digest(HEAD + BODY)


@pytest.mark.parametrize(
    "text",
    [
        HEAD + BODY.replace("a,", "A,"),
        HEAD + BODY.replace("'x y'", "'x  y'"),
        HEAD + BODY.replace("dl.s", "dl.s2"),
        HEAD + BODY.replace("ducklake://main", "ducklake://other"),
        HEAD.replace("key=a", "key=b") + BODY,
        HEAD.replace("key=a", "append") + BODY,
        HEAD.replace("daily", "monthly") + BODY,
        HEAD.replace("main/t", "main/u") + BODY,
        HEAD + "-- $x (int) = 1\n" + BODY,
        HEAD + "SET spark.sql.ansi.enabled = false;\n" + BODY,
        HEAD + "CREATE TEMP VIEW v AS SELECT 1;\n" + BODY,
        HEAD + "-- dialect duckdb\n" + BODY,
    ],
)
def test_what_counts(text: str) -> None:
    assert digest(text) != digest(HEAD + BODY)


def test_it_is_the_same_on_every_machine() -> None:
    assert len(digest(HEAD + BODY)) == 64
    assert digest(HEAD + BODY) == digest(HEAD + BODY)
