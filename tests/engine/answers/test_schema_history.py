"""What became of a table's columns, and what a model says of them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from penstock.engine.answers.schema_history import ColumnChange, schema_changes
from penstock.engine.results import ColumnInfo, SchemaVersion
from tests import duck
from tests.engine.conftest import Make

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def versions(*texts: str) -> list[SchemaVersion]:
    """Of ``a int32, b varchar: a text`` each."""
    made: list[SchemaVersion] = []
    for number, text in enumerate(texts, start=1):
        columns = []
        for part in text.split(", "):
            written, _, comment = part.partition(": ")
            name, kind = written.split(" ")
            columns.append(ColumnInfo(name, kind, comment=comment or None))
        made.append(SchemaVersion(number, number, NOW, tuple(columns)))
    return made


@pytest.mark.parametrize(
    ("before", "after", "changes"),
    [
        ("a int32", "a int32, b date", [ColumnChange("added", "b", None, "date")]),
        ("a int32, b date", "a int32", [ColumnChange("dropped", "b", "date")]),
        ("a int32", "A int64", [ColumnChange("retyped", "A", "int32", "int64")]),
        ("a x, b y, c z", "c z, a x, b y", [ColumnChange("moved", "c", 3, 1)]),
        ("a x, b y, c z", "b y, d w, a x", [
            ColumnChange("dropped", "c", "z"),
            ColumnChange("added", "d", None, "w"),
            ColumnChange("moved", "a", 1, 2),
        ]),
        ("a x", "a x: the key", [ColumnChange("described", "a", None, "the key")]),
    ],
)  # fmt: skip
def test_changes(before: str, after: str, changes: list[ColumnChange]) -> None:
    first, second = schema_changes(versions(before, after))
    assert {change.kind for change in first.changes} == {"added"}
    assert sorted(map(repr, second.changes)) == sorted(map(repr, changes))


def test_no_versions() -> None:
    assert schema_changes([]) == ()


MODEL = """MODEL (
  name t, kind FULL, description 'All of it', column_descriptions (id = 'the {}')
);
SELECT 1 AS id, {} AS v"""


@pytest.mark.spark
def test_descriptions_are_comments_of_the_table(make: Make) -> None:
    for key, value in (("key", 1), ("key", 1), ("number", 1), ("number", "'x'")):
        project = make({"models/t": MODEL.format(key, value)})
        project.run()
    history = project.schema_history("t")
    assert [[change.kind for change in each.changes] for each in history] == [
        ["added", "added"],
        ["described"],
        ["retyped"],
    ]
    detail = project.show("t")
    assert (detail.about["description"], detail.columns[0].comment) == ("All of it", "the number")
    assert len(project.snapshots()) == 4  # the lake's own, and one for each change
    project.close()
    root = project.settings.root
    found = duck.rows(
        f"ducklake:sqlite:{root}/lake/meta.sqlite",
        "SELECT t.comment, c.comment FROM duckdb_tables() t JOIN duckdb_columns() c "
        "USING (table_name) WHERE table_name = 't' AND column_name = 'id'",
    )
    assert found == [("All of it", "the number")]
