"""``penstock check``: what it says, and its exit code. No Spark.

Tests ``engine/verifying/project_check.py`` (faults across models) and
``settings/refused_settings.py`` (what to write instead).
"""

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
from tests.engine.toy import write_project


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
    assert "models: error: the project has no model\n  → " in result.stderr
    as_json = check(project, "--json")
    assert as_json.exit_code == 2
    (finding,) = json.loads(as_json.stdout)["diagnostics"]
    assert finding["rule"] == "no-models"


def test_warnings_about_files_that_make_no_model_are_printed(project: Path) -> None:
    (project / "models/t.sql").write_text("-- materialize ducklake://main/t\nSELECT 1 AS a")
    (project / "models/step.sh").write_text("# pipeline\necho 1")
    result = check(project)
    assert (result.exit_code, result.stdout) == (0, "1 model, no errors, 1 warning\n")
    assert (
        "step.sh:1:3: warning: a .sh file is not taken: a step is a .sql or .py file"
        in result.stderr
    )


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
    assert result.stderr.startswith(f"penstock.toml:{line}: error: ")
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


def test_a_table_to_wait_for_that_is_not_there_is_a_warning(project: Path) -> None:
    script = "MODEL (name t, kind FULL, depends_on (u, gone));\nSELECT 1 AS a"
    (project / "models/t.sql").write_text(script)
    (project / "models/u.sql").write_text("MODEL (name u, kind FULL);\nSELECT 1 AS a")
    result = check(project)
    assert (result.exit_code, result.stdout) == (0, "2 models, no errors, 1 warning\n")
    assert "t.sql:1:27: warning: no model makes main.gone" in result.stderr


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (None, "file models/codes.csv does not exist"),
        ("a,b\n1,2\n3\n", "models/codes.csv, line 3: the row has 1 of 2 columns"),
    ],
)
def test_a_seed_that_cannot_be_read_is_an_error(project: Path, rows: str | None, said: str) -> None:
    (project / "models/t.sql").write_text("MODEL (name t, kind SEED (path 'codes.csv'));\n")
    if rows is not None:
        (project / "models/codes.csv").write_text(rows)
    result = check(project)
    assert (result.exit_code, result.stdout) == (2, "1 model, 1 error\n")
    assert f"t.sql:1:27: error: {said}" in result.stderr


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"test_a: [", "u.yaml:1:10: error: "),
        (b"test_a:\n  model: nope\n", "u.yaml:2:3: error: the test test_a says no outputs"),
        (
            b"test_a:\n  model: nope\n  outputs: {query: [{a: 1}]}\n",
            "u.yaml:2:3: error: model nope does not exist",
        ),
        (b"\xff", "u.yaml: error: the file u.yaml cannot be read"),
    ],
)
def test_unit_tests_that_cannot_run_are_errors(project: Path, text: bytes, said: str) -> None:
    (project / "models/t.sql").write_text(STEP)
    (project / "tests").mkdir()
    (project / "tests/u.yaml").write_bytes(text)
    result = check(project)
    assert (result.exit_code, result.stdout) == (2, "1 model, 1 error\n")
    assert said in result.stderr


def test_triggers_are_reported_that_never_fire(project: Path) -> None:
    lines = ("on schedule", "on s3://x", "on mqtt", "trigger all", "freshness 1h", "debounce 5m")
    header = "".join(f"-- {line}\n" for line in lines)
    (project / "models/t.sql").write_text(f"{header}-- on ducklake://main/u debounce=1m\n{STEP}")
    result = check(project)
    assert (result.exit_code, result.stdout) == (0, "1 model, no errors, 4 warnings\n")
    places = sorted(line.split(": ")[0][-5:] for line in result.stderr.splitlines()[::2])
    assert places == [f"l:{number}:4" for number in (1, 3, 4, 7)]
    assert "t.sql:1:4: warning: the schedule has no cron, so it never fires" in result.stderr
    assert "t.sql:3:4: warning: nothing serves `mqtt`" in result.stderr
    assert "t.sql:4:4: warning: `trigger all` waits for nothing" in result.stderr
    assert "t.sql:7:4: warning: no model makes main.u, and its lake does not" in result.stderr


def test_a_slice_in_the_name_of_a_table(project: Path) -> None:
    on = "-- on ducklake://main/raw_{partition}\n"
    (project / "models/t.sql").write_text(f"{on}{STEP}")
    result = check(project)
    assert (result.exit_code, result.stdout) == (0, "1 model, no errors, 1 warning\n")
    assert "t.sql:1:4: warning: {partition} is not replaced in the name" in result.stderr


