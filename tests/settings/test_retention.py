"""How long logs and records of runs stay, as penstock.toml says it."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.errors import ConfigError
from penstock.settings.retention import Keep, Retention
from tests.settings.test_config import MINIMAL, failure, load


def of(root: Path, text: str = "", **environ: str) -> Retention:
    return load(root, f"{MINIMAL}{text}", environ).retention


def test_without_settings_logs_are_beside_the_project(tmp_path: Path) -> None:
    found = of(tmp_path)
    assert found.directory == tmp_path / ".penstock" / "logs"
    assert found.logs == Keep(30 * 86_400, 1_000)
    assert found.records == Keep(365 * 86_400, 10_000)


def test_each_can_be_set(tmp_path: Path) -> None:
    text = '[logs]\ndirectory = "log"\nkeep = "7d"\nkeep_runs = 5\n[run]\nkeep = "12h"\n'
    found = of(tmp_path, text, PENSTOCK_RUN_KEEP_RUNS="0")
    assert found == Retention(tmp_path / "log", Keep(7 * 86_400, 5), Keep(43_200, None))


def test_none_has_no_limit_and_no_logs(tmp_path: Path) -> None:
    text = '[logs]\ndirectory = "none"\nkeep = "none"\nkeep_runs = 0\n'
    found = of(tmp_path, text)
    assert (found.directory, found.logs) == (None, Keep(None, None))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[logs]\nkeep = "soon"\n', "logs.keep is 'soon', which is not an age"),
        ("[run]\nkeep_runs = -1\n", "run.keep_runs must be 0 or more, not -1"),
        ("[logs]\nkeep = 3\n", "keep must be a text"),
        ("[logs]\nkept = 3\n", "unknown key in \\[logs\\]: 'kept'"),
    ],
)
def test_what_is_wrong_is_named_at_its_place(tmp_path: Path, text: str, message: str) -> None:
    error = failure(tmp_path, f"{MINIMAL}{text}")
    with pytest.raises(ConfigError, match=message):
        raise error
    assert error.location is not None
    assert error.location.line == 5
