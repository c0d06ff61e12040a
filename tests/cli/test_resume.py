"""``penstock resume``: a pause ends, by the name that it was given or that of the model."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.cli.resume import command
from tests.cli.served import as_json, make_served, penstock, refusal


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_served(tmp_path)


def test_a_paused_model_fires_again(root: Path) -> None:
    penstock(root, "pause", "hours")
    penstock(root, "pause", "tag:finance")
    assert penstock(root, "resume", "hours").stdout == "hours fires again\n"
    assert [pause["selector"] for pause in as_json(root, "pause")["pauses"]] == ["tag:finance"]
    assert as_json(root, "resume", "tag:finance") == {
        "schema_version": 1,
        "resumed": "tag:finance",
    }
    assert as_json(root, "pause")["pauses"] == []


def test_the_table_of_a_model_names_it(root: Path) -> None:
    penstock(root, "pause", "main.hours")
    assert as_json(root, "resume", "main.hours")["resumed"] == "hours"


def test_a_pause_of_a_model_that_is_gone_ends(root: Path) -> None:
    penstock(root, "pause", "hours")
    (root / "models" / "hours.sql").unlink()
    (root / "models" / "reader.sql").unlink()
    assert penstock(root, "resume", "hours").exit_code == 0


def test_what_is_not_paused_is_refused(root: Path) -> None:
    said = refusal(root, "resume", "days")
    assert "days is not paused" in said
    assert "nothing is paused" in said
    penstock(root, "pause", "hours")
    assert "paused: hours" in refusal(root, "resume", "days")
    assert "did you mean 'days'?" in refusal(root, "resume", "day")
    assert "tag:x is not paused" in refusal(root, "resume", "tag:x")


def test_it_needs_a_model() -> None:
    assert [parameter.name for parameter in command.params if parameter.required] == ["model"]
