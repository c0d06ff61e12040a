"""Commands on a project whose lake has a DuckDB file as its catalog."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from penstock.cli.main import main
from tests.cli.test_startup import run, work

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark  # to make what the commands read; they themselves start none

COMMANDS = {
    ("check",): "2 models, no errors",
    ("status",): "orders",
    ("show", "orders"): "done",
    ("snapshots",): "orders",
}


@pytest.fixture(scope="module")
def shop(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project that ``init`` makes, on DuckDB, run once."""
    directory = tmp_path_factory.mktemp("duckdb") / "shop"
    CliRunner().invoke(main, ["init", str(directory)])
    settings = directory / "penstock.toml"
    text = settings.read_text()
    assert "sqlite:lake/meta.sqlite" in text
    settings.write_text(text.replace("sqlite:lake/meta.sqlite", "duckdb:lake/meta.ducklake"))
    done = CliRunner().invoke(main, ["run", "--project", str(directory)])
    assert done.exit_code == 0, done.output
    assert (directory / "lake/meta.ducklake").is_file()
    return directory


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_says_what_is_there(arguments: tuple[str, ...], shop: Path) -> None:
    command, *rest = arguments
    done = CliRunner().invoke(main, [command, "--project", str(shop), *rest])
    assert done.exit_code == 0, done.output
    assert COMMANDS[arguments] in done.output


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_answers_at_once(arguments: tuple[str, ...], shop: Path) -> None:
    done = work(arguments, shop)
    assert done.is_quick(), done


def test_without_the_library(shop: Path) -> None:
    code = "import sys; sys.modules['duckdb'] = None; from penstock.cli.main import main; main()"
    done = run([sys.executable, "-c", code, "status"], shop)
    assert done.returncode == 2
    assert "pip install 'penstock-spark[duckdb]'" in done.stderr
