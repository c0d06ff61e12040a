"""``penstock plan``: each step's slice, without Spark."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from penstock.cli.main import main
from penstock.engine.state.store import State
from penstock.project.project import Project
from tests.engine.state.builders import publication, run_record
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
    assert lines["tenants"] == ["acme", "missing", "planned"]
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


HISTORY = """
MODEL (
  name dim,
  kind SCD_TYPE_2_BY_COLUMN (unique_key id, columns (tier), batch_size 1),
  start '2026-01-01'
);
SELECT id, tier FROM src WHERE day = @start_date
"""


def test_a_plan_that_cannot_work_exits_with_2(tmp_path: Path) -> None:
    root = write_project(tmp_path / "p", {"models/dim": HISTORY})
    with Project.load(root) as project:
        lake = project.lake("main")
        lake.sql("CREATE TABLE dim (id INTEGER, tier VARCHAR)")
        state, made = State(lake.catalog), "2026-01-01T00:00:00Z/2026-01-10T00:00:00Z"
        state.begin_run(run_record())
        state.confirm(publication(target="main.dim", slice=made, step="dim"), 1)
    result = plan(root, "--partition", "2026-01-03")
    assert (result.exit_code, "a history is made in the order" in result.stdout) == (2, True)
    as_json = plan(root, "--partition", "2026-01-03", "--json")
    assert as_json.exit_code == 2
    assert json.loads(as_json.stdout)["steps"][0]["state"].startswith("failed: a history")


def test_a_step_says_what_it_would_do_to_its_table(root: Path) -> None:
    with Project.load(root) as project:
        lake = project.lake("main")
        lake.sql("CREATE TABLE days (p VARCHAR, _wm_partition VARCHAR)")
        lake.sql("INSERT INTO days VALUES ('a', 'a')")
    refused = plan(root, "-s", "days")
    assert (refused.exit_code, "failed: main.days holds 1 row that no" in refused.stdout) == (
        2,
        True,
    )
    dropped = plan(root, "-s", "days", "--full-refresh")
    assert dropped.exit_code == 0
    assert "planned: drops the table (full refresh)" in dropped.stdout
    (step,) = json.loads(plan(root, "-s", "days", "--full-refresh", "--json").stdout)["steps"]
    assert step["stages"] == [{"stage": "drop_table", "why": "full refresh", "holds": None}]


def test_a_catalog_that_cannot_be_read_leaves_a_plan_without_tables(root: Path) -> None:
    (root / "lake").mkdir()
    (root / "lake" / "meta.sqlite").write_text("no catalog")
    result = plan(root, "-s", "days")
    assert (result.exit_code, "planned" in result.stdout) == (0, True)
    assert "what the run drops or alters is not known" in result.stderr


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_a_dry_run_is_the_plan(root: Path, form: tuple[str, ...]) -> None:
    request = ["days", "--start", "2026-01-01", "--end", "2026-01-03", *form]
    dry = CliRunner().invoke(main, ["run", "--dry-run", "--project", str(root), *request])
    same = ["days", "--from", "2026-01-01", "--to", "2026-01-03", *form]
    assert (dry.exit_code, dry.stdout) == (0, plan(root, *same).stdout)
    assert not (root / "lake").exists()


def test_a_dry_run_of_a_saved_plan_is_refused(root: Path) -> None:
    arguments = ["run", "--dry-run", "--plan", "x.json", "--project", str(root)]
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code == 2
    assert "leave one of the two options out" in done.stderr