def test_a_table_that_nobody_makes(project: Path) -> None:
    (project / "models/orders.sql").write_text("-- materialize ducklake://main/orders\nSELECT 1")
    (project / "models/t.sql").write_text(
        "-- materialize ducklake://main/t\n"
        "SELECT * FROM orders\nJOIN order USING (a)\nJOIN elsewhere"
    )
    (project / "models/manual.sql").write_text(
        "-- materialize manual ducklake://main/manual\nCREATE TABLE made (a INT);\n"
        "CREATE TABLE manual AS SELECT * FROM made"
    )
    (project / "models/old.sql").write_text(
        "-- materialize ducklake://main/old\nSELECT * FROM was AT (VERSION => 1)"
    )
    (project / "models/step.py").write_text(
        "# materialize ducklake://main/step\nimport penstock\n"
        'def main() -> None:\n    return penstock.lake("main").read("gone")\n'
    )
    result = check(project)
    assert (result.exit_code, result.stdout) == (0, "5 models, no errors, 3 warnings\n")
    for place, table, hint in (
        ("t.sql:3:6", "order", "did you mean orders?"),
        ("t.sql:4:6", "elsewhere", "the model fails until there is such a table"),
        ("step.py:3:1", "gone", "the model fails until there is such a table"),
    ):
        assert f"{place}: warning: no model makes main.{table}, and its lake" in result.stderr
        assert f"→ {hint}" in result.stderr


