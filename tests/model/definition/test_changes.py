"""``incremental changes``: what it goes with, in both forms."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.errors import ModelError
from penstock.project.project import Project
from tests.engine.toy import write_project

HEADER = "-- pipeline\n-- materialize ducklake://main/t {options}\n-- incremental changes\n"
MODEL = "MODEL (name main.t, kind {kind}, incremental changes);\n"
ROWS = "SELECT id, n + 1 AS n FROM src"


def load(root: Path, text: str) -> Project:
    return Project.load(write_project(root / "toy", {"models/t": text}))


@pytest.mark.parametrize(
    ("text", "forms"),
    [
        (HEADER.format(options="key=id") + ROWS, ["annotations", "model"]),
        (HEADER.format(options="append") + ROWS, ["annotations", "model"]),
        (MODEL.format(kind="INCREMENTAL_BY_UNIQUE_KEY (unique_key id)") + ROWS, ["model"]),
        (MODEL.format(kind="INCREMENTAL_UNMANAGED") + ROWS, ["model"]),
    ],
)
def test_both_forms(tmp_path: Path, text: str, forms: list[str]) -> None:
    with load(tmp_path, text) as project:
        (model,) = project.models
        assert model.reads_changes
        assert not [found for found in project.check() if found.rule.startswith("incremental")]
        for form in forms:
            assert "incremental changes" in project.show_as("t", form)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (HEADER.format(options="") + ROWS, "t.sql:3:4: error: only a merge or an append"),
        (MODEL.format(kind="FULL") + ROWS, "t.sql:1:32: error: only a merge or an append"),
        (
            "-- partitioned daily\n" + HEADER.format(options="key=id") + ROWS,
            "t.sql:4:4: error: a slice is made of all rows",
        ),
        (
            MODEL.format(
                kind="INCREMENTAL_BY_UNIQUE_KEY (unique_key id, merge_filter source.id > 1)"
            )
            + ROWS,
            "may depend on rows that did not change",
        ),
        (
            HEADER.format(options="key=id").replace("changes", "change") + ROWS,
            "-- incremental changes",
        ),
    ],
)
def test_what_it_does_not_go_with(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(ModelError) as caught:
        load(tmp_path, text)
    assert problem in str(caught.value)


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("SELECT id, count(*) AS n FROM src GROUP BY id", "count() looks at several rows"),
        ("SELECT s.id FROM src s JOIN other o ON s.id = o.id", "it reads 2 tables or files"),
        ("SELECT id FROM src AT (VERSION => 3)", "it reads no table as it is now"),
        ("SELECT id FROM t", "it reads the table that it makes"),
    ],
)
def test_a_query_that_runs_whole_is_warned_of(tmp_path: Path, query: str, reason: str) -> None:
    with load(tmp_path, HEADER.format(options="key=id") + query) as project:
        (found,) = [each for each in project.check() if each.rule == "incremental-whole"]
        assert reason in found.message
        assert found.location.line == 3


FILES_HEADER = HEADER.replace("changes", "files")
FILES_MODEL = MODEL.replace("changes", "files")
FILES = "SELECT * FROM read_csv('in/*.csv', columns = {'id': 'INTEGER'}) JOIN dim USING (id)"


@pytest.mark.parametrize(
    ("text", "forms"),
    [
        (FILES_HEADER.format(options="key=id") + FILES, ["annotations", "model"]),
        (FILES_HEADER.format(options="append") + FILES, ["annotations", "model"]),
        (FILES_MODEL.format(kind="INCREMENTAL_BY_UNIQUE_KEY (unique_key id)") + FILES, ["model"]),
        (FILES_MODEL.format(kind="INCREMENTAL_UNMANAGED") + FILES, ["model"]),
    ],
)
def test_both_forms_of_new_files(tmp_path: Path, text: str, forms: list[str]) -> None:
    with load(tmp_path, text) as project:
        (model,) = project.models
        assert (model.reads_files, model.reads_changes) == (True, False)
        assert not [found for found in project.check() if found.rule.startswith("incremental")]
        for form in forms:
            assert "incremental files" in project.show_as("t", form)


@pytest.mark.parametrize(
    ("options", "query", "problem"),
    [
        ("", FILES, "only a merge or an append can read new files, and this is replace"),
        ("append", "SELECT 1 AS id", "reads files by 0 calls, and it takes one"),
        ("append", f"{FILES} UNION {FILES.replace('in', 'to')}", "by 2 calls"),
        ("append", "SELECT * FROM read_csv('s3://b/x.csv')", "only files of this machine"),
    ],
)
def test_what_new_files_do_not_go_with(
    tmp_path: Path, options: str, query: str, problem: str
) -> None:
    with pytest.raises(ModelError, match=problem):
        load(tmp_path, FILES_HEADER.format(options=options) + query)


def test_slices_are_made_of_all_their_files(tmp_path: Path) -> None:
    text = "-- partitioned daily\n" + FILES_HEADER.format(options="append") + FILES
    with pytest.raises(ModelError, match="a slice is made of all files of it"):
        load(tmp_path, text)
