"""What can be restated, and how: refusals and plans. No Spark, no catalog."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from penstock.errors import ArgumentError
from penstock.project.project import Project
from tests.engine.toy import write_project

KIND = "MODEL (name main.{}, kind {});\nSELECT 1 AS n FROM src"
ANNOTATED = "-- materialize ducklake://main/{}\nSELECT 1 AS n FROM src"
SCRIPTS = {
    "models/keyed": KIND.format("keyed", "INCREMENTAL_BY_UNIQUE_KEY (unique_key n)"),
    "models/log": ANNOTATED.format("log append"),
    "models/hist": ANNOTATED.format("hist history key=n"),
    "models/kept": KIND.format("kept", "SCD_TYPE_2_BY_COLUMN (unique_key n, columns *)"),
    "models/inside": KIND.format("inside", "EMBEDDED"),
    "models/full": KIND.format("full", "FULL"),
    "models/part": ANNOTATED.format("part").replace("\n", "\n-- partitioned daily\n"),
}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    root: Path = write_project(tmp_path_factory.mktemp("restate") / "p", SCRIPTS)
    (root / "external_models.yaml").write_text("- name: main.src\n- name: main.unread\n")
    return Project.load(root)


@pytest.mark.parametrize(
    ("model", "asked", "said"),
    [
        ("full", {"from_": "2026-01-02"}, "full has no ranges: it is made as a whole"),
        ("keyed", {"from_": "2026-01-02"}, "keyed has no ranges: it is made as a whole"),
        ("part", {}, "a restatement of part needs a range"),
        ("log", {}, "log cannot be restated: its rows are only ever added"),
        ("hist", {}, "hist cannot be restated: it would lose the versions"),
        ("kept", {}, "disable_restatement is true, as its kind has it by default"),
        ("inside", {}, "inside is EMBEDDED: only what reads it can be restated"),
        ("src", {}, "main.src is external: only what reads it can be restated"),
        ("unread", {"downstream": True}, "no model reads main.unread"),
        ("nowhere", {}, "'nowhere'"),
    ],
)
def test_what_cannot_be_restated(
    project: Project, model: str, asked: dict[str, Any], said: str
) -> None:
    with pytest.raises(ArgumentError, match=said):
        project.restatement(model, **asked)
