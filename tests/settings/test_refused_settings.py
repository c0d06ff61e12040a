"""A directory that SQLMesh or dbt configures, and what takes the place of its keys."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest

from penstock import Lake
from penstock.errors import ConfigError, UnsupportedFeature
from penstock.settings.config import load_settings
from penstock.settings.refused_settings import find, findings, refusal, start_hint


@pytest.mark.parametrize(
    ("name", "text", "is_found"),
    [
        ("config.yaml", "gateways: {}\n", True),
        ("config.yaml", "model_defaults: {dialect: duckdb}\n", True),
        ("config.yaml", "name: ours\n", False),
        ("config.yaml", "gateways: [\n", False),
        ("config.py", "from sqlmesh import Config\n", True),
        ("config.py", "DEBUG = True\n", False),
    ],
)
def test_a_file_is_sqlmeshs_by_what_it_says(
    name: str, text: str, is_found: bool, tmp_path: Path
) -> None:
    (tmp_path / name).write_text(text)
    assert (find(tmp_path) == tmp_path / name) is is_found


def test_each_key_with_a_counterpart_names_it(tmp_path: Path) -> None:
    text = "gateways: {}\nmodel_defaults: {start: 2024-01-01, kind: VIEW}\nunknown: 1\n"
    (tmp_path / "config.yaml").write_text(text)
    (tmp_path / "linter").mkdir()
    (finding,) = findings(tmp_path)
    assert (finding.severity, finding.location.path) == ("warning", tmp_path / "config.yaml")
    assert finding.message == (
        "the file is SQLMesh's, and Penstock does not read it: gateways, model_defaults.start, "
        "model_defaults.kind, unknown; nor does it read linter/"
    )
    assert finding.hint == (
        "gateways: [lakes.main] catalog and data_path in penstock.toml; "
        "model_defaults.start: start in [project.defaults] of penstock.toml; "
        "model_defaults.kind: in each MODEL (...)"
    )


def test_a_directory_of_another_tool_has_a_hint_of_its_own(tmp_path: Path) -> None:
    assert start_hint(tmp_path) is None
    (tmp_path / "dbt_project.yml").write_text("name: shop\n")
    assert "penstock import dbt" in (start_hint(tmp_path) or "")
    (tmp_path / "config.yaml").write_text("gateways: {}\n")
    assert "config.yaml is SQLMesh's: write a penstock.toml" in (start_hint(tmp_path) or "")


# The format's text of 0.3, "Parameters", and what DuckDB 1.5.5 takes besides (measured).
OF_THE_FORMAT = (
    "CREATE_IF_NOT_EXISTS DATA_INLINING_ROW_LIMIT DATA_PATH ENCRYPTED META_SECRET METADATA_CATALOG "
    "METADATA_PARAMETERS METADATA_PATH METADATA_SCHEMA MIGRATE_IF_REQUIRED OVERRIDE_DATA_PATH "
    "SNAPSHOT_TIME SNAPSHOT_VERSION"
)
OF_DUCKDB = (
    "READ_ONLY READ_WRITE TYPE AUTOMATIC_MIGRATION BUSY_TIMEOUT META_STORAGE_VERSION "
    "DEFAULT_TABLE RECOVERY_MODE"
)


@pytest.mark.parametrize("name", f"{OF_THE_FORMAT} {OF_DUCKDB}".lower().split())
def test_each_is_taken_or_refused(name: str, tmp_path: Path) -> None:
    uri = f"ducklake:sqlite:{tmp_path}/meta.sqlite"
    if name in inspect.signature(Lake.attach).parameters:
        assert refusal(name) is None
        return
    options: dict[str, Any] = {name: "x"}
    with pytest.raises(UnsupportedFeature, match=f"the option {name} is not taken: .+") as caught:
        Lake.attach(uri, data_path=str(tmp_path), **options)
    assert caught.value.hint
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("option", [{"encrypted": False}, {"AUTOMATIC_MIGRATION": False}])
def test_what_asks_for_what_is_done_anyhow(option: dict[str, Any], tmp_path: Path) -> None:
    uri = f"ducklake:sqlite:{tmp_path}/meta.sqlite"
    Lake.attach(uri, data_path=str(tmp_path), lock_timeout=1, **option).close()


def test_no_option_of_duckdb(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="did you mean 'override_data_path'"):
        Lake.attach(f"ducklake:sqlite:{tmp_path}/meta.sqlite", override_datapath=True)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("encrypted = true", "encrypted files are neither written nor read"),
        ("META_SECRET = 'x'", "the URI has the parameters"),
        ("read_only = true", "is not for a project's lake"),
        ("snapshot_version = 3", r"Lake.attach\(..., snapshot_version=...\)"),
    ],
)
def test_in_penstock_toml(line: str, said: str, tmp_path: Path) -> None:
    text = f'[lakes.main]\ncatalog = "sqlite:meta.sqlite"\n{line}\n'
    (tmp_path / "penstock.toml").write_text(text)
    with pytest.raises(ConfigError, match=said) as caught:
        load_settings(tmp_path, environ={}, overrides={})
    assert "penstock.toml:3" in str(caught.value)
