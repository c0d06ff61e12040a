from __future__ import annotations

from pathlib import Path

import yaml

from penstock.dbt_import.project import imported
from penstock.project import Project
from tests.dbt_import.manifests import data_test, manifest, node

RAW = "seed.shop.raw"
NOT_NULL = {"name": "not_null", "namespace": None, "kwargs": {"column_name": "id"}}
NODES = (
    node("seed", "raw", original_file_path="seeds/raw.csv", config={}, compiled_code=None),
    node(
        "model",
        "a",
        compiled_code='select id from "lake"."shop"."raw";',
        description="it's all",
        tags=["daily"],
        columns={"id": {"name": "id", "description": "the key", "data_type": "bigint"}},
        config={"materialized": "table", "contract": {"enforced": True}, "post-hook": ["x"]},
        depends_on={"nodes": [RAW]},
    ),
    node("model", "p", language="python"),
    node("model", "inside", config={"materialized": "ephemeral"}),
    node(
        "snapshot",
        "h",
        compiled_code='select * from "lake"."shop"."a"',
        config={"strategy": "check", "check_cols": "all", "unique_key": "id"},
    ),
    data_test("nn", ["model.shop.a"], attached_node="model.shop.a", test_metadata=NOT_NULL),
    data_test(
        "own", ["model.shop.a"], compiled_code='select * from "lake"."shop"."a" where id < 0'
    ),
    data_test("lost", ["model.shop.a", RAW, "model.shop.p"], compiled_code="select 1"),
)


def test_the_files_are_a_project_that_checks(tmp_path: Path) -> None:
    root = tmp_path / "dbt"
    (root / "seeds").mkdir(parents=True)
    (root / "seeds" / "raw.csv").write_text("id\n1\n")
    unit = {"name": "t", "model": "a", "given": [], "expect": {"rows": []}}
    sources = {"source.shop.web.x": {**node("source", "x"), "source_name": "web"}}
    found = imported(
        manifest(root, *NODES, unit_tests={"unit_test.shop.a.t": unit}, sources=sources)
    )
    assert sorted(found.files) == [
        "audits/own.sql",
        "external_models.yaml",
        "models/shop/a.sql",
        "models/shop/h.sql",
        "models/shop/raw.sql",
        "penstock.toml",
        "seeds/raw.csv",
        "tests/unit_tests.yaml",
    ]
    into = tmp_path / "into"
    for path, text in found.files.items():
        (into / path).parent.mkdir(parents=True, exist_ok=True)
        (into / path).write_text(text)
    with Project.load(into) as project:
        assert project.check() == ()
        models = {model.name: model for model in project.models}
    assert set(models) == {"shop/a", "shop/h", "shop/raw"}
    assert found.files["models/shop/a.sql"] == (
        "MODEL (\n  name shop.a,\n  kind FULL,\n  columns (id bigint),\n"
        "  description 'it''s all',\n  tags ('daily'),\n"
        "  column_descriptions (id = 'the key'),\n"
        "  audits (\n    not_null(columns := (id)),\n    own\n  )\n);\n\n"
        "select id from shop.raw\n"
    )
    assert yaml.safe_load(found.files["external_models.yaml"]) == [{"name": "shop.x"}]


def test_what_is_lost_or_different_is_listed(tmp_path: Path) -> None:
    (tmp_path / "seeds").mkdir()
    (tmp_path / "seeds" / "raw.csv").write_text("id\n1\n")
    found = imported(manifest(tmp_path, *NODES))
    assert [left.what for left in found.left] == ["test lost", "model p"]
    assert [note.what for note in found.notes] == ["model a", "model inside", "snapshot h"]
