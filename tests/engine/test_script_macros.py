"""Macros and variables of scripts, in a run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from penstock import Project

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FILES = {
    "penstock.toml": (
        '[project]\nname = "p"\n[lakes.main]\n'
        'catalog = "ducklake:sqlite:meta.sqlite"\ndata_path = "data"\n'
    ),
    "macros/lib.sql": (
        "-- macros\n-- dialect duckdb\nCREATE MACRO twice(x) AS x * 2;\n"
        "CREATE MACRO above(n) AS TABLE SELECT id, twice(id) AS t FROM numbers WHERE id > n"
    ),
    "models/numbers.sql": (
        "-- materialize ducklake://main/numbers\nSELECT id FROM VALUES (1), (2) AS v(id)"
    ),
    "models/spark.sql": (
        "-- materialize ducklake://main/spark\nSET VARIABLE r = rand();\n"
        "SET VARIABLE top = (SELECT max(id) FROM numbers);\n"
        "SELECT t, getvariable('top') AS top, getvariable('r') = getvariable('r') AS same\n"
        "FROM above(getvariable('top') - 1)"
    ),
    "models/duck.sql": (
        "-- materialize ducklake://main/duck\n-- dialect duckdb\n"
        "CREATE TEMP MACRO half(x) AS x / 2;\nSELECT twice(half(id)) FROM above(0)"
    ),
}


def project(root: Path) -> Path:
    for name, text in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


@pytest.mark.spark
def test_in_a_run(spark: SparkSession, tmp_path: Path) -> None:
    with Project.load(project(tmp_path), spark=spark) as made:
        assert made.run().state == "done"
        assert made.query("SELECT * FROM spark").rows == ((4, 2, True),)
        duck = made.query("SELECT * FROM duck ORDER BY 1")
        assert (duck.columns[0][0], duck.rows) == ("twice(half(id))", ((1.0,), (2.0,)))
        assert made.query("SELECT twice(4) AS t").rows == ((8,),)


def test_without_spark(tmp_path: Path) -> None:
    made = Project.load(project(tmp_path))
    assert [model.name for model in made.models] == ["duck", "numbers", "spark"]
    assert made.check() == ()
    assert made.show("spark").libraries == ("macros/lib",)
    assert [str(table) for table in made.model("spark").reads] == ["main.numbers"]
