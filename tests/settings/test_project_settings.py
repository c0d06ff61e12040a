"""``[project.defaults]`` as values: keys, types and folders."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pytest

from penstock.errors import ConfigError, Location, ModelError
from penstock.project.project import Project
from penstock.settings.config import load_settings
from penstock.settings.keys import SECTIONS
from penstock.settings.project_settings import ModelDefaults, read_defaults, read_variables
from penstock.settings.retention import Setting
from tests.engine.toy import write_project

TYPES = {key.name: key.type for key in SECTIONS["project.defaults"].values()}


def place(key: tuple[str, ...]) -> Location:
    return Location(".".join(key))


def read(content: dict[str, Any]) -> tuple[ModelDefaults, ...]:
    return read_defaults(content, TYPES, place)


def test_outer_folders_come_before_inner_ones() -> None:
    content = {"a/b": {"owner": "x"}, "owner": "y", "/a/": {"tags": ["t"]}, "c": {}}
    assert [(defaults.folder, dict(defaults.values)) for defaults in read(content)] == [
        ("", {"owner": "y"}),
        ("a", {"tags": ("t",)}),
        ("a/b", {"owner": "x"}),
    ]


def test_a_date_and_a_number_count_as_texts() -> None:
    (defaults,) = read({"start": date(2024, 1, 1), "retry": 2})
    assert defaults.values == {"start": "2024-01-01", "retry": "2"}
    assert defaults.places["start"] == Location("project.defaults.start")


@pytest.mark.parametrize(
    ("content", "message", "hint"),
    [
        ({"ownr": "x"}, "unknown key in [project.defaults]: 'ownr'", "did you mean 'owner'?"),
        ({"zz": "x"}, "unknown key in [project.defaults]: 'zz'", "known are start, cron, "),
        ({"tags": "x"}, "project.defaults.tags must be a list of texts, not 'x'", ""),
        ({"owner": True}, "project.defaults.owner must be a text, not True", ""),
        ({"a": {"b": {}}}, "unknown key in [project.defaults.\"a\"]: 'b'", 'defaults."a/b"]'),
    ],
)
def test_a_wrong_default_is_named(content: dict[str, Any], message: str, hint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read(content)
    assert caught.value.message == message
    assert hint in (caught.value.hint or "")


VARIABLES = """
[project.variables]
region = "it's"
Least = 5
share = 0.5
on = true
days = [1, 2]
since = 2026-01-02

[environments.dev.project.variables]
least = 7
"""
MACRO = """
from penstock import macro

@macro()
def least_more(evaluator, name="least"):
    return evaluator.var(getattr(name, "name", name)) + 1
