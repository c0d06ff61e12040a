"""Small projects for tests: scripts in, a Project out."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from textwrap import dedent
from typing import Any

from penstock.engine.results import RunResult, StepResult
from penstock.project.project import Project

CONFIG = """
[project]
name = "toy"
[lakes.main]
catalog = "sqlite:lake/meta.sqlite"
data_path = "lake/data"
[run]
jobs = 2
"""


def write_project(root: Path, scripts: Mapping[str, str], config: str = CONFIG) -> Path:
    """``scripts``: path below the project (``models/a`` of SQL, ``models/a.py``) -> text."""
    root.mkdir(exist_ok=True)
    (root / "penstock.toml").write_text(config)
    (root / "models").mkdir(exist_ok=True)
    for name, text in scripts.items():
        path = root / (name if name.endswith(".py") else f"{name}.sql")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text).lstrip())
    return root


def step(result: RunResult, name: str) -> StepResult:
    return next(step for step in result.steps if step.name == name)


def rows(project: Project, query: str) -> list[tuple[Any, ...]]:
    """The rows of a query over the project, as tuples, in the query's order."""
    return [tuple(row) for row in project.sql(query).collect()]
