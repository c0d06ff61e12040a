"""``penstock environments``. No Spark, no lake."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from penstock.cli.main import main

SETTINGS = """
[lakes.main]
catalog = "sqlite:lake/meta.sqlite"
data_path = "lake/data"

[environments.prod.run]
jobs = 8

[environments.prod.lakes.main]
catalog = "postgres:password='${PGPASSWORD}'"
data_path = "s3://shop/lake"

[environments.dev]
schema_suffix = "_dev"
reads = "default"
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "penstock.toml").write_text(SETTINGS)
    return tmp_path


def printed(root: Path, *arguments: str) -> str:
    result = CliRunner().invoke(main, ["environments", "--project", str(root), *arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_environments_are_listed_with_what_they_override(root: Path) -> None:
    lines = [line.split() for line in printed(root).splitlines()]
    assert lines[1:] == [
        ["*", "default"],
        ["prod", "run,", "lakes.main"],
        ["dev", "_dev", "default"],
    ]


def test_the_environment_of_the_command_is_marked(root: Path) -> None:
    listed = json.loads(printed(root, "--env", "dev", "--json"))["environments"]
    assert [each["name"] for each in listed if each["current"]] == ["dev"]


def test_no_value_of_a_setting_is_shown(root: Path) -> None:
    assert "s3://" not in printed(root) + printed(root, "--json")
