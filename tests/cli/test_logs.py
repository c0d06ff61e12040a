"""``penstock logs``: what it prints of a log. No Spark."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from penstock.cli.logs import line_text
from penstock.cli.main import main
from penstock.engine.state.run_log import RunLog
from penstock.errors import StepError
from penstock.events import Notice, RunFinished, StepOutput
from tests.engine.answers.test_runs import shop
from tests.engine.planning.test_reasons import Shop

__all__ = ["shop"]  # a fixture


@pytest.fixture
def root(shop: Shop) -> Path:
    """The project with the log of its run r2."""
    settings = shop.project.settings
    keep = settings.retention.logs
    log = RunLog.begin(settings.retention.directory, "r2", keep, lambda _: None)
    log.event(Notice("hello"))
    log.event(StepOutput("days", "printed"))
    log.event(StepOutput("timed", "by another"))
    log.query("days", "2026-01-01", "SELECT\n  :n", {"n": 1})
    log.failure("days", None, StepError("it failed"))
    log.event(RunFinished("r2", "failed", 1.0))
    log.close()
    return settings.root


def penstock(root: Path, *arguments: str) -> Result:
    return CliRunner().invoke(main, [*arguments, "--project", str(root)])


def test_a_log_is_printed_for_people(root: Path) -> None:
    text = penstock(root, "logs", "last").stdout
    for said in (
        "notice: hello",
        "days| printed",
        "days 2026-01-01: query with n = 1\n    SELECT\n      :n\n",
        "days: StepError\n    penstock.errors.StepError: it failed",
        "run failed in 1.0 s",
    ):
        assert said in text, text


def test_the_log_of_a_model_has_its_own_steps(root: Path) -> None:
    text = penstock(root, "logs", "days").stdout
    assert "printed" in text
    assert "by another" not in text
    assert penstock(root, "logs", "r2", "--follow").stdout.count("\n") > text.count("\n")


def test_a_log_as_json_is_the_lines_of_the_file(root: Path) -> None:
    lines = penstock(root, "logs", "r2", "--json").stdout.splitlines()
    assert [json.loads(each)["event"] for each in lines][0:2] == ["Notice", "StepOutput"]
    assert len(lines) == 6


def test_a_log_that_is_not_here_says_where_it_ran(root: Path) -> None:
    done = penstock(root, "logs", "r1")
    assert done.exit_code == 2
    assert "the log of run r1 is not here: it ran on" in done.stderr
    assert "no run 'nosuch' is recorded" in penstock(root, "logs", "nosuch").stderr
    assert "no run of whole is recorded" in penstock(root, "logs", "whole").stderr


def test_a_run_is_shown_with_the_errors_of_its_log(root: Path) -> None:
    shown = json.loads(penstock(root, "runs", "show", "r2", "--json").stdout)
    assert shown["errors"][0]["message"] == "it failed"
    assert shown["log"].endswith("r2.jsonl")
    assert "log: .penstock/logs/r2.jsonl" in penstock(root, "runs", "show", "r2").stdout


def test_a_line_of_a_newer_version_is_printed_as_it_is() -> None:
    line = {"at": "2026-01-02T03:04:05+00:00", "event": "Weather", "sun": 1}
    assert (line_text(line) or "").endswith("Weather {'sun': 1}")
    assert "StepOutput" in (line_text({**line, "event": "StepOutput"}) or "")
