"""What is recorded of the input of a slice, before anything reads it."""

from __future__ import annotations

import os
from pathlib import Path

from penstock.engine.running.read_inputs import files_of, hash_of_tests
from penstock.model.definition.model import Model
from penstock.model.script.constants import Bindings
from penstock.project import Project
from tests.engine.toy import write_project

HEAD = "-- pipeline\n-- partitioned daily\n-- materialize ducklake://main/t\n"


def model_of(root: Path, query: str, more: str = "") -> Model:
    return Project.load(write_project(root / "p", {"models/t": f"{HEAD}{more}{query}"})).model("t")


def test_tables_but_not_those_of_earlier_snapshots(tmp_path: Path) -> None:
    query = "SELECT * FROM a JOIN b VERSION AS OF 3 USING (x) JOIN a AS c USING (x)"
    model = model_of(tmp_path, query, "-- on ducklake://main/d\n")
    assert [str(table) for table in model.changing_inputs] == ["main.a", "main.d"]


def test_files_with_size_and_content(tmp_path: Path) -> None:
    model = model_of(tmp_path, "SELECT * FROM read_csv('data/' || '{partition}' || '*.csv')")
    root, bindings = tmp_path / "p", Bindings(partition="2026-01-01")
    assert list(files_of(model, bindings, root)) == []
    (root / "data").mkdir()
    for name in ("2026-01-01.csv", "2026-01-01-b.csv", "2026-01-02.csv"):
        (root / "data" / name).write_text("n\n1\n")
    found = list(files_of(model, bindings, root))
    assert [each.name for each in found] == ["data/2026-01-01-b.csv", "data/2026-01-01.csv"]
    assert {each.size for each in found} == {4}
    assert len({each.hash for each in found}) == 1
    os.utime(root / "data" / "2026-01-01.csv", ns=(1, 1))
    assert [each.time == 1 for each in files_of(model, bindings, root)] == [False, True]


def test_a_directory_is_its_files_and_a_uri_is_itself(tmp_path: Path) -> None:
    query = "SELECT * FROM read_parquet('in') UNION SELECT * FROM read_parquet('s3://b/x/*')"
    model = model_of(tmp_path, query)
    (tmp_path / "p" / "in" / "a").mkdir(parents=True)
    (tmp_path / "p" / "in" / "a" / "x.parquet").write_bytes(b"x")
    (tmp_path / "p" / "in" / "_SUCCESS").write_bytes(b"")
    found = [each.name for each in files_of(model, Bindings(), tmp_path / "p")]
    assert found == ["in/a/x.parquet", "s3://b/x/*"]


def test_tests_count_by_what_they_say(tmp_path: Path) -> None:
    one, other = "-- data_test unique x\n", "-- data_test not_null x\n"
    hashes = {
        hash_of_tests(model_of(tmp_path, "SELECT 1 AS x", more)) for more in ("", one, other, one)
    }
    assert len(hashes) == 3
