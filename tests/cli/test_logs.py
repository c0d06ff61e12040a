"""``penstock logs``: what it prints of a log. No Spark."""

from __future__ import annotations

import json
import re
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import penstock as penstock_package
from penstock.cli.logs import line_text
from penstock.cli.main import main
from penstock.engine.state.run_log import RunLog
from penstock.errors import StepError
from penstock.events import (
    Notice,
    RunFinished,
    RunStarted,
    StepFinished,
    StepOutput,
    StepQuery,
    ignore,
)
from tests.engine.answers.test_runs import shop
from tests.engine.planning.test_reasons import Shop

AT = "2026-01-01T00:00:00+00:00"
__all__ = ["shop"]  # a fixture


@pytest.fixture
def root(shop: Shop) -> Path:
    """The project with the log of its run r2."""
    settings = shop.project.settings
    keep = settings.retention.logs
    assert settings.retention.directory is not None
    with closing(RunLog(settings.retention.directory, keep, ignore)) as log:
        log(RunStarted("r2", ("days",)))
        log(Notice("hello"))
        log(StepOutput("days", "printed"))
        log(StepOutput("timed", "by another"))
        log(StepQuery("days", "2026-01-01", "SELECT\n  :n", {"n": 1}))
        log(StepFinished("days", "failed", 1.0, errors=((None, StepError("it failed")),)))
        log(RunFinished("r2", "failed", 1.0))
    return settings.root


def penstock(root: Path, *arguments: str) -> Result:
    return CliRunner().invoke(main, [*arguments, "--project", str(root)])


def test_a_log_is_printed_for_people(root: Path) -> None:
    text = penstock(root, "logs", "last").stdout
    for said in (
        "notice: hello",
        "days| printed",
        "days 2026-01-01: query with n = 1\n    SELECT\n      :n\n",
        "days: StepError\n    it failed\n\n    penstock.errors.StepError: it failed",
        "run failed in 1.0 s",
    ):
        assert said in text, text


def test_the_log_of_the_last_run_that_failed(root: Path) -> None:
    assert penstock(root, "logs", "--failed").stdout == penstock(root, "logs", "r2").stdout
    assert "it failed" in penstock(root, "logs", "days", "--failed").stdout
    assert "penstock logs last" in penstock(root, "logs").stderr


def test_without_its_catalog_the_list_of_runs_names_the_log(root: Path) -> None:
    config = root / "penstock.toml"
    unreachable = 'catalog = "postgres:dbname=x host=127.0.0.1 port=1"'
    config.write_text(re.sub(r"catalog = .*", unreachable, config.read_text()))
    done = penstock(root, "runs")
    assert done.exit_code == 2
    assert "cannot be opened" in done.stderr
    assert "penstock logs last shows a run without the catalog" in done.stderr
    assert "it failed" in penstock(root, "logs", "last").stdout


def test_frames_of_the_user_come_first() -> None:
    def frame(file: str, number: int) -> str:
        return f'  File "{file}", line {number}, in f\n    call()\n    ^^^^\n'

    own = str(Path(penstock_package.__file__).parent / "engine" / "step.py")
    files = (own, "/venv/lib/python3.11/site-packages/pyspark/x.py", "/home/ann/penstock/m.py")
    whole = "Traceback (most recent call last):\n" + "".join(map(frame, files, (1, 2, 3)))
    values = {"step": "m", "type": "ModelError", "message": "it failed", "hint": "mend it"}
    text = line_text({"event": "StepError", "at": AT, "traceback": whole, **values})
    assert text is not None
    assert text.splitlines()[:5] == [
        text.splitlines()[0],
        "    it failed",
        "    → mend it",
        "      /home/ann/penstock/m.py:3, in f: call()",
        "",
    ]
    assert own in text


def test_the_log_of_a_model_has_its_own_steps(root: Path) -> None:
    text = penstock(root, "logs", "days").stdout
    assert "printed" in text
    assert "by another" not in text
    assert penstock(root, "logs", "r2", "--follow").stdout.count("\n") > text.count("\n")


def test_a_log_as_json_is_the_lines_of_the_file(root: Path) -> None:
    lines = penstock(root, "logs", "r2", "--json").stdout.splitlines()
    assert [json.loads(each)["event"] for each in lines][1:3] == ["Notice", "StepOutput"]
    assert len(lines) == 8


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
