"""``penstock restate`` before it runs: it shows slices and asks. Spark counts their rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner, Result

from penstock.cli.main import main
from penstock.project.project import Project
from tests.engine.toy import write_project

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DAYS = "-- pipeline\n-- partitioned daily start=2026-01-01\n-- materialize ducklake://main/days\n"
LOG = "-- pipeline\n-- materialize ducklake://main/log append\nSELECT * FROM whole"
SCRIPTS = {
    "models/days": f"{DAYS}SELECT '{{partition}}' AS day",
    "models/whole": "-- pipeline\n-- materialize ducklake://main/whole\nSELECT 1 AS n",
    "models/log": LOG,
}
RANGE = ("--from", "2026-01-01", "--to", "2026-01-02")


@pytest.fixture(scope="module")
def root(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = write_project(tmp_path_factory.mktemp("restate") / "p", SCRIPTS)
    with Project.load(root) as project:
        project.lake("main")
    return root


def restate(root: Path, *arguments: str) -> Result:
    return CliRunner().invoke(main, ["restate", "--project", str(root), *arguments])


def test_a_dry_run_shows_slices_and_ends(root: Path) -> None:
    said = restate(root, "days", *RANGE, "--dry-run")
    assert said.exit_code == 0, said.output
    assert [line.split() for line in said.stdout.splitlines()] == [
        ["model", "table", "slices", "rows", "now"],
        ["days", "main.days", "2026-01-01", "to", "2026-01-02", "(2", "slices)", "0", "rebuilt"],
    ]


def test_readers_that_only_add_are_named_with_the_reason(root: Path) -> None:
    said = restate(root, "whole", "--downstream", "--dry-run")
    whole, log = (line.split(maxsplit=2) for line in said.stdout.splitlines()[1:])
    assert whole == ["whole", "main.whole", "whole table  0         rebuilt"]
    assert log[2].startswith("not restated: its rows are only ever added")


def test_a_dry_run_as_json(root: Path) -> None:
    shown = json.loads(restate(root, "whole", "--dry-run", "--json").stdout)["models"]
    assert [(each["model"], each["slice"], each["rows"]) for each in shown] == [("whole", None, 0)]


def test_without_a_terminal_it_wants_yes(root: Path) -> None:
    said = restate(root, "whole")
    assert said.exit_code == 2
    assert "to do it: --yes; to see only what it would do: --dry-run" in said.stderr


def test_a_range_of_a_model_without_ranges_is_refused(root: Path) -> None:
    said = restate(root, "whole", *RANGE, "--yes")
    assert said.exit_code == 2
    assert "whole has no ranges" in said.stderr
