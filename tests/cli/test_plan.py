"""``penstock plan``: each step's slice, without Spark."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from penstock.cli.main import main
from tests.engine.toy import write_project

HEAD = "-- pipeline\n-- partitioned {}\n-- materialize ducklake://main/{}\n"
SCRIPTS = {
    f"models/{name}": HEAD.format(line, name) + "SELECT '{partition}' AS p"
    for name, line in {
        "days": "daily",
        "months": "monthly",
        "later": 'daily start="2999-01-01"',
        "tenants": 'dynamic key="$.tenant"',
    }.items()
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write_project(tmp_path / "p", SCRIPTS)


def plan(root: Path, *options: str) -> Result:
    return CliRunner().invoke(main, ["plan", "--project", str(root), *options])


def test_each_step_has_its_slice(root: Path) -> None:
    result = plan(root, "--payload", '{"tenant": "acme"}')
    lines = {line.split()[0]: line.split()[3:] for line in result.stdout.splitlines()}
    assert lines["tenants"] == ["acme", "planned"]
    assert len(lines["days"][0]) == len("2026-05-16")
    assert len(lines["months"][0]) == len("2026-05")
    assert lines["later"][1:] == ["skipped", "(before", "start)"]
    assert not (root / "lake").exists()


def test_a_value_for_one_kind_says_how_to_separate_it(root: Path) -> None:
    result = plan(root, "-s", "days", "-s", "months", "--partition", "2026-05-16")
    assert result.exit_code == 2
    assert "is for days (partitioned daily), not for months (partitioned monthly)" in result.stderr
    assert "--select days with this partition, then --select months" in result.stderr
    chosen = json.loads(plan(root, "-s", "days", "--partition", "2026-05-16", "--json").stdout)
    assert [step["slice"] for step in chosen["steps"]] == ["2026-05-16"]
