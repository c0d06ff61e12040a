"""The format's conflict rules, one case each way."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.lakes.format.changes import (
    ChangeSet,
    InlineChange,
    MergeFiles,
    NewMacro,
    NewTable,
    NewView,
    TableChange,
)
from penstock.lakes.format.conflicts import check, needs_schemas, parse_changes, touched
from penstock.lakes.format.files import DataFile, DeleteFile
from penstock.lakes.format.schema import TableSchema
from penstock.sql.macros import MacroForm

FILE = DataFile("/x", 1, 1, 1)
DELETE = DeleteFile("/y", 1, 1, 1)
NEW = NewTable("uuid", TableSchema(()), "/t/")
SCHEMAS = {"main": 0, "s": 2}

FORM = MacroForm("scalar", "duckdb", "1")


def _table(**change: Any) -> ChangeSet:
    return ChangeSet(tables=(TableChange("main", "t", 1, **change),))


MINE: dict[str, ChangeSet] = {
    "insert": _table(add=(FILE,)),
    "delete": _table(deletes={5: DELETE}),
    "end": _table(end=(5,)),
    "merge": _table(add=(FILE,), depends_on_rows=True),
    "inline": _table(inline=InlineChange(insert=pa.table({"1": [1]}))),
    "inline end": _table(inline=InlineChange(end_rows=(1,))),
    "inline delete": _table(inline=InlineChange(delete={5: (0,)})),
    "alter": _table(schema=TableSchema(())),
    "rename": _table(rename_to="n"),
    "partition": _table(partition_by=()),
    "sort": _table(sort_by=()),
    "comment": _table(column_tags={1: {"comment": "x"}}),
    "create": ChangeSet(tables=(TableChange("s", "T", create=NEW),)),
    "replace": ChangeSet(tables=(TableChange("main", "t", create=NEW, drops=1),)),
    "drop": ChangeSet(tables=(TableChange("main", "t", drops=1),)),
    "schema": ChangeSet(create_schemas=("New",)),
    "needed schema": ChangeSet(create_schemas=("New",), needed_schemas=frozenset({"new"})),
    "drop schema": ChangeSet(drop_schemas=(2,)),
    "view": ChangeSet(create_views=(NewView("s", "T", "SELECT 1"),)),
    "drop view": ChangeSet(drop_views=(7,)),
    "rename view": ChangeSet(rename_views={7: "w"}),
    "comment view": ChangeSet(view_tags={7: {"comment": None}}),
    "macro": ChangeSet(create_macros=(NewMacro("s", "F", (FORM,)),)),
    "drop macro": ChangeSet(drop_macros=(8,)),
    "compact": ChangeSet(compactions=(MergeFiles(1, "main.t", "/t/", ()),)),
}
ROWS = {"delete", "end", "inline end", "inline delete"}
WRITES = {"insert", "merge", "inline"} | ROWS
ALTERS = {"alter", "rename", "partition", "sort", "comment"}
# For each token of another snapshot on the same table or name: what it excludes.
EXCLUDES: dict[str, set[str]] = {
    "dropped_table:1": WRITES | ALTERS | {"replace", "drop", "compact"},
    "altered_table:1": WRITES | ALTERS,
    "inserted_into_table:1": {"merge", "rename"},
    "inlined_insert:1": {"merge", "rename"},
    "deleted_from_table:1": {"merge", "rename", "compact"} | ROWS,
    "inlined_delete:1": {"merge", "rename", "compact"} | ROWS,
    "compacted_table:1": {"compact"} | ROWS,
    "merge_adjacent:1": {"compact"} | ROWS,
    "rewrite_delete:1": {"compact"} | ROWS,
    "inline_flush:1": {"compact"} | ROWS,
    'created_table:"S"."t"': {"create", "view", "drop schema"},
    'created_view:"s"."t"': {"create", "view", "drop schema"},
    'created_table:"main"."t"': {"replace"},
    'created_table:"main"."N"': {"rename"},
    "dropped_schema:2": {"create", "view", "macro", "drop schema"},
    'created_schema:"new"': {"schema"},
    "dropped_view:7": {"drop view", "rename view", "comment view"},
    "altered_view:7": {"rename view", "comment view"},
    'created_scalar_macro:"s"."f"': {"macro", "drop schema"},
    'created_table_macro:"s"."f"': {"drop schema"},
    "dropped_scalar_macro:8": {"drop macro"},
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
    if not needs_schemas(MINE[mine]):
        assert check(MINE[mine], parse_changes(9, theirs), {}) == conflict


@pytest.mark.parametrize("mine", MINE)
def test_what_others_renamed_is_not_changed(mine: str) -> None:
    excluded = WRITES | ALTERS | {"replace", "drop", "drop view", "rename view", "comment view"}
    theirs = replace(parse_changes(9, 'created_table:"main"."x"'), renamed=touched(MINE[mine]))
    conflict = check(MINE[mine], theirs, SCHEMAS)
    assert (conflict is not None) == (mine in excluded)


def test_small_commits_need_no_schemas() -> None:
    """They are read while others wait."""
    assert not any(needs_schemas(MINE[mine]) for mine in WRITES)


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
    changes = parse_changes(1, text)
    assert changes.unknown is None
    assert len(changes.created_schemas) == len(changes.created_tables) == 1
    assert changes.dropped_tables == changes.inserted == {number}


@given(st.sampled_from(sorted(MINE)), st.lists(st.sampled_from(sorted(EXCLUDES)), max_size=4))
def test_a_snapshot_excludes_what_any_of_its_changes_does(mine: str, parts: list[str]) -> None:
    tokens = [part for part in parts if part]
    conflict: Any = check(MINE[mine], parse_changes(1, ",".join(tokens)), SCHEMAS)
    assert (conflict is not None) == any(mine in EXCLUDES[token] for token in tokens)