"""
ANNOTATED = "-- pipeline\n-- materialize ducklake://main/{}\nSELECT {} AS a"
MODEL = "MODEL (name main.{}, kind FULL, dialect {});\nSELECT {} AS a"


def project(root: Path, *models: tuple[str, str], environment: str | None = None) -> Project:
    scripts = {f"models/{name}": text for name, text in models}
    write_project(root, scripts)
    with (root / "penstock.toml").open("a") as file:
        file.write(VARIABLES)
    (root / "macros").mkdir()
    (root / "macros" / "own.py").write_text(MACRO)
    return Project.load(root, environment=environment)


@pytest.mark.parametrize(
    ("written", "spark", "duckdb"),
    [
        ("@region", "'it\\'s'", "'it''s'"),
        ("@least", "5", "5"),
        ("@VAR('LEAST')", "5", "5"),
        ("@VAR('nothing', 3)", "3", "3"),
        ("@{least}", "5", "5"),
        ("@share", "0.5", "0.5"),
        ("@on", "TRUE", "TRUE"),
        ("@since", "DATE '2026-01-02'", "DATE '2026-01-02'"),
        ("@EACH(@days, x -> x + 1)", "1 + 1, 2 + 1", "1 + 1, 2 + 1"),
        ("@least_more()", "6", "6"),
    ],
)
def test_a_variable_in_each_form_and_dialect(
    tmp_path: Path, written: str, spark: str, duckdb: str
) -> None:
    loaded = project(
        tmp_path / "p",
        ("a", ANNOTATED.format("a", written)),
        ("b", MODEL.format("b", "spark", written)),
        ("c", MODEL.format("c", "duckdb", written)),
    )
    texts = {model.name: loaded.render(model.name).sql for model in loaded.models}
    assert f"SELECT {spark} AS a" in texts["a"]
    assert f"SELECT {spark} AS a" in texts["b"]
    assert f"SELECT {duckdb} AS a" in texts["c"]


def test_an_environment_overrides_one(tmp_path: Path) -> None:
    loaded = project(tmp_path / "p", ("a", ANNOTATED.format("a", "@least || @region")))
    assert "SELECT 5 || 'it" in loaded.render("a").sql
    dev = Project.load(tmp_path / "p", environment="dev")
    assert "SELECT 7 || 'it" in dev.render("a").sql


def test_a_changed_variable_changes_the_models_that_use_it(tmp_path: Path) -> None:
    texts = {"a": "@least", "b": "@share", "c": "@least_more()"}
    scripts = [(name, ANNOTATED.format(name, text)) for name, text in texts.items()]
    before = project(tmp_path / "p", *scripts)
    after = Project.load(tmp_path / "p", environment="dev")
    changed = [
        old.name
        for old, new in zip(before.models, after.models, strict=True)
        if old.definition_hash != new.definition_hash
    ]
    assert changed == ["a", "c"]


@pytest.mark.parametrize(
    ("written", "message", "hint"),
    [
        ("@leest", "macro @leest does not exist", "did you mean @least"),
        ("@VAR('nosuch')", "macro @nosuch does not exist", "[project.variables] of penstock.toml"),
        ("@least_more", "least_more is a macro", "write @least_more()"),
        ("@least_more('leest')", "there is no variable 'leest'", "did you mean 'least'?"),
    ],
)
def test_an_unknown_name_is_an_error(tmp_path: Path, written: str, message: str, hint: str) -> None:
    with pytest.raises(ModelError) as raised:
        project(tmp_path / "p", ("a", ANNOTATED.format("a", written)))
    (finding,) = raised.value.diagnostics
    assert message in finding.message
    assert hint in str(finding.hint)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("x = {a = 1}", "the variable x is"),
        ('"a b" = 1', "a variable cannot be called 'a b'"),
        ("x = 1\nX = 2", "there are two variables 'x'"),
    ],
)
def test_what_is_no_variable(tmp_path: Path, line: str, message: str) -> None:
    text = '[lakes.main]\ncatalog = "sqlite:m"\ndata_path = "d"\n[project.variables]\n'
    (tmp_path / "penstock.toml").write_text(text + line)
    with pytest.raises(ConfigError, match=message):
        load_settings(tmp_path)


def test_a_name_of_every_model_is_taken(tmp_path: Path) -> None:
    root = write_project(tmp_path / "p", {"models/a": ANNOTATED.format("a", "1")})
    with (root / "penstock.toml").open("a") as file:
        file.write('\n[project.variables]\nstart_ds = "2026-01-01"\n')
    with pytest.raises(ModelError, match="start_ds has the name of a predefined macro variable"):
        Project.load(root)


def test_values_are_by_small_names_and_lists_are_tuples() -> None:
    setting = Setting({"Region": "eu", "days": [1, [2]]}, Location("penstock.toml", 2))
    assert read_variables("project.variables", setting) == {"region": "eu", "days": (1, (2,))}
    wrong = Setting({"region": {"a": 1}}, Location("penstock.toml", 2))
    with pytest.raises(ConfigError, match="the variable region is") as caught:
        read_variables("project.variables", wrong)
    assert caught.value.location == wrong.origin
