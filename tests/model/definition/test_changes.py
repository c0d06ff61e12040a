"""``incremental changes`` and change feeds: what they go with, in both forms."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.errors import ModelError
from penstock.project.project import Project
from tests.engine.toy import CONFIG, write_project

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


FEED_LINES = "-- pipeline\n-- materialize ducklake://main/t {}\nSELECT id, seq, op FROM src"
FEED_MODEL = "MODEL (name {}.t, kind INCREMENTAL_BY_UNIQUE_KEY ({}));\nSELECT id, seq, op FROM src"
DELTA = CONFIG + '[delta.d]\nroot = "delta"\n'


def load_feed(root: Path, text: str) -> Project:
    return Project.load(write_project(root, {"models/t": text}, DELTA))


def test_both_forms_of_a_change_feed_say_the_same(tmp_path: Path) -> None:
    options = "key=id sequence=seq deletes=\"op = 'D' OR op IS NULL\""
    of_model = "unique_key id, sequence seq, deletes (op = 'D' OR op IS NULL)"
    with (
        load_feed(tmp_path / "lines", FEED_LINES.format(options)) as lines,
        load_feed(tmp_path / "model", FEED_MODEL.format("main", of_model)) as model,
    ):
        (by_lines,), (by_model,) = lines.models, model.models
        assert by_lines.upsert == by_model.upsert
        assert by_lines.definition_hash == by_model.definition_hash
        assert (by_lines.upsert.sequence, by_lines.upsert.deletes) == (
            "seq",
            "op = 'D' OR op IS NULL",
        )
        assert options in lines.show_as("t", "annotations")
        assert options in model.show_as("t", "annotations")
        assert "sequence seq,\n    deletes (op = 'D' OR op IS NULL)" in lines.show_as("t", "model")


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ("sequence=seq", "`sequence=` orders events that are merged, and this is replace"),
        ("key=id append sequence=seq", "`sequence=` orders events that are merged, and this is"),
        ("key=id history sequence=seq deletes=close", "orders events that are merged, and this is"),
        ("key=id deletes=close", "`deletes=` means nothing without history"),
        ("key=id sequence=ID", "`sequence` orders the events of a key, and ID is one"),
        ('key=id sequence=seq deletes="op = \'"', "`deletes`: "),
        ('key=id sequence=seq deletes="id IN (SELECT 1)"', "`deletes`: a condition is of one row"),
        ("key=id sequence=", "`sequence=` is empty"),
        (
            "key=id sequence=seq\n-- partitioned daily",
            "a change feed makes one table of its events, and `partitioned` one of each slice",
        ),
        (
            "key=id sequence=seq deletes=op\n-- data_test not_null op severity=quarantine",
            "an event that deletes a key would be lost with its row (deletes)",
        ),
    ],
)
def test_what_lines_of_a_change_feed_do_not_go_with(
    tmp_path: Path, options: str, problem: str
) -> None:
    with pytest.raises(ModelError) as caught:
        load_feed(tmp_path / "toy", FEED_LINES.format(options))
    assert problem in str(caught.value)


@pytest.mark.parametrize(
    ("lake", "options", "problem"),
    [
        ("main", "unique_key id, deletes (op = 'D')", "t.sql:1:68: error: `deletes` needs `sequ"),
        ("main", "unique_key lower(id), sequence seq", "`sequence` needs keys that are columns"),
        ("main", "unique_key id, sequence seq, merge_filter source.id > 1", "`merge_filter` can"),
        ("main", "unique_key id, sequence seq, deletes @x", "@x: no macro can stand in deletes"),
        ("d.main", "unique_key id, sequence seq", "a commit of Delta changes one table"),
    ],
)
def test_what_a_kind_of_a_feed_does_not_go_with(
    tmp_path: Path, lake: str, options: str, problem: str
) -> None:
    with pytest.raises(ModelError) as caught:
        load_feed(tmp_path / "toy", FEED_MODEL.format(lake, options))
    assert problem in str(caught.value)


def test_the_sequence_is_a_column_of_the_query(tmp_path: Path) -> None:
    text = FEED_LINES.format("key=id sequence=sq").replace(
        "FROM src", "FROM (SELECT 1 id, 2 seq, 3 op)"
    )
    with load_feed(tmp_path / "toy", text) as project:
        messages = [found.message for found in project.check()]
    assert "the query does not make the sequence sq" in messages
