from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner, Result

from penstock.cli.main import main
from tests.dbt_import.manifests import node, written


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, ["import", "dbt", *map(str, arguments)])


def test_a_project_is_written_once(tmp_path: Path) -> None:
    source = written(tmp_path / "dbt", node("model", "a"), node("model", "p", language="python"))
    first = run(source, "--into", tmp_path / "shop")
    assert first.exit_code == 0, first.output
    assert "model p: a model in Python is to be written as a step in Python" in first.output
    assert "wrote 2 files" in first.output
    assert (tmp_path / "shop" / "models" / "shop" / "a.sql").is_file()
    again = run(source, "--into", tmp_path / "shop")
    assert again.exit_code == 2
    assert "models/shop/a.sql exists, and 1 other file" in again.output


def test_a_dry_run_writes_nothing_and_json_has_all(tmp_path: Path) -> None:
    source = written(tmp_path / "dbt", node("model", "a"))
    result = run(source, "--into", tmp_path / "shop", "--dry-run", "--json")
    assert json.loads(result.output) == {
        "schema_version": 1,
        "project": str(tmp_path / "shop"),
        "written": False,
        "files": ["models/shop/a.sql", "penstock.toml"],
        "left": [],
        "notes": [],
    }
    assert not (tmp_path / "shop").exists()


def test_without_a_manifest_the_next_step_is_named(tmp_path: Path) -> None:
    result = run(tmp_path)
    assert result.exit_code == 2
    assert "run `dbt compile` there" in result.output


def test_nothing_is_written_outside_of_the_project(tmp_path: Path) -> None:
    source = written(tmp_path / "dbt", node("model", "a", schema="../../x"))
    result = run(source, "--into", tmp_path / "shop")
    assert result.exit_code == 2
    assert "would be written outside" in result.output
    assert not (tmp_path / "shop").exists()
