"""A dbt project as files of a Penstock project, and what was not taken, with the reason."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from penstock.dbt_import.project import columns_of, imported, path_of, type_of
from penstock.errors import ArgumentError
from penstock.project.project import Project
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


@pytest.mark.parametrize(("adapter", "mark"), [("duckdb", '"'), ("spark", "`")])
def test_names_with_blanks_and_sources_that_a_model_makes(
    tmp_path: Path, adapter: str, mark: str
) -> None:
    relation = f"{mark}shop{mark}.{mark}Order Items{mark}"
    nodes = (
        node("model", "items", alias="Order Items", relation_name=relation),
        node("model", "reader", compiled_code=f"select id from {relation} as items"),
    )
    sources = {"source.shop.own.items": node("source", "Order Items", relation_name=relation)}
    found = imported(manifest(tmp_path / "dbt", *nodes, adapter=adapter, sources=sources))
    assert "external_models.yaml" not in found.files
    for path, text in found.files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    with Project.load(tmp_path) as project:
        assert project.check() == ()


def test_variables_and_options_that_are_not_taken_are_listed(tmp_path: Path) -> None:
    config = {"materialized": "table", "liquid_clustered_by": "id", "meta": {"a": 1}}
    given = node("model", "a", config=config, raw_code="select {{ var('n') }} as id")
    found = imported(manifest(tmp_path, given))
    assert [note.reason.split(":")[0] for note in found.notes] == [
        "its variables keep the values of this compilation",
        "its option liquid_clustered_by is not converted",
    ]


def test_what_is_lost_or_different_is_listed(tmp_path: Path) -> None:
    (tmp_path / "seeds").mkdir()
    (tmp_path / "seeds" / "raw.csv").write_text("id\n1\n")
    found = imported(manifest(tmp_path, *NODES))
    assert [left.what for left in found.left] == ["test lost", "model p"]
    assert [note.what for note in found.notes] == ["model a", "model inside", "snapshot h"]


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["1", "-2"], "BIGINT"),
        (["1", "2.5", "1e3"], "DOUBLE"),
        (["true", "FALSE"], "BOOLEAN"),
        (["2026-01-02"], "DATE"),
        (["2026-01-02 03:04:05", "2026-01-02"], "TIMESTAMP_NTZ"),
        (["2026-01-02", "soon"], "TEXT"),
        (["2026-01-02 03:04:05+01:00"], "TEXT"),
        ([], "TEXT"),
    ],
)
def test_a_type_is_that_of_all_values(values: list[str], kind: str) -> None:
    assert type_of(values) == kind


def test_columns_have_the_types_that_the_seed_says_or_its_values(tmp_path: Path) -> None:
    path = tmp_path / "s.csv"
    path.write_text("\ufeffid;at;code\n1;2026-01-02;007\n2;;008\n", encoding="utf-8")
    seed = node("seed", "s", config={"delimiter": ";", "column_types": {"code": "varchar"}})
    assert columns_of(seed, path) == [("id", "BIGINT"), ("at", "DATE"), ("code", "varchar")]


def test_a_row_of_another_length_and_another_encoding_are_refused(tmp_path: Path) -> None:
    seed, path = node("seed", "s", config={}), tmp_path / "s.csv"
    path.write_text("a,b\n1,2\n3\n")
    with pytest.raises(ArgumentError, match="a row of 1 values below 2 names"):
        columns_of(seed, path)
    path.write_bytes("a\nü\n".encode("latin-1"))
    with pytest.raises(ArgumentError, match="cannot be read as UTF-8"):
        columns_of(seed, path)


def test_a_seed_without_its_file_or_a_header_is_refused(tmp_path: Path) -> None:
    seed = node("seed", "s", original_file_path="seeds/s.csv")
    with pytest.raises(ArgumentError, match="has no file"):
        path_of(seed, tmp_path)
    (tmp_path / "empty.csv").write_text("")
    with pytest.raises(ArgumentError, match="has no header"):
        columns_of(seed, tmp_path / "empty.csv")
