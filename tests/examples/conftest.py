"""The flights example, run for three days on the shared Spark session."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from penstock import Lake, Project
from penstock.engine.results import RunResult
from tests.examples.facts import EXAMPLE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DAYS = ("2013-01-01", "2013-01-02", "2013-01-03")


@dataclass(frozen=True, slots=True)
class Loaded:
    """``again`` is a second run of the last day; ``snapshots_before`` are those made before it."""

    project: Project
    runs: tuple[RunResult, ...]
    again: RunResult
    snapshots_before: int

    @property
    def lake(self) -> Lake:
        return self.project.lake("main")


def copy_of_example(directory: Path) -> Path:
    target = directory / "flights"
    shutil.copytree(EXAMPLE, target, ignore=shutil.ignore_patterns("lake", "__pycache__"))
    return target


@pytest.fixture(scope="session")
def loaded(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Loaded]:
    example = copy_of_example(tmp_path_factory.mktemp("example"))
    with Project.load(example, spark=spark) as project:
        runs = tuple(project.run(partition=day) for day in DAYS)
        before = len(project.lake("main").snapshots())
        yield Loaded(project, runs, project.run(partition=DAYS[-1]), before)