def test_what_sqlmesh_is_told(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "gateways: {}\nmodel_defaults:\n  dialect: duckdb\n  start: 2024-01-01\nlinter: {}\n"
    text += "users: []\nvariables: {}\n"
    (project / "config.yaml").write_text(text)
    (project / "models/t.sql").write_text("MODEL (name t, blueprints ((a := 1)));\nSELECT 1 AS n")
    said = check(project).stderr
    assert (
        "config.yaml: warning: the file is SQLMesh's, and Penstock does not read it: "
        "gateways, model_defaults.dialect, model_defaults.start, linter" in said
    )
    assert "model_defaults.start: start in [project.defaults] of penstock.toml" in said
    assert "linter: `penstock check`" in said
    assert "users: owner in [project.defaults], and [notify.NAME] in penstock.toml" in said
    assert "variables: [project.variables] in penstock.toml, with the same names" in said
    assert "`blueprints` cannot be given: a script makes one model" in said
    (project / "penstock.toml").unlink()
    monkeypatch.chdir(project)
    assert "write a penstock.toml beside it" in CliRunner().invoke(main, ["check"]).stderr


def test_names_that_a_history_reserves(project: Path) -> None:
    header = "-- materialize ducklake://main/t history key=a"
    (project / "models/t.sql").write_text(f"{header}\nSELECT 1 AS a,\n  now() AS valid_from")
    other = "-- materialize ducklake://main/t_current\nSELECT 1 AS a"
    (project / "models/u.sql").write_text(other)
    assert "t.sql:3:12: error: `valid_from` is reserved" in check(project).stderr
    (project / "models/t.sql").write_text(f"{header}\nSELECT 1 AS a")
    result = check(project)
    assert result.exit_code == 2
    assert "u.sql:1:4: error: main.t_current is reserved: it is the view" in result.stderr


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


KINDS = (
    "INCREMENTAL_BY_UNIQUE_KEY (unique_key {})",
    "SCD_TYPE_2_BY_TIME (unique_key {})",
    "SCD_TYPE_2_BY_COLUMN (unique_key {}, columns [name])",
    "INCREMENTAL_BY_TIME_RANGE (time_column {})",
    "INCREMENTAL_BY_PARTITION, partitioned_by {}",
)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dialect", ["duckdb", "spark"])
def test_a_cast_without_alias_is_the_column_in_model(
    tmp_path: Path, kind: str, dialect: str
) -> None:
    query = "SELECT id::DATE, name::STRING, updated_at::TIMESTAMP FROM src AS s"
    head = f"MODEL (name m, dialect {dialect}, kind {kind}, start '2026-01-01');\n"
    write_project(tmp_path / "p", {"models/m": head.format("id") + query})
    assert checked(tmp_path / "p", "the query does not make") == []
    write_project(tmp_path / "q", {"models/m": head.format("idd") + query})
    assert checked(tmp_path / "q", "the query does not make") != []


def test_a_cast_without_alias_has_the_name_of_duckdb_in_annotations(tmp_path: Path) -> None:
    head = "-- pipeline\n-- materialize ducklake://main/m key=id\n"
    write_project(tmp_path / "p", {"models/m": head + "SELECT id::INT FROM src"})
    file = tmp_path / "p" / "penstock.toml"
    file.write_text(file.read_text().replace("[project]", '[project]\ndialect = "duckdb"'))
    (finding,) = checked(tmp_path / "p", "the query does not make")
    assert "it makes CAST(id AS INTEGER)" in finding


def checked(root: Path, message: str) -> list[str]:
    """The findings of ``check`` with a message, each with its hint."""
    done = CliRunner().invoke(main, ["check", "--json", "--project", str(root)])
    findings = json.loads(done.stdout)["diagnostics"]
    return [f"{each['message']} {each['hint']}" for each in findings if message in each["message"]]


def test_folders_of_sqlmesh_are_named(project: Path) -> None:
    (project / "config.yaml").write_text("gateways: {}\nnotification_targets: []\n")
    for name in ("signals", "linter", "metrics"):
        (project / name).mkdir()
    said = check(project).stderr
    assert "nor does it read linter/, metrics/, signals/" in said
    assert "notification_targets: [notify.NAME] in penstock.toml" in said


PYTHON = """
import sqlmesh.core.config as c
config = c.Config(
    gateways={"duck": c.GatewayConfig(connection=None)},
    model_defaults=c.ModelDefaultsConfig(dialect="duckdb", owner="ann"),
    users=[],
)
"""


@pytest.mark.parametrize(("text", "is_read"), [(PYTHON, True), ("import sqlmesh\nConfig(", False)])
def test_a_configuration_of_sqlmesh_in_python(project: Path, text: str, is_read: bool) -> None:
    (project / "config.py").write_text(text)
    said = check(project).stderr
    assert "config.py: warning: the file is SQLMesh's, and Penstock does not read it" in said
    keys = ": gateways, model_defaults.dialect, model_defaults.owner, users\n"
    assert (keys in said) is is_read
    assert ("model_defaults.owner: owner in [project.defaults]" in said) is is_read


def test_defaults_of_sqlmesh_are_those_of_the_project(project: Path) -> None:
    defaults = {"cron": "'@daily'", "owner": "ann", "audits": "[]", "kind": "FULL"}
    lines = "".join(f"  {name}: {value}\n" for name, value in defaults.items())
    (project / "config.yaml").write_text(f"model_defaults:\n{lines}")
    said = check(project).stderr
    for name, here in {"cron": "cron", "owner": "owner", "audits": "data_tests"}.items():
        hint = f"model_defaults.{name}: {here} in [project.defaults] of penstock.toml"
        assert hint in said
    assert "model_defaults.kind: in each MODEL (...)" in said


def test_a_dbt_project_is_told_how_to_import(tmp_path: Path) -> None:
    root = write_project(tmp_path / "p", {})
    (root / "dbt_project.yml").write_text("name: shop\n")
    assert "`penstock import dbt . --into DIR`" in check(root).stderr
    (root / "models").rmdir()
    assert "`penstock import dbt . --into DIR`" in check(root).stderr


def test_folders_of_defaults_hold_broken_models(tmp_path: Path) -> None:
    root = write_project(tmp_path / "p", {"models/marts/a": "-- materialize nowhere\nSELECT 1"})
    with (root / "penstock.toml").open("a") as file:
        file.write('[project.defaults]\nowner = "x"\n[project.defaults.marts]\nowner = "y"\n')
    said = check(root)
    assert said.exit_code == 2
    assert "no model is below the folder" not in said.stderr


def test_a_python_step_that_takes_its_interval_is_not_warned_of(tmp_path: Path) -> None:
    head = "# pipeline\n# materialize ducklake://main/m time=d\n"
    takes = "def main(partition_start, partition_end):\n    return []\n"
    root = write_project(tmp_path / "p", {"models/m.py": head + takes})
    assert "the same for every interval" not in check(root).stderr
    root = write_project(tmp_path / "q", {"models/m.py": head + "def main():\n    return []\n"})
    assert "what main gets is the same for every interval" in check(root).stderr


def test_a_file_in_s3_without_a_bucket(tmp_path: Path) -> None:
    script = "-- materialize ducklake://main/m\nSELECT *\nFROM read_csv('s3:///a/{}.csv')"
    root = write_project(tmp_path / "p", {"models/m": script.format("x")})
    done = check(root)
    assert done.exit_code == 2
    assert "m.sql:3:6: error: s3:///a/x.csv names no bucket" in done.stderr
    assert "write s3://bucket/a/x.csv" in done.stderr
