"""``penstock maintain`` on a small project, without Spark."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from penstock.cli.main import main
from tests import duck
from tests.lakes.catalog.conftest import Place
from tests.lakes.maintenance.lakes import play


@pytest.fixture
def project(tmp_path: Path) -> Path:
    duck.required()
    (tmp_path / "models").mkdir()
    (tmp_path / "penstock.toml").write_text(
        '[project]\nname = "shop"\n\n[lakes.main]\ncatalog = "sqlite:meta.sqlite"\n'
        'data_path = "data"\n'
    )
    rows = [f"INSERT INTO t VALUES ({at})" for at in range(4)]
    place = Place(f"ducklake:sqlite:{tmp_path / 'meta.sqlite'}", f"{tmp_path}/data/")
    play(place, ["CREATE TABLE t(i INT)", *rows])
    return tmp_path


def maintain(project: Path, *arguments: str) -> Result:
    name = arguments[:1] if not arguments[0].startswith("--") else ()
    line = ["maintain", *name, "--project", str(project), *arguments[len(name) :]]
    return CliRunner().invoke(main, line)


def test_all(project: Path) -> None:
    dry = maintain(project, "--all", "--dry-run")
    assert (dry.exit_code, "merge_adjacent_files: 4 files became 1" in dry.stdout) == (0, True)
    assert maintain(project, "--all").stdout == dry.stdout.replace(
        "expire_snapshots", "flush_inlined_data: nothing to do\nexpire_snapshots", 1
    )
    again = json.loads(maintain(project, "--all", "--json").stdout)
    assert again["merge_adjacent_files"] == []


def test_one_function(project: Path) -> None:
    merged = json.loads(maintain(project, "merge-adjacent-files", "--spark", "--json").stdout)
    assert [
        (merged_file["files_processed"], merged_file["files_created"])
        for merged_file in merged["merge_adjacent_files"]
    ] == [(4, 1)]
    expired = maintain(project, "expire-snapshots", "--older-than", "0 seconds")
    assert 'created_table:"main"."t"' in expired.stdout
    removed = json.loads(maintain(project, "cleanup-old-files", "--cleanup-all", "--json").stdout)
    assert len(removed["cleanup_old_files"]) == 4
    assert "Nothing to do." in maintain(project, "delete-orphaned-files").stdout


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("expire-snapshots", "--older-than", "soon"), 2),
        (("merge-adjacent-files", "--table", "nope"), 2),
        (("--dry-run",), 2),
    ],
)
def test_how_it_ends(project: Path, arguments: tuple[str, ...], code: int) -> None:
    assert maintain(project, *arguments).exit_code == code


def test_a_file_that_is_gone(project: Path) -> None:
    min(project.rglob("data/**/*.parquet")).unlink()
    ended = maintain(project, "merge-adjacent-files")
    assert (ended.exit_code, " of main.t is missing" in ended.stderr) == (1, True), ended.stderr
