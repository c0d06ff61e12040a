"""Scripts are read as they are written, and expressions said in Spark's dialect."""

from __future__ import annotations

import pytest

from tests.lakes.differential.written import generate
from tests.lakes.differential.written.ours import spark_text
from tests.lakes.differential.written.script import Step, parse

TEXT = """-- catalogs: sqlite
-- inline: 3
CREATE TABLE t (i BIGINT);
@duckdb INSERT INTO t VALUES (1);
CALL ducklake_add_data_files('lk', 't', '{dir}/f') @model INSERT INTO t FROM '{dir}/f';
"""


def test_a_script_is_its_text() -> None:
    script = parse(TEXT, "one")
    assert script.text == TEXT
    assert script.inline == 3
    assert script.mixed
    assert [step.for_model for step in script.steps][2] == "INSERT INTO t FROM '{dir}/f'"


@pytest.mark.parametrize("seed", range(5))
def test_what_is_generated_can_be_read(seed: int) -> None:
    for script in generate.scripts(4, seed):
        assert parse(script.text, script.name) == script


def test_nobody_else_runs_a_step() -> None:
    with pytest.raises(ValueError, match="@nobody is not of sql"):
        parse("@nobody SELECT 1;", "one")


def test_what_is_of_lakes_is_not_for_the_model() -> None:
    assert Step("ALTER TABLE t SET PARTITIONED BY (k)").for_model is None
    assert Step("ALTER TABLE t ADD COLUMN c INT").for_model is not None


@pytest.mark.parametrize(
    ("duckdb", "spark"),
    [
        ("{'a': 1, 'b': NULL}", "named_struct('a', 1, 'b', NULL)"),
        ("MAP {'k': 1}", "map('k', 1)"),
        ("[1, NULL]", "array(1, NULL)"),
        ("'[1, 2]'", "'[1, 2]'"),
        ("'it''s'", r"'it\'s'"),
        (r"'b\n'", r"'b\\n'"),
        ("CAST('2013-01-02' AS TIMESTAMP)", "CAST('2013-01-02' AS TIMESTAMP_NTZ)"),
    ],
)
def test_expressions_in_the_dialect_of_spark(duckdb: str, spark: str) -> None:
    assert spark_text(f"SELECT {duckdb}") == f"SELECT {spark}"
