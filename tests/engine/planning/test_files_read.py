"""The files that a slice reads, before anything reads them.

``engine/running/attempt.py`` records them; runs show it (`test_up_to_date`).
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from penstock.engine.planning.files_read import are_same, files_of
from penstock.model.definition.model import Model
from penstock.model.script.constants import Bindings
from penstock.project.project import Project
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


def test_files_are_the_same_by_size_and_time_or_by_content(tmp_path: Path) -> None:
    model = model_of(tmp_path, "SELECT * FROM read_csv('data/' || '{partition}' || '*.csv')")
    root, bindings = tmp_path / "p", Bindings(partition="2026-01-01")
    (root / "data").mkdir()
    file = root / "data" / "2026-01-01.csv"
    file.write_text("n\n1\n")
    before = list(files_of(model, bindings, root))
    assert are_same(model, bindings, root, before)
    os.utime(file, ns=(1, 1))
    assert are_same(model, bindings, root, before)  # by its content
    file.write_text("n\n2\n")
    assert not are_same(model, bindings, root, before)
    file.write_text("n\n1\n")
    (root / "data" / "2026-01-01-b.csv").write_text("n\n1\n")
    assert not are_same(model, bindings, root, before)  # there is one more
    file.unlink()
    assert not are_same(model, bindings, root, before)  # another one
    assert not are_same(model, Bindings(partition="2026-01-02"), root, before)


def test_a_file_without_a_hash_is_another_by_its_time(tmp_path: Path) -> None:
    model = model_of(tmp_path, "SELECT * FROM read_csv('a.csv')")
    root = tmp_path / "p"
    (root / "a.csv").write_text("n\n1\n")
    before = [replace(each, hash=None) for each in files_of(model, Bindings(), root)]
    assert are_same(model, Bindings(), root, before)
    os.utime(root / "a.csv", ns=(1, 1))
    assert not are_same(model, Bindings(), root, before)


def test_nobody_can_date_a_uri(tmp_path: Path) -> None:
    model = model_of(tmp_path, "SELECT * FROM read_parquet('s3://b/x/*')")
    before = list(files_of(model, Bindings(), tmp_path / "p"))
    assert not are_same(model, Bindings(), tmp_path / "p", before)
