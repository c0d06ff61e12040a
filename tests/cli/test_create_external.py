"""``penstock create-external`` on a small project, without Spark.

Tests ``engine/verifying/project_check.py`` too: which tables are read and not made, and their
entries.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from penstock.cli.main import main
from penstock.project.project import Project
from tests.engine.toy import write_project

MADE = "-- pipeline\n-- materialize ducklake://main/made\nSELECT * FROM orders"
READER = "-- pipeline\n-- materialize ducklake://main/reader\nSELECT * FROM made, gone, known"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A lake with `orders`; `gone` is nowhere, `known` is described already."""
    root = write_project(tmp_path / "p", {"models/made": MADE, "models/reader": READER})
    (root / "external_models.yaml").write_text("- name: main.known\n- name: main.unread")
    with Project.load(root) as project:
        lake = project.lake("main")
        lake.sql("CREATE TABLE orders (id BIGINT, name VARCHAR)")
    return root


def create(root: Path, *options: str) -> Result:
    return CliRunner().invoke(main, ["create-external", "--project", str(root), *options])


def test_what_is_read_and_not_made_gets_an_entry(root: Path) -> None:
    said = create(root)
    assert said.exit_code == 0, said.output
    path = root / "external_models.yaml"
    assert said.stdout.splitlines()[0].startswith("2 tables added to ")
    assert said.stdout.splitlines()[1:] == [
        "  main.gone: not there, so no columns",
        "  main.orders",
        "no query reads main.unread any more: take its entry away",
    ]
    assert path.read_text().splitlines() == [
        "- name: main.known",
        "- name: main.unread",
        "- name: main.gone",
        "- name: main.orders",
        "  columns:",
        "    id: bigint",
        "    name: string",
    ]


def test_a_second_time_there_is_nothing_to_add(root: Path) -> None:
    create(root)
    assert json.loads(create(root, "--json").stdout)["added"] == []


def test_entries_are_added_to_a_list_only(root: Path) -> None:
    (root / "external_models.yaml").write_text("[{name: main.known}]\n")
    said = create(root)
    assert said.exit_code == 2
    assert "write `- name: schema.table` for each entry" in said.stderr
    assert (root / "external_models.yaml").read_text() == "[{name: main.known}]\n"
