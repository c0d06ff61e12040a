"""The format's conflict rules, one case each way."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.lake.changes import ChangeSet, NewTable, TableChange
from penstock.lake.conflicts import check, parse_changes
from penstock.lake.files import DataFile, DeleteFile
from penstock.lake.schema import TableSchema

FILE = DataFile("/x", 1, 1, 1)
DELETE = DeleteFile("/y", 1, 1, 1)
NEW = NewTable("uuid", TableSchema(()), "/t/")
SCHEMAS = {"main": 0, "s": 2}

MINE: dict[str, ChangeSet] = {
    "insert": ChangeSet(tables=(TableChange("main", "t", 1, add=(FILE,)),)),
    "delete": ChangeSet(tables=(TableChange("main", "t", 1, deletes={5: DELETE}),)),
    "end": ChangeSet(tables=(TableChange("main", "t", 1, end=(5,)),)),
    "alter": ChangeSet(tables=(TableChange("main", "t", 1, schema=TableSchema(())),)),
    "merge": ChangeSet(tables=(TableChange("main", "t", 1, add=(FILE,), depends_on_rows=True),)),
    "create": ChangeSet(tables=(TableChange("s", "T", create=NEW),)),
    "replace": ChangeSet(tables=(TableChange("main", "t", create=NEW, drops=1),)),
    "schema": ChangeSet(create_schemas=("New",)),
}
# For each token of another snapshot on the same table or name: what it excludes.
EXCLUDES: dict[str, set[str]] = {
    "dropped_table:1": {"insert", "delete", "end", "alter", "merge", "replace"},
    "altered_table:1": {"insert", "delete", "end", "alter", "merge"},
    "inserted_into_table:1": {"merge"},
    "inlined_insert:1": {"merge"},
    "deleted_from_table:1": {"delete", "end", "merge"},
    "inlined_delete:1": {"delete", "end", "merge"},
    "compacted_table:1": {"delete", "end"},
    "merge_adjacent:1": {"delete", "end"},
    "rewrite_delete:1": {"delete", "end"},
    "inline_flush:1": {"delete", "end"},
    'created_table:"S"."t"': {"create"},
    'created_view:"s"."t"': {"create"},
    'created_table:"main"."t"': {"replace"},
    "dropped_schema:2": {"create"},
    'created_schema:"new"': {"schema"},
    "dropped_view:1": set(),
    "altered_view:1": set(),
    'created_scalar_macro:"main"."f"': set(),
    "deleted_from_table:2": set(),
    "dropped_table:2,altered_table:3": set(),
    "": set(),
    "something_new:1": set(MINE),
    "inserted_into_table": set(MINE),
}


@pytest.mark.parametrize("theirs", EXCLUDES)
@pytest.mark.parametrize("mine", MINE)
def test_matrix(mine: str, theirs: str) -> None:
    conflict = check(MINE[mine], parse_changes(9, theirs), SCHEMAS)
    assert (conflict is not None) == (mine in EXCLUDES[theirs])
    if conflict is not None:
        assert conflict.snapshot_id == 9


def test_messages_name_what_was_done() -> None:
    conflict = check(MINE["delete"], parse_changes(3, "deleted_from_table:1"), SCHEMAS)
    assert conflict is not None
    assert conflict.what == "deleted rows of main.t"


NAMES = st.text(min_size=1, max_size=6)


@given(NAMES, NAMES, st.integers(0, 99))
def test_any_name_is_parsed(schema: str, table: str, number: int) -> None:
    def quoted(name: str) -> str:
        return '"' + name.replace('"', '""') + '"'

    text = (
        f"dropped_table:{number},created_schema:{quoted(schema)},"
        f"created_table:{quoted(schema)}.{quoted(table)},inserted_into_table:{number}"
    )
    found = parse_changes(1, text)
    assert found.unknown is None
    assert len(found.created_schemas) == len(found.created_tables) == 1
    assert found.dropped_tables == found.inserted == {number}


@given(st.sampled_from(sorted(MINE)), st.lists(st.sampled_from(sorted(EXCLUDES)), max_size=4))
def test_a_snapshot_excludes_what_any_of_its_changes_does(mine: str, parts: list[str]) -> None:
    tokens = [part for part in parts if part]
    conflict: Any = check(MINE[mine], parse_changes(1, ",".join(tokens)), SCHEMAS)
    assert (conflict is not None) == any(mine in EXCLUDES[token] for token in tokens)
