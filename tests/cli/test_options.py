"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from penstock.cli.main import main
from penstock.cli.options import complete_model, find_project, parse_pairs, parse_payload
from penstock.errors import ArgumentError
from tests.engine.toy import write_project


def test_pairs_keep_every_sign_after_the_first_equals() -> None:
    assert parse_pairs(("a=1", "b=x=y", "c=")) == {"a": "1", "b": "x=y", "c": ""}


@pytest.mark.parametrize("texts", [("a",), ("=1",), ("a=1", "a=2")])
def test_wrong_pairs_are_wrong_input(texts: tuple[str, ...]) -> None:
    with pytest.raises(ArgumentError, match="--arg"):
        parse_pairs(texts)


def test_the_nearest_project_upwards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "penstock.toml").write_text("")
    (tmp_path / "models" / "raw").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "models" / "raw")
    assert find_project() == tmp_path


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("penstock status cl", ["clean/a", "clean/b"]),
        ("penstock show ", ["clean/a", "clean/b", "raw/a"]),
        ("penstock run raw/a --select cle", ["clean/a", "clean/b"]),
        ("penstock sta", ["status", "state"]),
    ],
)
def test_the_shell_completes_models_and_commands(
    words: str, expected: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    head = "-- pipeline\n-- materialize ducklake://main/{}\nSELECT 1 AS x"
    models = {"clean/a": "a", "clean/b": "b", "raw/a": "c"}
    scripts = {f"models/{name}": head.format(table) for name, table in models.items()}
    monkeypatch.chdir(write_project(tmp_path / "p", scripts))
    environment = {"_PENSTOCK_COMPLETE": "bash_complete", "COMP_WORDS": words}
    environment["COMP_CWORD"] = str(len(words.split(" ")) - 1)
    answer = CliRunner().invoke(main, [], prog_name="penstock", env=environment).stdout
    assert [line.removeprefix("plain,") for line in answer.splitlines()] == expected


def test_a_project_with_errors_completes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert complete_model(click.Context(main), main.params[0], "") == []


def test_payload_is_an_object() -> None:
    assert parse_payload('{"region": "eu"}') == {"region": "eu"}
    assert parse_payload(None) is None


@pytest.mark.parametrize(
    ("text", "said"), [("{", "at character 2"), ("[1]", "must be a JSON object")]
)
def test_wrong_payload_says_what_is_wrong(text: str, said: str) -> None:
    with pytest.raises(ArgumentError, match=said):
        parse_payload(text)


SCRIPT = "-- pipeline\n-- materialize ducklake://main/a\nSELECT 1 AS x"


@pytest.mark.parametrize(
    ("arguments", "variables", "lake"),
    [
        (["status"], {}, "lake"),
        (["status"], {"PENSTOCK_ENV": "dev"}, "dev"),
        (["status", "--env", "default"], {"PENSTOCK_ENV": "dev"}, "lake"),
        (["status", "--env", "dev"], {}, "dev"),
        (["runs", "--env", "dev"], {}, "dev"),
        (["runs", "--env", "dev", "show", "0a1b2c3d"], {}, "dev"),
        (["sql", "SELECT * FROM a", "--env", "dev"], {}, "dev"),
        (["maintain", "expire-snapshots", "--env", "dev"], {}, "dev"),
        (["backup", "copy.sqlite", "--env", "dev"], {}, "dev"),
    ],
)
def test_every_command_reads_the_settings_of_an_environment(
    arguments: list[str], variables: dict[str, str], lake: str, tmp_path: Path
) -> None:
    project = write_project(tmp_path / "p", {"models/a": SCRIPT})
    for each in ("lake", "dev"):
        (tmp_path / each).write_text("no catalog")
    settings = '[lakes.main]\ncatalog = "sqlite:../lake"\ndata_path = "lake"\n'
    other = settings.replace("[", "[environments.dev.").replace('lake"', 'dev"')
    (project / "penstock.toml").write_text(settings + other)
    result = CliRunner().invoke(main, [*arguments, "--project", str(project)], env=variables)
    assert result.exit_code != 0
    assert f"../{lake} is damaged" in result.output


@pytest.mark.parametrize(
    "arguments", [["plan"], ["sql", "SELECT 1"], ["maintain", "expire-snapshots"]]
)
def test_an_unknown_environment_is_wrong_input(arguments: list[str], tmp_path: Path) -> None:
    project = write_project(tmp_path / "p", {})
    result = CliRunner().invoke(main, [*arguments, "--project", str(project), "--env", "prd"])
    assert result.exit_code == 2
    assert "the environment 'prd' does not exist" in result.output


_WITH_SPARK = (
    "adopt",
    "check",
    "diff",
    "history",
    "preview",
    "reproduce",
    "restate",
    "retry",
    "run",
)


@pytest.mark.parametrize("name", [*_WITH_SPARK, "sql", "test"])
def test_commands_that_start_spark_can_use_a_warm_one(name: str) -> None:
    command = main.get_command(click.Context(main), name)
    assert command is not None
    assert any("--warm" in option.opts for option in command.params)


def test_an_environment_that_a_group_was_given_stays_for_its_command(tmp_path: Path) -> None:
    root = write_project(tmp_path / "p", {})
    line = ["runs", "--env", "nowhere", "show", "last", "--project", str(root)]
    ended = CliRunner().invoke(main, line)
    assert (ended.exit_code, "nowhere" in ended.output) == (2, True), ended.output


def test_a_command_that_asks_needs_a_terminal(tmp_path: Path) -> None:
    script = "-- pipeline\n-- materialize ducklake://main/a\nSELECT 1 AS a"
    root = write_project(tmp_path / "p", {"models/a": script})
    ended = CliRunner().invoke(main, ["drop", "a", "--project", str(root)])
    assert ended.exit_code == 2
    assert "drop asks for confirmation" in ended.output
    assert "to drop it: --yes" in ended.output
