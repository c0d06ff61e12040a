"""The command as a whole: help, usage errors, and how errors end."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from penstock.cli.main import COMMANDS, main
from penstock.cli.output import fail, message_of
from penstock.errors import (
    CatalogLocked,
    ConfigError,
    Diagnostic,
    Location,
    ModelError,
    QueryFailed,
    TableNotFound,
)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_examples(name: str) -> None:
    result = CliRunner().invoke(main, [name, "--help"])
    assert result.exit_code == 0
    assert "Examples:\n" in result.output
    assert f"  penstock {name}" in result.output


def test_help_lists_every_command_with_a_line() -> None:
    lines = CliRunner().invoke(main, ["--help"]).output.splitlines()
    listed = {line.split()[0]: line.split()[1:] for line in lines if line.startswith("  ")}
    assert all(listed[name] for name in COMMANDS)


def test_unknown_command_is_wrong_input_and_names_the_nearest() -> None:
    result = CliRunner().invoke(main, ["statsu"])
    assert result.exit_code == 2
    assert "No such command 'statsu'. Did you mean 'status'?" in result.output
    assert "Did you mean 'check'?" in CliRunner().invoke(main, ["chek"]).output


def test_an_unknown_option_names_only_the_nearest() -> None:
    output = CliRunner().invoke(main, ["plan", "--partion", "1"]).output
    assert "--partition" in output
    assert "'--to'" not in output


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [
        (("status", "--bogus"), "NoSuchOption"),
        (("chek",), "UsageError"),
        (("status", "--project", "nowhere"), "ConfigError"),
        (("sql", "--limit", "x"), "BadParameter"),
        (("run", "--arg", "x"), "ArgumentError"),
    ],
)
def test_a_wrong_request_is_json_too(
    arguments: tuple[str, ...], kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(main, [*arguments, "--json"])
    error = json.loads(result.stdout)["error"]
    assert list(error) == ["type", "message", "hint", "location", "data"]
    assert (error["type"], result.exit_code) == (kind, 2)
    assert error["message"].split("\n")[0] in result.stderr


def test_wrong_requests_of_every_command_are_json(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An option that no command has, and a project that is not there, in groups too."""
    monkeypatch.chdir(tmp_path)
    inner = (("runs", "show"), ("spark", "stop"), ("maintain", "cleanup-old-files"))
    for command in (*((name,) for name in COMMANDS), *inner, ("state", "prune"), ("import", "dbt")):
        for wrong in (("--bogus",), ("--project", "nowhere", "a", "b", "c")):
            result = CliRunner().invoke(main, [*command, *wrong, "--json"])
            said = json.loads(result.stdout)
            assert list(said) == ["schema_version", "error"], command
            assert result.exit_code == 2, command


def test_no_project_anywhere_is_wrong_input(
    tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(str(tmp_path))
    result = CliRunner().invoke(main, ["status"])
    assert result.exit_code == 2
    assert "there is no penstock.toml" in result.stderr
    assert "penstock init" in result.stderr


_LOST = """
import gc, sys
from click.testing import CliRunner
from sqlalchemy import create_engine
from penstock.cli.main import main

CliRunner().invoke(main, ["status", "--project", sys.argv[1]])
connection = create_engine("sqlite://").connect()
connection.exec_driver_sql("SELECT 1")
connection.connection.dbapi_connection.close()  # as when a server ends it
del connection
gc.collect()
"""


def test_a_connection_that_was_lost_says_nothing_of_its_own(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _LOST, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ConfigError("x"), 2),
        (TableNotFound("x"), 2),
        (CatalogLocked("x"), 1),
        (RuntimeError("x"), 1),
    ],
)
def test_exit_code_is_the_error_s_own(error: Exception, code: int) -> None:
    assert fail(error) == code


def test_message_names_place_cause_and_next_step() -> None:
    error = ConfigError("no catalog", hint="add one", location=Location("penstock.toml", 4, 1))
    assert message_of(error) == "penstock.toml:4:1: error: no catalog\n  → add one"


def test_a_statement_s_error_has_its_place_in_front_too() -> None:
    error = QueryFailed("there is no x, at line 2:7", data={"line": 2, "column": 7}, hint="y")
    assert message_of(error) == "query:2:7: error: there is no x\n  → y"
    assert message_of(QueryFailed("no place", data={"line": 2})) == "error: no place"


def test_model_error_prints_every_finding() -> None:
    findings = [Diagnostic("error", f"finding {n}", Location("a.sql", n)) for n in (1, 2)]
    text = message_of(ModelError(findings))
    assert text.splitlines() == ["a.sql:1: error: finding 1", "a.sql:2: error: finding 2"]


def test_unexpected_error_shows_its_first_line_and_no_stack() -> None:
    text = message_of(RuntimeError("it broke\n\tat org.apache.spark.Foo.bar(Foo.scala:1)"))
    assert "internal error: RuntimeError: it broke" in text
    assert "Foo.scala" not in text
    assert "--debug" in text


def test_debug_adds_the_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    fail(ConfigError("no catalog"), debug=True)
    assert "ConfigError: no catalog" in capsys.readouterr().err
