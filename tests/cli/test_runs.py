"""``penstock runs``, and ``status --failed``: what they print of past runs. No Spark."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from penstock.cli.main import main
from penstock.engine.state.store import State
from penstock.settings.environment_tables import Environment
from tests.engine.answers.test_runs import shop
from tests.engine.planning.test_reasons import Shop
from tests.engine.state.builders import run_record
from tests.engine.toy import write_project

__all__ = ["shop"]  # a fixture


def penstock(directory: Path, *arguments: str) -> Result:
    return CliRunner().invoke(main, [*arguments, "--project", str(directory)])


@pytest.fixture
def root(shop: Shop) -> Path:
    return shop.project.settings.root


def test_runs_are_a_line_each(root: Path) -> None:
    lines = penstock(root, "runs").stdout.splitlines()
    assert len(lines) == 3
    assert "failed" in lines[1]
    assert "1 done, 1 failed, 1 skipped: upstream failed" in lines[1]
    assert penstock(root, "runs", "--failed", "--since", "24h").stdout == (
        "No such run is recorded.\n"
    )


def test_runs_as_json(root: Path) -> None:
    runs = json.loads(penstock(root, "runs", "--json", "--limit", "1").stdout)
    (run,) = runs["runs"]
    assert (run["run_id"], run["state"], run["exit_code"]) == ("r2", "failed", 1)
    assert run["steps"] == {"done": 1, "failed": 1, "skipped": 1}


def test_a_run_is_shown_with_all_that_is_known(root: Path) -> None:
    text = penstock(root, "runs", "show", "last").stdout
    for said in (
        "state      failed, exit code 1",
        "asked      penstock run days --from 2026-01-01 --to 2026-01-09",
        "days 2026-01-01 to 2026-01-09: missing (9)",
        "days 2026-01-02: failed\n  1 of 1 failed",
        "test unique day failed: 2 rows",
        "reader 2026-01-02: skipped: upstream failed\n  upstream days failed",
    ):
        assert said in text, text


def test_a_run_is_shown_without_the_word_show(root: Path) -> None:
    shown = penstock(root, "runs", "show", "last").stdout
    assert penstock(root, "runs", "last").stdout == shown
    assert penstock(root, "runs", "r2", "--json").stdout.startswith("{")
    assert "no run 'nosuch' is recorded" in penstock(root, "runs", "nosuch").stderr


def test_a_diff_of_the_last_run_is_asked_for_without_the_option(tmp_path: Path) -> None:
    root = write_project(tmp_path / "p", {})
    done = penstock(root, "diff", "--run", "last")
    assert (done.exit_code, "no run" in done.stderr) == (2, True)
    assert penstock(root, "diff", "last").stderr == done.stderr
    assert "'last'" in penstock(root, "diff", "last", "--from", "1").stderr


def test_the_project_may_be_named_before_show(root: Path) -> None:
    done = CliRunner().invoke(main, ["runs", "--project", str(root), "show", "r1", "--json"])
    assert json.loads(done.stdout)["run"]["run_id"] == "r1"


def test_a_run_that_is_not_there(root: Path) -> None:
    done = penstock(root, "runs", "show", "nosuch")
    assert done.exit_code == 2
    assert "no run 'nosuch' is recorded" in done.stderr


def test_runs_of_environments_with_other_tables_are_listed_if_asked_for(shop: Shop) -> None:
    """Not those of another environment, which is neither ``last`` nor retried."""
    root = shop.project.settings.root
    begun = run_record("01dev", started_at=datetime.now(UTC), environment=Environment("dev", "_d"))
    state = State(shop.project.lake("main").catalog)
    state.begin_run(begun)
    state.end_run("01dev", "failed", 1)
    assert "01dev" not in penstock(root, "runs").stdout
    assert "No such run" in penstock(root, "runs", "--failed", "--since", "1h").stdout
    every = penstock(root, "runs", "--all-environments").stdout.splitlines()
    assert (every[0].split()[-1], every[1].split()[-1]) == ("environment", "dev")
    assert "run        r2" in penstock(root, "runs", "show", "last").stdout
    assert "in         environment dev" in penstock(root, "runs", "show", "01dev").stdout
    retried = CliRunner().invoke(main, ["retry", "01dev", "--project", str(root)])
    assert "run 01dev is of another environment" in retried.stderr
    failed = ["retry", "--failed", "--dry-run", "--since", "1h", "--project", str(root)]
    assert "01dev" not in CliRunner().invoke(main, failed).output


def test_the_status_of_slices_that_failed_alone(root: Path) -> None:
    lines = penstock(root, "status", "--failed").stdout.splitlines()
    assert [line.split()[:3] for line in lines[1:]] == [
        ["days", "2026-01-02", "failed"],
        ["reader", "2026-01-02", "skipped:"],
    ]
    assert "1 of 1 failed" in lines[1]
    assert "2026-01-01" not in penstock(root, "status", "days", "--failed").stdout
    models = json.loads(penstock(root, "status", "--failed", "--json").stdout)["models"]
    assert [[each["slice"] for each in model["slices"]] for model in models] == [["2026-01-02"]] * 2
    assert (
        penstock(root, "status", "whole", "--failed").stdout == "No slice failed or was skipped.\n"
    )
