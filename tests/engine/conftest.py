"""Projects over the shared session."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from penstock.project.project import Project
from tests.engine.toy import write_project

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Make = Callable[..., Project]


@pytest.fixture
def make(tmp_path: Path, spark: SparkSession) -> Iterator[Make]:
    """``make({"models/a": "..."})``: a project in the test's directory; again to change scripts."""
    opened: list[Project] = []

    def load(scripts: dict[str, str]) -> Project:
        project = Project.load(write_project(tmp_path / "toy", scripts), spark=spark)
        opened.append(project)
        return project

    yield load
    for project in opened:
        project.close()
