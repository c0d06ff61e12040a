"""The world example, in MODEL form: run once and once more, and read by DuckDB."""

from __future__ import annotations

import csv
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from penstock import Project
from penstock.engine.results import RunResult
from penstock.engine.verifying.unit_tests import UnitTestResult
from tests import duck

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "world"


@dataclass(frozen=True, slots=True)
class RunContext:
    """``again`` is a second run of the project as it is."""

    project: Project
    run: RunResult
    again: RunResult
    tests: tuple[UnitTestResult, ...]


def copy_of_world(directory: Path) -> Path:
    ignored = shutil.ignore_patterns("lake", "__pycache__")
    return Path(shutil.copytree(EXAMPLE, directory / "world", ignore=ignored))


@pytest.fixture(scope="module")
def world(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunContext]:
    root = copy_of_world(tmp_path_factory.mktemp("example"))
    with Project.load(root, spark=spark) as project:
        yield RunContext(project, project.run(), project.run(), tuple(project.test()))


def rows(world: RunContext, query: str) -> list[tuple[Any, ...]]:
    """In DuckDB, the lake as ``lk``."""
    with duck.attach(world.project.lake("main").catalog.uri, read_only=True) as connection:
        return connection.execute(query).fetchall()


def seed(name: str) -> list[dict[str, str]]:
    with (EXAMPLE / "seeds" / f"{name}.csv").open(newline="", encoding="utf-8") as text:
        return list(csv.DictReader(text))


def test_it_checks_without_a_warning(tmp_path: Path) -> None:
    project = Project.load(copy_of_world(tmp_path))
    assert list(project.check()) == []
    assert [warning for model in project.models for warning in model.warnings] == []


def test_what_is_external_is_described(tmp_path: Path) -> None:
    project = Project.load(copy_of_world(tmp_path))
    assert project.create_external().added == ()
    written = tmp_path / "world" / "external_models.yaml"
    described = written.read_text()
    written.unlink()
    created = Project.load(tmp_path / "world").create_external()
    assert created.added == ("atlas.main.continents",)
    assert [line for line in described.splitlines() if "description" not in line] == (
        written.read_text().replace(": string", ": text").splitlines()
    )


@pytest.mark.spark
def test_every_model_is_made_and_every_test_passes(world: RunContext) -> None:
    assert world.run.state == "done"
    failed = [(s.name, c.name) for s in world.run.steps for c in s.checks if not c.passed]
    assert failed == []
    assert [test.state for test in world.tests] == ["passed"] * len(world.tests)


@pytest.mark.spark
def test_nothing_changes_when_it_runs_again(world: RunContext) -> None:
    assert {step.name: step.state for step in world.again.steps} == {
        step.name: "unchanged" for step in world.run.steps
    }


@pytest.mark.spark
def test_every_country_has_its_code_whatever_it_is_called(world: RunContext) -> None:
    found = rows(world, "SELECT iso, year, population FROM lk.clean.indicators")
    codes = {row["name"]: row["iso"] for row in (*seed("countries"), *seed("country_names"))}
    expected = {
        (codes[row["country"]], int(row["year"]), int(row["pop"])) for row in seed("indicators")
    }
    assert len(found) == len(expected)
    assert set(found) == expected


@pytest.mark.spark
def test_namibia_and_north_america_are_there(world: RunContext) -> None:
    assert rows(world, "SELECT name FROM lk.raw.countries WHERE iso = 'NA'") == [("Namibia",)]
    query = "SELECT count(*) FROM lk.raw.countries WHERE continent = 'NA'"
    north = sum(row["continentcode"] == "NA" for row in seed("countries"))
    assert rows(world, query) == [(north,)]


@pytest.mark.spark
def test_duckdb_reads_every_table_and_view_with_the_same_rows(world: RunContext) -> None:
    lake = world.project.lake("main")
    for step in world.run.steps:
        name = step.target.partition(".")[2]
        theirs = rows(world, f"SELECT * FROM lk.{name}")
        ours = lake.sql(f"SELECT * FROM {name}").toArrow().to_pylist()
        assert sorted(map(str, theirs)) == sorted(str(tuple(row.values())) for row in ours), name


@pytest.mark.spark
def test_the_step_in_python_finds_what_duckdb_does(world: RunContext) -> None:
    (step,) = (step for step in world.run.steps if step.name == "marts/doubling")
    assert (step.rows, [check.passed for check in step.checks]) == (142, [True, True])
    slopes = (
        "SELECT iso, 1 / regr_slope(log2(population), year) AS years "
        "FROM lk.clean.indicators GROUP BY iso"
    )
    query = f"SELECT count(*) FROM lk.marts.doubling d JOIN ({slopes}) s USING (iso)"
    assert rows(world, f"{query} WHERE abs(d.years - s.years) < 0.00001") == [(142,)]
