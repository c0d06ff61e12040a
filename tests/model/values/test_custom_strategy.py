"""Materializations of a project: found by what is in their files, and what is wrong with them."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.model.project.loader import load_models
from tests.model.project.test_loader import LAKES, project

LATEST = """
import penstock

class Latest(penstock.CustomMaterialization):
    NAME: str = "latest"

    def insert(self, table, df, properties):
        table.replace(df.limit(int(properties["rows"])))
"""
MODEL = "MODEL (name s.t, kind CUSTOM (materialization '{}', {}));\nSELECT 1 AS id"


def with_file(root: Path, text: str, model: str) -> Path:
    (root / "materializations").mkdir(exist_ok=True)
    (root / "materializations" / "own.py").write_text(text)
    return project(root, models__t=model)


def test_what_a_model_says_of_it(tmp_path: Path) -> None:
    model = MODEL.format("latest", "materialization_properties (rows = 3)")
    cache: dict[str, bytes] = {}
    (made,) = load_models(with_file(tmp_path, LATEST, model), lakes=LAKES, cache=cache).models
    assert made.custom is not None
    assert (made.strategy.name, made.custom.materialization.class_name) == ("custom", "Latest")
    assert (dict(made.custom.properties), cache) == ({"rows": "3"}, {})
    (same,) = load_models(with_file(tmp_path, f"# x\n{LATEST}", model), lakes=LAKES).models
    (other,) = load_models(
        with_file(tmp_path, LATEST.replace("limit", "tail"), model), lakes=LAKES
    ).models
    assert same.definition_hash == made.definition_hash
    assert other.definition_hash != made.definition_hash


@pytest.mark.parametrize(
    ("name", "text", "place", "message"),
    [
        (
            "lates",
            LATEST,
            "t.sql:1:47",
            "materialization lates does not exist in materializations/",
        ),
        ("latest", LATEST.replace("insert", "inser"), "own.py:4:1", "Latest has no insert"),
        ("latest", LATEST.replace(", properties", ""), "own.py:7:5", "insert of Latest does not"),
        ("latest", f"{LATEST}\n    def create(self): ...", "own.py:10:5", "create of a"),
        ("latest", f"{LATEST}\n{LATEST}", "own.py:13:1", "there are two materializations latest"),
        ("latest", "class (:", "own.py:1:7", "the file cannot be read: invalid syntax"),
    ],
)
def test_what_is_wrong(tmp_path: Path, name: str, text: str, place: str, message: str) -> None:
    files = with_file(tmp_path, text, MODEL.format(name, "batch_size 1"))
    found = [f for f in load_models(files, lakes=LAKES).errors if message in f.message]
    shown = [f"{Path(f.location.path).name}:{f.location.line}:{f.location.column}" for f in found]
    assert shown == [place]
