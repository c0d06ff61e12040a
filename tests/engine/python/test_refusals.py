"""What is not done with a step in Python is refused by name, before Spark starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.errors import ArgumentError, InputError
from penstock.project.project import Project
from tests.engine.toy import write_project

STEP = """
#pipeline
#   partitioned   daily
# materialize ducklake://main/t key=id
# timeout 10m
def main(partition: str, n: int):
    raise RuntimeError("it runs")
"""
FILES = """
# pipeline
import penstock
def main():
    penstock.lake("main").write_file("out.txt", "x")
"""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    scripts = {"models/t.py": STEP, "models/f.py": FILES}
    return Project.load(write_project(tmp_path / "toy", scripts))


def test_a_preview_runs_no_code(project: Project) -> None:
    with pytest.raises(ArgumentError, match="t is a step in Python: only a run runs its code"):
        project.preview("t", "2026-01-01", args={"n": 1})
    with pytest.raises(ArgumentError, match="f makes files and no table"):
        project.read("f")


def test_arguments_are_checked_before_anything_runs(project: Project) -> None:
    with pytest.raises(ArgumentError, match=r"argument n \(bigint\) has no value"):
        project.plan("t", partition="2026-01-01")
    with pytest.raises(ArgumentError, match="'x' is not a valid bigint"):
        project.plan("t", partition="2026-01-01", args={"n": "x"})
    with pytest.raises(ArgumentError, match="no script has an argument 'm'"):
        project.plan("t", partition="2026-01-01", args={"m": 1})


def test_its_header_is_formatted_and_its_code_left(project: Project) -> None:
    (path,) = project.format()
    assert path.read_text() == (
        "# pipeline\n# partitioned daily\n# materialize ducklake://main/t key=id\n"
        "# timeout 10m\n" + STEP.partition("10m\n")[2]
    )
    assert project.format(check=True) == ()
    with pytest.raises(InputError, match="cannot say a step in Python"):
        project.show_as("t", "model")


def test_what_its_columns_derive_from_is_not_known(project: Project) -> None:
    lineage = project.column_lineage().of("main.t")
    assert lineage is not None
    assert [column.name for column in lineage.columns] == ["_wm_partition"]
    assert "Python makes them" in str(lineage.unknown[0])
    assert project.show("f").about["writes"] == "out.txt"
