from __future__ import annotations

from pathlib import Path

import pytest

from penstock.dbt_import.manifest import read_manifest
from penstock.errors import ArgumentError
from tests.dbt_import.manifests import manifest, node, written


def test_a_manifest_is_read_from_its_project_or_from_the_file(tmp_path: Path) -> None:
    root = written(tmp_path, node("model", "b"), node("model", "a"), node("seed", "c"))
    for given in (root, root / "target" / "manifest.json"):
        found = read_manifest(given)
        assert (found.root, found.name, found.dialect) == (root, "shop", "spark")
        assert [n["name"] for n in found.of_type("model")] == ["a", "b"]


def test_tables_are_called_by_schema_and_alias(tmp_path: Path) -> None:
    found = manifest(tmp_path, node("model", "a", alias="An a"))
    assert found.tables() == {'"lake"."shop"."a"': "shop.`An a`"}
    found = manifest(tmp_path, node("model", "a", alias="An a"), adapter="duckdb")
    assert found.tables() == {'"lake"."shop"."a"': 'shop."An a"'}


def test_models_without_a_query_are_named(tmp_path: Path) -> None:
    nodes = (node("model", "a"), node("model", "b", compiled_code=None), node("model", "c"))
    written(tmp_path, *nodes, node("model", "p", language="python", compiled_code=None))
    with pytest.raises(ArgumentError, match="no compiled query of b\n") as failed:
        read_manifest(tmp_path)
    assert "a part of the project" in str(failed.value.hint)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "does not exist"),
        ("{", "cannot be read"),
        ("[]", "does not hold a manifest"),
        ('{"metadata": {"adapter_type": "snowflake"}, "nodes": {}}', "SQL is that of snowflake"),
        ('{"metadata": {"adapter_type": "duckdb"}, "nodes": {}}', "has no compiled queries"),
    ],
)
def test_what_cannot_be_taken_says_what_to_do(
    tmp_path: Path, text: str | None, message: str
) -> None:
    if text is not None:
        (tmp_path / "target").mkdir()
        (tmp_path / "target" / "manifest.json").write_text(text)
    with pytest.raises(ArgumentError, match=message) as failed:
        read_manifest(tmp_path)
    assert "ompile" in str(failed.value.hint)
