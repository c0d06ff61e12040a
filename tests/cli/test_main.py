"""The command as a whole: help, usage errors, and how errors end.

Tests ``cli/guesses.py`` as well.
"""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from penstock.cli import guesses
from penstock.cli.main import COMMANDS, main
from penstock.cli.output import fail, message_of
from penstock.errors import (
    CatalogLocked,
    ConfigError,
    Diagnostic,
    Location,
    ModelError,
    Position,
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


@pytest.mark.parametrize("name", sorted(guesses.COMMANDS))
def test_a_command_of_another_tool_is_answered_by_its_meaning(name: str) -> None:
    text = guesses.COMMANDS[name]
    result = CliRunner().invoke(main, [name, "x"])
    assert result.exit_code == 2
    assert f"No such command {name!r}. Write `{text}`." in result.output
    words = text.split()[1:]
    if not words[0].startswith("--"):
        assert words[0] in COMMANDS
        shown = CliRunner().invoke(main, [words[0], "--help"]).output
        assert all(word in shown for word in words[1:] if word.startswith("--"))


def test_no_name_of_another_tool_hides_a_command() -> None:
    assert not guesses.COMMANDS.keys() & COMMANDS.keys()


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        ("run --date 2026-01-01", "Did you mean '--partition'?"),
        ("status --target prod", "Did you mean '--env'?"),
        ("drop x --date 2026-01-01", "Did you mean '--partition'?"),
        ("restate x --changed", "Write `penstock run --changed`."),
    ],
)
def test_an_unknown_option_is_answered_by_its_meaning(arguments: str, hint: str) -> None:
    assert hint in CliRunner().invoke(main, shlex.split(arguments)).output


@pytest.mark.parametrize("command", ["run", "plan", "status", "render", "restate"])
def test_start_and_end_name_a_range_and_are_not_in_the_help(command: str) -> None:
    output = CliRunner().invoke(main, [command, "--help"]).output
    assert "--from A" in output
    assert "--start" not in output
    words = [command, *(["m"] if command in ("render", "restate") else ())]
    words += ["--start", "2026-01-01", "--end", "2026-01-02", "--project", "nowhere"]
    assert "there is no penstock.toml" in CliRunner().invoke(main, words).output


@pytest.mark.parametrize("command", ["run", "plan", "drop", "show", "why", "preview", "render"])
def test_a_slice_is_a_partition_in_every_command(command: str) -> None:
    output = CliRunner().invoke(main, [command, "--help"]).output
    assert "--partition VALUE" in output
    assert "--slice" not in output
    words = [command, "m", "--slice", "2026-01-01", "--project", "nowhere"]
    words += ["--tests"] if command == "show" else []
    words += ["--yes"] if command == "drop" else []
    assert "there is no penstock.toml" in CliRunner().invoke(main, words).output


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
    error = QueryFailed("there is no x", hint="y", position=Position(2, 7))
    assert error.message == "there is no x, at line 2:7"
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
