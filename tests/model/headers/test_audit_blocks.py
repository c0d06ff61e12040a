"""AUDIT blocks: in ``audits/`` and behind a model, with options, defaults and what is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.model.definition.model import Model
from penstock.model.project.loader import load_models
from penstock.model.values.data_test import CustomTest
from tests.model.project.test_loader import LAKES, project

BELOW = """-- of shares
AUDIT (name below, dialect duckdb, defaults (threshold = 0));
SELECT * FROM @this_model WHERE @column < @threshold;

AUDIT (name quiet, blocking false);
SELECT * FROM @this_model WHERE id IN @ids;
"""


def model(root: Path, audits: str, more: str = "") -> Model:
    text = f"MODEL (name s.t, kind FULL, audits ({audits}));\nSELECT 1 AS id{more}"
    files = project(root, audits__own=BELOW, models__t=text)
    return load_models(files, lakes=LAKES).models[0]


def test_options_stand_in_the_query(tmp_path: Path) -> None:
    made = model(
        tmp_path, "below(column := id), below(column := id, threshold := -1), quiet(ids := (1, 2))"
    )
    assert [(test.name, test.severity) for test in made.data_tests] == [
        ("below column=id", "error"),
        ("below column=id threshold=-1", "error"),
        ("quiet ids=(1, 2)", "warn"),
    ]
    assert [script.text for script in made.test_scripts] == [
        'SELECT * FROM "main"."s"."t" WHERE id < 0;',
        'SELECT * FROM "main"."s"."t" WHERE id < -1;',
        "SELECT * FROM `main`.`s`.`t` WHERE id IN (1, 2);",
    ]
    assert [script.query.dialect for script in made.test_scripts] == ["duckdb", "duckdb", "spark"]
    assert made.test_reads == ()


def test_a_block_behind_a_model_is_its_own(tmp_path: Path) -> None:
    more = ";\n\nAUDIT (name own);\nSELECT * FROM @this_model AS x JOIN u USING (id);\n"
    made = model(tmp_path, "own, below_non_blocking(column := id)", more)
    assert [test.severity for test in made.data_tests if isinstance(test, CustomTest)] == [
        "error",
        "warn",
    ]
    assert [str(table) for table in made.test_reads] == ["main.u"]


@pytest.mark.parametrize(
    ("audits", "block", "place", "message"),
    [
        ("belw(column := id)", "", "t.sql:1:37", "audit belw does not exist"),
        ("below", "", "t.sql:1:37", "the audit below needs `column`"),
        ("below(colum := id)", "", "t.sql:1:52", "`colum` is not an option of the audit below"),
        ("x", "AUDIT (name x); DELETE FROM t", "own.sql:7:17", "DELETE writes"),
        ("x", "AUDIT (name x); SELECT @no FROM t", "t.sql:1:37", "the audit x needs `no`"),
        ("x", "AUDIT (name x); SELECT @no(1) FROM t", "own.sql:7:24", "macro @no does not exist"),
        ("x(if := 1)", "AUDIT (name x); SELECT @IF(1 = 1, a)", "t.sql:1:45", "`if` is not an"),
        ("x", "AUDIT (name x)", "own.sql:7:15", "AUDIT (...) has no query"),
        ("x", "AUDIT (dialect spark); SELECT 1", "own.sql:7:1", "the audit has no name"),
        ("x", "AUDIT (name x, blocks no); SELECT 1", "own.sql:7:16", "`blocks` is not a property"),
        ("x", "AUDIT (name x, standalone true); SELECT 1", "own.sql:7:16", "an audit is one of"),
        ("x", "AUDIT (name below); SELECT 1", "own.sql:7:1", "there are two audits below"),
        ("x", "AUDIT (name Not_Null); SELECT 1", "own.sql:7:8", "not_null is the name of a"),
        ("x", "AUDIT (name x; SELECT 1", "own.sql:7:1", "the bracket of AUDIT ( is never closed"),
    ],
)  # fmt: skip
def test_what_is_wrong(tmp_path: Path, audits: str, block: str, place: str, message: str) -> None:
    text = f"MODEL (name s.t, kind FULL, audits ({audits}));\nSELECT 1 AS id"
    files = project(tmp_path, audits__own=BELOW + block, models__t=text)
    found = [f for f in load_models(files, lakes=LAKES).errors if message in f.message]
    shown = [f"{Path(f.location.path).name}:{f.location.line}:{f.location.column}" for f in found]
    assert shown == [place]


def test_a_file_without_a_block_and_one_that_is_skipped(tmp_path: Path) -> None:
    text = "MODEL (name s.t, kind FULL, audits (x));\nSELECT 1 AS id"
    skipped = "AUDIT (name x, skip true); SELECT 1"
    files = project(tmp_path, audits__a=skipped, audits__b="SELECT 1", models__t=text)
    found = load_models(files, lakes=LAKES).diagnostics
    assert sorted((f.severity, f.message) for f in found) == [
        ("error", "the file does not begin with AUDIT (...)"),
        ("warning", "the audit x is not run: it says skip true"),
    ]


@pytest.mark.parametrize(
    ("query", "made"),
    [
        ("WHERE @IF(1 = 1, id < 0, TRUE)", "WHERE id < 0"),
        ("WHERE @AND(NULL, id < 0)", "WHERE (id < 0)"),
        ("WHERE @OR(@EACH(@ids, x -> id = @x))", "WHERE (id = 1) OR (id = 2)"),
        ("WHERE id > @EVAL(1 + @least)", "WHERE id > 6"),
        ("WHERE @low(id)", "WHERE id < 0"),
        ("WHERE @'@{c}' = 'b' AND @{c} > 0 AND n_@c > 0", "WHERE 'b' = 'b' AND b > 0 AND n_b > 0"),
        ("WHERE d = @start_ds", "WHERE d = $penstock_at_start_ds"),
        ("WHERE 'x' = @runtime_stage", "WHERE 'x' = 'auditing'"),
    ],
)
def test_macros_stand_in_the_query_of_an_audit(tmp_path: Path, query: str, made: str) -> None:
    (tmp_path / "macros").mkdir()
    macro = "from penstock import macro\n@macro\ndef low(column): return f'{column} < 0'\n"
    (tmp_path / "macros" / "low.py").write_text(macro)
    audit = f"""AUDIT (name x, defaults (least = 5, ids = (1, 2), c = 'b'));
SELECT * FROM @this_model {query};"""
    text = "MODEL (name s.t, kind FULL, audits (x(least := @EVAL(2 + 3))));\nSELECT 1 AS id"
    files = project(tmp_path, audits__own=audit, models__t=text)
    (script,) = load_models(files, lakes=LAKES).models[0].test_scripts
    assert script.text == f"SELECT * FROM `main`.`s`.`t` {made};"
