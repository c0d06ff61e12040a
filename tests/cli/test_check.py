"""``penstock check``: what it says, and its exit code. No Spark."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from penstock.cli.main import main


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "models").mkdir()
    (tmp_path / "penstock.toml").write_text('[lakes.main]\ncatalog = "sqlite:lake/meta.sqlite"\n')
    return tmp_path


def check(project: Path, *options: str) -> Result:
    return CliRunner().invoke(main, ["check", "--project", str(project), *options])


def test_a_project_without_models_is_an_error(project: Path) -> None:
    result = check(project)
    assert (result.exit_code, result.stdout) == (2, "0 models, 1 error\n")
    assert f"{project}/models: error: the project has no model\n  → " in result.stderr
    as_json = check(project, "--json")
    assert as_json.exit_code == 2
    (finding,) = json.loads(as_json.stdout)["diagnostics"]
    assert finding["rule"] == "no-models"


def test_warnings_about_files_that_make_no_model_are_printed(project: Path) -> None:
    (project / "models/t.sql").write_text("-- materialize ducklake://main/t\nSELECT 1 AS a")
    (project / "models/step.py").write_text("# pipeline\nprint(1)")
    result = check(project)
    assert (result.exit_code, result.stdout) == (0, "1 model, no errors, 1 warning\n")
    assert "step.py:1:3: warning: a .py file is not taken" in result.stderr
