"""``[project.defaults]``: for all models or by folder; a model's own words win.

Tests ``settings/project_settings.py``.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.errors import ConfigError, ModelError
from penstock.model.definition.model import Model
from penstock.project.project import Project
from tests.engine.toy import CONFIG, write_project

DEFAULTS = """
[project.defaults]
start = 2024-01-01
owner = "data"
tags = ["nightly"]
retry = "2 30s"

[project.defaults."marts"]
cron = "@hourly"
owner = "marts"
data_tests = ["not_null d"]
"""
BY_TIME = "MODEL (name main.{0}, kind INCREMENTAL_BY_TIME_RANGE (time_column d){1});"
SELECT = "\nSELECT d FROM s WHERE d = @start_date"
SCRIPTS = {
    "models/a": BY_TIME.format("a", "") + SELECT,
    "models/marts/b": BY_TIME.format("b", "") + SELECT,
    "models/marts/c": BY_TIME.format("c", ", start '2025-01-01', cron '@daily', owner me, tags (x)")
    + SELECT,
    "models/marts/d": "-- partitioned daily\n-- retry 5\n-- tag y\n"
    "-- materialize ducklake://main/d time=d" + SELECT,
    "models/e": "-- partitioned daily\n-- materialize ducklake://main/e\nSELECT '{partition}' AS d",
    "models/f.py": "# materialize ducklake://main/f\ndef main():\n    return [{'d': 1}]",
}


def models(tmp_path: Path, defaults: str) -> dict[str, Model]:
    root = write_project(tmp_path / "toy", SCRIPTS, CONFIG + defaults)
    with Project.load(root) as project:
        assert [finding.rule for finding in project.check() if finding.rule == "idle"] == []
        return {model.name.rsplit("/", 1)[-1]: model for model in project.models}


def test_defaults_are_for_what_a_model_does_not_say(tmp_path: Path) -> None:
    found = models(tmp_path, DEFAULTS)
    times = {name: (m.cadence.start, m.cadence.cron) for name, m in found.items() if m.by_time}
    assert times == {
        "a": ("2024-01-01", None),
        "b": ("2024-01-01", "@hourly"),
        "c": ("2025-01-01", "@daily"),
        "d": ("2024-01-01", None),
    }
    assert all(m.by_time.cadence == m.cadence for m in found.values() if m.by_time)
    assert {name: m.about.owner for name, m in found.items()} == {
        **dict.fromkeys("aef", "data"),
        **dict.fromkeys("bd", "marts"),
        "c": "me",
    }
    assert [found[name].tags for name in "acd"] == [
        ("nightly",),
        ("x", "nightly"),
        ("y", "nightly"),
    ]
    assert [len(found[name].data_tests) for name in "abcde"] == [0, 1, 1, 1, 0]
    assert str(found["b"].place("data_test:0").path).endswith("penstock.toml")
    retries = (found[name].retry for name in "adf")
    assert [None if retry is None else retry.count for retry in retries] == [2, 5, 2]
    assert found["e"].partition is not None
    assert found["e"].partition.start == "2024-01-01"


def test_definitions_stay_as_they_are(tmp_path: Path) -> None:
    plain, said = models(tmp_path, ""), models(tmp_path, DEFAULTS)
    assert {name: m.definition_hash for name, m in plain.items()} == {
        name: m.definition_hash for name, m in said.items()
    }


def test_formatting_does_not_write_defaults(tmp_path: Path) -> None:
    root = write_project(tmp_path / "toy", SCRIPTS, CONFIG + DEFAULTS)
    with Project.load(root) as project:
        shown = project.show_as("marts/b", "model")
    assert "owner" not in shown
    assert "start" not in shown.split(");")[0]


@pytest.mark.parametrize(
    ("defaults", "message", "hint", "line"),
    [
        (
            "[project.defaults]\nstrat = '2024-01-01'",
            "unknown key in [project.defaults]: 'strat'",
            "did you mean 'start'?",
            10,
        ),
        (
            "[project.defaults.marts]\nretries = 1",
            'unknown key in [project.defaults."marts"]',
            "did you mean 'retry'?",
            10,
        ),
        ("[project.defaults]\ntags = 'x'", "project.defaults.tags must be a list of texts", "", 10),
        (
            "[project.defaults.marts.sales]\nowner = 'x'",
            "unknown key",
            '[project.defaults."marts/sales"]',
            9,
        ),
        (
            "[project.defaults]\nstart = '1 year ago'",
            "start = '1 year ago' cannot be read",
            "write a date",
            10,
        ),
        ("[project.defaults]\ncron = 'daily'", "cron = 'daily' cannot be read", "@daily", 10),
        ("[project.defaults]\ncron_tz = 'Berlin'", "cron_tz = 'Berlin' cannot be read", "zone", 10),
        ("[project.defaults]\ndata_tests = ['notnull d']", "data_tests: 'notnull d'", "", 10),
        ("[project.defaults]\nretry = 'often'", "retry: 'often' cannot be read", "", 10),
    ],
)
def test_what_is_wrong_has_its_place(
    tmp_path: Path, defaults: str, message: str, hint: str, line: int
) -> None:
    root = write_project(tmp_path / "toy", SCRIPTS, CONFIG + defaults)
    with pytest.raises((ConfigError, ModelError)) as raised:
        Project.load(root).close()
    assert message in str(raised.value)
    assert hint in str(raised.value)
    assert f"penstock.toml:{line}" in str(raised.value)


def test_a_folder_without_models_is_a_warning(tmp_path: Path) -> None:
    root = write_project(tmp_path / "toy", SCRIPTS, CONFIG + "[project.defaults.mart]\nowner = 'x'")
    with Project.load(root) as project:
        (finding,) = (each for each in project.check() if each.rule == "defaults-folder")
    assert "no model is below the folder 'mart'" in finding.message
