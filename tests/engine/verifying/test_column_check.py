"""Columns that models name and their queries plainly lack, found without Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.project.project import Project
from tests.engine.toy import write_project

SELECT = "SELECT 1 AS id, 'x' AS name"


def findings(root: Path, *scripts: str) -> list[tuple[str, int | None, str, str]]:
    named = {f"models/m{number}": text for number, text in enumerate(scripts)}
    with Project.load(write_project(root / "p", named)) as project:
        return [
            (each.severity, each.location.line, each.message, each.hint or "")
            for each in project.check()
        ]


@pytest.mark.parametrize(
    ("header", "line", "what"),
    [
        ("-- materialize ducklake://main/t key=nmae", 1, "key nmae"),
        ("-- materialize ducklake://main/t history key=id track=nmae", 1, "tracked column nmae"),
        ("-- partitioned daily\n-- materialize ducklake://main/t time=nmae", 2, "time column nmae"),
        ("-- materialize ducklake://main/t\n-- data_test unique nmae", 2, "tested column nmae"),
        ("-- materialize ducklake://main/t\n-- data_test accepted_values nmae = a", 2, "tested"),
        ("MODEL (name t, kind INCREMENTAL_BY_UNIQUE_KEY (unique_key nmae));", 1, "key nmae"),
        (
            "MODEL (name t, kind SCD_TYPE_2_BY_TIME (unique_key id, updated_at_name nmae));",
            1,
            "column nmae",
        ),
        (
            "MODEL (name t, kind SCD_TYPE_2_BY_COLUMN (unique_key id, columns (nmae)));",
            1,
            "tracked",
        ),
        (
            "MODEL (name t, kind FULL, partitioned_by month(nmae));",
            1,
            "column to partition by nmae",
        ),
        ("MODEL (name t, kind FULL, clustered_by nmae);", 1, "column to sort by nmae"),
        ("MODEL (name t, audits (not_null(columns := (nmae))));", 1, "tested column nmae"),
        (
            "-- materialize ducklake://main/t\n-- column nmae <- ducklake://main/x.a",
            2,
            "column nmae, whose lineage is declared",
        ),
    ],
)
def test_what_a_query_lacks(tmp_path: Path, header: str, line: int, what: str) -> None:
    found = [each for each in findings(tmp_path, f"{header}\n{SELECT}") if "the query" in each[2]]
    found = [each for each in found if "does not make" in each[2]]
    assert [(each[1], each[3]) for each in found] == [(line, "did you mean name?")]
    assert f"the query does not make the {what}" in found[0][2]


def test_columns_that_are_declared_and_made_apart(tmp_path: Path) -> None:
    for columns, said in (
        ("id INT", "the query makes name, which `columns` does not declare"),
        ("id INT, name TEXT, x INT", "column x is declared, and the query does not make it"),
    ):
        model = f"MODEL (name t, kind FULL, columns ({columns}));\n{SELECT}"
        assert [each[2] for each in findings(tmp_path, model)] == [said]
    by_time = f"MODEL (name t, kind SCD_TYPE_2_BY_TIME (unique_key id));\n{SELECT}"
    assert "does not make the column updated_at" in findings(tmp_path, by_time)[0][2]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM main.unknown",
        "SELECT count(*) FROM range(3)",
        "SELECT u.*, 1 AS x FROM range(3) JOIN main.unknown AS u ON true",
        "SELECT explode(map('a', 1))",
        "SELECT s.* FROM (SELECT named_struct('nope', 1) AS s) AS t",
        "SELECT * FROM read_csv('x.csv')",
        "SELECT * FROM (SELECT 'a' AS k, 1 AS v) PIVOT (sum(v) FOR k IN ('nope'))",
        "SELECT inline(array(struct(1 AS nope)))",
        "SELECT stack(1, 1, 2) AS (nope, b)",
        "FROM range(3) |> SELECT id AS nope",
        "SELECT x.nope FROM (SELECT 1 AS nope) AS x",
        "SELECT a AS id, * EXCEPT (a) FROM VALUES (1, 2) AS v(a, nope)",
    ],
)
def test_what_is_not_certain_is_left_to_a_run(tmp_path: Path, query: str) -> None:
    model = f"-- materialize ducklake://main/t\n-- data_test not_null nope\n{query}"
    assert not [each for each in findings(tmp_path, model) if each[0] == "error"]


def test_a_star_of_another_model_is_known(tmp_path: Path) -> None:
    reader = "-- materialize ducklake://main/u key=nmae\nSELECT * FROM t"
    made = f"-- materialize ducklake://main/t history key=id\n{SELECT}"
    made = made.replace("\n", "\n-- data_test not_null is_current\n", 1)
    found = findings(tmp_path, made, reader)
    assert [each[2] for each in found] == ["the query does not make the key nmae"]
