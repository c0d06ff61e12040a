"""``penstock check``: what it says, and its exit code. No Spark."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from penstock import Lake
from penstock.cli.main import main, seldom_collected


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


STEP = "-- materialize ducklake://main/t\nSELECT 1 AS a"


@pytest.mark.parametrize(
    ("setting", "said", "line"),
    [
        ('catalog = "mysql:db=x"', "catalogs in MySQL are not supported", 2),
        ('catalog = "oracle:db"', "there are no catalogs of kind 'oracle'", 2),
        ('catalog = "sqlite:models"', "models is a directory", 2),
        ('catalog = "sqlite:penstock.toml/x/meta"', "penstock.toml is not a directory", 2),
        ('catalog = "sqlite:m"\ndata_path = "gs://b/x"', "writing to gs:// is not supported", 3),
        ('catalog = "sqlite:m"\ndata_path = "penstock.toml"', "is not a directory", 3),
        ('catalog = "sqlite:m"\ndata_path = "d"\ns3_region = "x"', "is not in S3", 2),
        ('catalog = "sqlite:m"\ns3_committer = "x"', "storage.committer is 'x'", 2),
    ],
)
def test_a_lake_that_cannot_be_is_an_error(
    project: Path, setting: str, said: str, line: int
) -> None:
    (project / "penstock.toml").write_text(f"[lakes.main]\n{setting}\n")
    (project / "models/t.sql").write_text(STEP)
    result = check(project)
    assert (result.exit_code, result.stdout) == (2, "1 model, 1 error\n")
    assert result.stderr.startswith(f"{project}/penstock.toml:{line}: error: ")
    assert said in result.stderr
    assert not (project / "m").exists()


def test_a_relationship_to_no_table_is_a_warning(project: Path) -> None:
    lake = f"ducklake:sqlite:{project}/lake/meta.sqlite"
    (project / "lake").mkdir()
    with Lake.attach(lake, data_path=f"{project}/lake/data") as made:
        made.sql("CREATE TABLE there (a INT)")
    tests = "".join(
        f"-- data_test relationships a -> ducklake://main/{table}.a\n"
        for table in ("There", "t", "gone")
    )
    (project / "models/t.sql").write_text(tests + STEP)
    result = check(project)
    assert (result.exit_code, result.stdout) == (0, "1 model, no errors, 1 warning\n")
    assert "t.sql:3:4: warning: no model makes main.gone" in result.stderr


def test_what_nothing_acts_on_is_reported(project: Path) -> None:
    idle = ("on schedule", "on s3://x", "trigger all", "freshness 1h", "debounce 5m")
    header = "".join(f"-- {line}\n" for line in idle)
    (project / "models/t.sql").write_text(f"{header}-- on ducklake://main/u debounce=1m\n{STEP}")
    result = check(project)
    assert (result.exit_code, result.stdout) == (0, "1 model, no errors, 6 warnings\n")
    places = sorted(line.split(": ")[0][-5:] for line in result.stderr.splitlines()[::2])
    assert places == [f"l:{number}:4" for number in range(1, 7)]
    assert "t.sql:4:4: warning: nothing acts on `freshness` in this version" in result.stderr


def test_a_strategy_that_is_not_there_is_refused(project: Path) -> None:
    header = "-- materialize ducklake://main/t history key=a"
    (project / "models/t.sql").write_text(f"{header}\nSELECT 1 AS a")
    result = check(project)
    assert result.exit_code == 2
    assert "t.sql:1:4: error: " in result.stderr
    assert "not in this version" in result.stderr


def test_a_script_in_the_cache_needs_no_parser(project: Path, tmp_path: Path) -> None:
    (project / "models/t.sql").write_text(STEP)
    code = (
        "import sys; from penstock.cli.main import main\n"
        "main(['check'], standalone_mode=False); print('sqlglot' in sys.modules)"
    )
    environment = {**os.environ, "PENSTOCK_CACHE_DIR": str(tmp_path / "cache")}
    said = [
        subprocess.run(
            [sys.executable, "-c", code],
            cwd=project, env=environment, capture_output=True, text=True, check=True,
        ).stdout.splitlines()
        for _ in ("cold", "warm")
    ]  # fmt: skip
    assert said == [["1 model, no errors", "True"], ["1 model, no errors", "False"]]


def test_garbage_is_collected_as_before_when_a_command_is_done(project: Path) -> None:
    before = gc.get_threshold()
    with seldom_collected():
        assert gc.get_threshold()[0] >= before[0]
    check(project)
    assert gc.get_threshold() == before
