"""What decides of rows, or is written with them, beside the definition: `Model.terms`."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.model.definition.model import Model
from penstock.project.project import Project
from tests.engine.toy import write_project

ANNOTATED = "-- pipeline\n{}-- materialize ducklake://main/t\nSELECT 1 AS x"
BLOCK = "MODEL (name t, kind FULL{});\nSELECT 1 AS x"


def model_of(root: Path, text: str) -> Model:
    return Project.load(write_project(root / "p", {"models/t": text})).model("t")


def test_tests_count_by_what_they_say(tmp_path: Path) -> None:
    one, other = "-- data_test unique x\n", "-- data_test not_null x\n"
    hashes = {model_of(tmp_path, ANNOTATED.format(more)).terms for more in ("", one, other, one)}
    assert len(hashes) == 3


@pytest.mark.parametrize(
    "more",
    [
        ", description 'rows'",
        ", column_descriptions (x = 'a number')",
        ", clustered_by x",
        ", partitioned_by x",
    ],
)
def test_what_a_run_writes_beside_rows_counts(more: str, tmp_path: Path) -> None:
    plain = model_of(tmp_path, BLOCK.format(""))
    other = model_of(tmp_path, BLOCK.format(more))
    assert plain.terms != other.terms or (plain.definition_hash != other.definition_hash)


def test_what_is_for_people_alone_does_not(tmp_path: Path) -> None:
    plain, other = (
        model_of(tmp_path, BLOCK.format(more)) for more in ("", ", owner me, tags (a, b)")
    )
    assert plain.terms == other.terms
