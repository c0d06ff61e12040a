"""A new project: what is written, and what is never overwritten."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from penstock.cli.main import main
from penstock.model.slicing.undated import why_undated
from penstock.project.project import Project


def init(*args: str) -> Result:
    return CliRunner().invoke(main, ["init", *args])


def below(directory: Path) -> set[str]:
    return {str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_file()}


def test_minimal_project_has_config_models_a_test_and_gitignore(tmp_path: Path) -> None:
    result = init(str(tmp_path / "shop"))
    assert result.exit_code == 0
    assert below(tmp_path / "shop") == {
        ".gitignore",
        "penstock.toml",
        "models/customers.sql",
        "models/orders.sql",
        "tests/amounts_are_positive.sql",
    }
    assert "penstock check" in result.output


def test_a_project_has_the_name_of_its_directory(tmp_path: Path) -> None:
    assert init(str(tmp_path / "library")).exit_code == 0
    assert 'name = "library"' in (tmp_path / "library" / "penstock.toml").read_text()
    assert init(str(tmp_path / 'a "b"')).exit_code == 0
    assert 'name = "shop"' in (tmp_path / 'a "b"' / "penstock.toml").read_text()


def test_example_is_copied_without_what_runs_left_behind(tmp_path: Path) -> None:
    result = init(str(tmp_path / "flights"), "--example", "flights")
    assert result.exit_code == 0
    files = below(tmp_path / "flights")
    assert {"penstock.toml", "models/raw/flights.sql", "data/airlines.csv"} <= files
    assert not any(name.startswith("lake/") for name in files)


def test_existing_file_is_never_overwritten_and_nothing_else_written(tmp_path: Path) -> None:
    config = tmp_path / "penstock.toml"
    config.write_text("mine")
    result = init(str(tmp_path))
    assert result.exit_code == 2
    assert str(config) in result.stderr
    assert config.read_text() == "mine"
    assert below(tmp_path) == {"penstock.toml"}


def test_unknown_example_names_those_that_there_are(tmp_path: Path) -> None:
    result = init(str(tmp_path), "--example", "trains")
    assert result.exit_code == 2
    assert "flights" in result.stderr


def test_directory_that_is_a_file_is_one_message(tmp_path: Path) -> None:
    (tmp_path / "here").write_text("")
    result = init(str(tmp_path / "here"))
    assert result.exit_code == 2
    assert result.stderr.startswith("error: cannot write")


@pytest.mark.parametrize(
    ("example", "runs_each_time"),
    [
        ((), set()),
        (("--example", "flights"), {"logs/leaders", "logs/loads"}),
        (("--example", "world"), {"shared/indicators_by_iso"}),
    ],
)
def test_what_runs_each_time_does_so_by_its_nature(
    example: tuple[str, ...], runs_each_time: set[str], tmp_path: Path
) -> None:
    """Logs are appended to, and an embedded query is not a step."""
    init(str(tmp_path / "shop"), *example)
    models = Project.load(tmp_path / "shop").models
    assert {model.name for model in models if why_undated(model)} == runs_each_time
