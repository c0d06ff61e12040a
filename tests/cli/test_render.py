"""penstock render: the query as it runs, without Spark.

Tests ``engine/answers/rendering.py`` (macros, names and values).
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from penstock.cli.main import main
from penstock.project.project import Project
from tests.engine.toy import write_project

SCRIPTS = {
    "models/t": """
        MODEL (name s.t, kind INCREMENTAL_BY_TIME_RANGE (time_column d), start '2026-01-01');
        @DEF(k, 'v');
        SELECT d, @EACH([a, b], x -> sum(x) AS s_@x), n_@k FROM e
        WHERE d BETWEEN @start_date AND @end_ds AND x < @end_epoch
    """,
    "models/e": """
        MODEL (name e, kind EMBEDDED);
        SELECT * FROM read_csv('x.csv', header = true) AS c JOIN s.u USING (id)
    """,
    "models/p": """
        -- partitioned daily start="2026-01-01"
        -- materialize ducklake://main/p
        -- $limit (int) = 5
        -- $name (text) = 'x''y'
        SELECT day FROM s.t AT (VERSION => 3)
        WHERE day = '{partition}' AND n < $limit AND m = $name
    """,
    "models/f": """
        -- dialect duckdb
        -- materialize ducklake://main/f
        -- $b (text) = z'\\
        SELECT a::INT AS a FROM read_parquet('y.parquet') WHERE b = $b
    """,
    "models/m": "-- materialize manual ducklake://main/m\nDELETE FROM m WHERE x = 1;",
    "models/v": "MODEL (name v, kind VIEW);\nSELECT 1 AS a FROM s.t",
    "models/py": (
        "# materialize ducklake://main/py\ndef main() -> list[dict]:\n    return [{'a': 1}]\n"
    ),
}
SCRIPTS["models/py.py"] = SCRIPTS.pop("models/py")


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    return write_project(tmp_path / "toy", SCRIPTS)


def render(project: Path, *arguments: str) -> Result:
    return CliRunner().invoke(main, ["render", "--project", str(project), *arguments])


def test_macros_times_and_embedded_queries_stand_in_it(toy: Path) -> None:
    result = render(toy, "t", "--from", "2026-01-03", "--to", "2026-01-05")
    assert (result.exit_code, result.output) == (
        0,
        "-- t, 2026-01-03 to 2026-01-05\n"
        "-- @end_ds = 2026-01-05\n-- @end_epoch = 1767657599.999999\n-- @start_date = 2026-01-03\n"
        "SELECT d, sum(a) AS s_a, sum(b) AS s_b, n_v FROM (SELECT * FROM "
        "read_csv('x.csv', header = true) AS c JOIN `main`.`s`.`u` AS u USING (id)) AS e\n"
        "WHERE d BETWEEN DATE'2026-01-03' AND '2026-01-05' AND x < 1767657599.999999D\n",
    )
    assert (
        "DATE'2026-01-04' AND '2026-01-04'" in render(toy, "t", "--partition", "2026-01-04").output
    )


def test_partitions_and_arguments_are_literals(toy: Path) -> None:
    said = json.loads(render(toy, "p", "--partition", "2026-01-02", "--json").output)
    assert said["sql"].split("\n") == [
        "SELECT day FROM `main`.`s`.`t` AT (VERSION => 3) AS t",
        "WHERE day = '2026-01-02' AND n < 5 AND m = 'x\\'y'",
    ]
    assert said["values"] == {"{partition}": "2026-01-02", "$limit": 5, "$name": "x'y"}
    ranged = ("--from", "2026-01-02", "--to", "2026-01-04", "--arg", "limit=7")
    assert "-- p, 2026-01-02, the first of 3 slices" in render(toy, "p", *ranged).output
    assert "n < 7" in render(toy, "p", *ranged).output


def test_other_forms_of_scripts(toy: Path) -> None:
    assert render(toy, "e").output.endswith("JOIN `main`.`s`.`u` AS u USING (id)\n")
    assert render(toy, "v").output == "-- v\nSELECT 1 AS a FROM `main`.`s`.`t` AS t\n"
    assert render(toy, "m").output == "-- m\nDELETE FROM `main`.`main`.`m` WHERE x = 1\n"
    with Project.load(toy) as project:
        rendered = project.render("f")
    assert rendered.sql == "SELECT a::INT AS a FROM read_parquet('y.parquet') WHERE b = 'z''\\'"
    assert rendered.spark.startswith("SELECT CASE WHEN TYPEOF(a)")
    assert rendered.spark.endswith("FROM `read_parquet_1` WHERE b = 'z\\'\\\\'")
    assert render(toy, "f", "--spark").output.split("\n")[2:4] == [
        "-- read_parquet_1 is read_parquet('y.parquet')",
        rendered.spark,
    ]
    assert rendered.reads == {"read_parquet_1": "read_parquet('y.parquet')"}
    assert rendered.dialect == "duckdb"


def test_what_has_no_query_says_so(toy: Path) -> None:
    result = render(toy, "py")
    assert result.exit_code == 2
    assert "py is a step in Python, which has no query to render" in result.output
    assert "did you mean" in render(toy, "tt").output or "models are" in render(toy, "tt").output
