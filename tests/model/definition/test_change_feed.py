"""Change feeds: ``sequence`` and ``deletes`` in both forms, and what they do not go with."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.errors import ModelError
from penstock.project.project import Project
from tests.engine.toy import CONFIG, write_project

LINES = "-- pipeline\n-- materialize ducklake://main/t {}\nSELECT id, seq, op FROM src"
MODEL = "MODEL (name {}.t, kind INCREMENTAL_BY_UNIQUE_KEY ({}));\nSELECT id, seq, op FROM src"
DELTA = CONFIG + '[delta.d]\nroot = "delta"\n'


def load(root: Path, text: str) -> Project:
    return Project.load(write_project(root, {"models/t": text}, DELTA))


def test_both_forms_say_the_same(tmp_path: Path) -> None:
    options = "key=id sequence=seq deletes=\"op = 'D' OR op IS NULL\""
    of_model = "unique_key id, sequence seq, deletes (op = 'D' OR op IS NULL)"
    with (
        load(tmp_path / "lines", LINES.format(options)) as lines,
        load(tmp_path / "model", MODEL.format("main", of_model)) as model,
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
def test_what_lines_do_not_go_with(tmp_path: Path, options: str, problem: str) -> None:
    with pytest.raises(ModelError) as caught:
        load(tmp_path / "toy", LINES.format(options))
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
def test_what_a_kind_does_not_go_with(
    tmp_path: Path, lake: str, options: str, problem: str
) -> None:
    with pytest.raises(ModelError) as caught:
        load(tmp_path / "toy", MODEL.format(lake, options))
    assert problem in str(caught.value)


def test_the_sequence_is_a_column_of_the_query(tmp_path: Path) -> None:
    text = LINES.format("key=id sequence=sq").replace("FROM src", "FROM (SELECT 1 id, 2 seq, 3 op)")
    with load(tmp_path / "toy", text) as project:
        messages = [found.message for found in project.check()]
    assert "the query does not make the sequence sq" in messages
