"""``backup`` and ``restore``: what they say, and how they end.

Tests ``cli/restore.py`` (to the same and another kind of database, with missing files).
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from penstock.cli.main import main
from penstock.lakes.catalog.catalog import Catalog
from tests import duck


def penstock(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with a lake of one table; its one script is broken, which must not matter."""
    (tmp_path / "models").mkdir()
    (tmp_path / "models/bad.sql").write_text("-- materialize nonsense\nSELECT")
    (tmp_path / "penstock.toml").write_text(
        '[lakes.main]\ncatalog = "sqlite:lake/meta.sqlite"\ndata_path = "lake/data"\n'
    )
    (tmp_path / "lake").mkdir()
    uri = f"ducklake:sqlite:{tmp_path}/lake/meta.sqlite"
    Catalog.open(uri, data_path=f"{tmp_path}/lake/data").close()
    with duck.attach(uri) as connection:
        connection.execute("CREATE TABLE t AS SELECT 1 AS i")
    return tmp_path


def test_there_and_back(project: Path) -> None:
    target = project / "one.bak"
    made = penstock("backup", target, "--project", project, "--check")
    assert made.exit_code == 0, made.output
    assert "lake main at snapshot 1" in made.output
    assert "Data files are not in it; they stay in" in made.output
    assert "Missing files: none of 1." in made.output
    again = penstock("restore", target, "--project", project)
    assert again.exit_code == 2
    assert "there is a catalog at" in again.stderr
    (project / "lake/meta.sqlite").rename(project / "lake/old.sqlite")
    done = penstock("restore", target, "--project", project, "--json", "--check")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["snapshot"] == 1
    assert duck.rows(f"ducklake:sqlite:{project}/lake/meta.sqlite", "FROM t") == [(1,)]


def test_missing_files(project: Path) -> None:
    next((project / "lake/data").rglob("*.parquet")).unlink()
    made = penstock("backup", project / "one.bak", "--project", project, "--check", "--json")
    assert made.exit_code == 1
    assert len(json.loads(made.stdout)["backup"]["files"]["missing"]) == 1
    to = f"sqlite:{project}/other.sqlite"
    done = penstock("restore", project / "one.bak", "--to", to, "--check")
    assert done.exit_code == 1
    assert "Missing files: 1 of 1:" in done.stderr


def test_to_another_kind_of_database(project: Path) -> None:
    penstock("backup", project / "one.bak", "--project", project)
    done = penstock("restore", project / "one.bak", "--to", f"{project}/other.ducklake", "--check")
    assert done.exit_code == 0, done.output
    assert "other.ducklake is at snapshot 1" in done.output
    assert duck.rows(f"ducklake:{project}/other.ducklake", "FROM t") == [(1,)]


def test_which_lake(project: Path) -> None:
    answer = penstock("backup", project / "one.bak", "--project", project, "--lake", "mian")
    assert answer.exit_code == 2
    assert "lake 'mian' does not exist" in answer.stderr


@pytest.mark.parametrize("command", [("status",), ("snapshots",), ("run",), ("maintain", "--all")])
def test_a_catalog_that_vanished(project: Path, command: tuple[str, ...]) -> None:
    (project / "models/bad.sql").write_text("-- materialize ducklake://main/u\nSELECT 1 AS i")
    (project / "lake/meta.sqlite").unlink()
    ended = penstock(*command, "--project", project)
    assert (ended.exit_code, ended.stdout) == (2, "")
    assert "holds the files of a lake (main/t/ducklake-" in ended.stderr
    assert "penstock restore BACKUP" in ended.stderr
    assert not (project / "lake/meta.sqlite").exists()
