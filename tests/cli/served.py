"""A project with each kind of trigger, and commands on it, without Spark."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from penstock.cli.main import main
from penstock.project.project import Project
from penstock.server.agenda_store import AgendaStore
from penstock.server.opening import open_agenda
from tests.engine.toy import write_project

SCRIPTS = {
    "models/hours": """
-- pipeline
-- materialize ducklake://main/hours
-- tag finance
-- on schedule cron="30 * * * *"
SELECT 1 AS n
""",
    "models/reader": """
-- pipeline
-- materialize ducklake://main/reader
-- on ducklake://main/hours
SELECT n FROM hours
""",
    "models/tenants": """
-- pipeline
-- partitioned dynamic key="$.tenant"
-- materialize ducklake://main/tenants
-- on webhook name=signup
SELECT '{partition}' AS tenant
""",
    "models/days": """
-- pipeline
-- partitioned daily start="2026-11-01"
-- materialize ducklake://main/days
SELECT '{partition}' AS day
""",
}


def make_served(directory: Path) -> Path:
    return write_project(directory / "served", SCRIPTS)


def penstock(root: Path, *arguments: str) -> Result:
    return CliRunner().invoke(main, [*arguments, "--project", str(root)])


def as_json(root: Path, *arguments: str) -> Any:
    result = penstock(root, *arguments, "--json")
    assert result.exit_code == 0, result.stdout
    return json.loads(result.stdout)


def refusal(root: Path, *arguments: str) -> str:
    """What a command that is refused says."""
    result = penstock(root, *arguments)
    assert result.exit_code == 2, result.output
    return result.stderr


@contextmanager
def agenda(root: Path) -> Iterator[AgendaStore]:
    with Project.load(root) as project:
        yield open_agenda(project.context)
