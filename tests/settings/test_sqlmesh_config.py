"""A directory that SQLMesh or dbt configures, and what takes the place of its keys."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.settings.sqlmesh_config import find, findings, start_hint


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
