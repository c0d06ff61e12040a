"""Commits, read back by us.

Tests ``lakes/format/changes.py`` (changes as a commit reads them).
"""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest
from sqlalchemy import Connection, text

from penstock.errors import (
    CommitConflict,
    CommitError,
    ReadOnlyLake,
    SchemaNotFound,
    SnapshotNotFound,
    TableNotFound,
    UnsupportedFeature,
)
from penstock.lakes.catalog.catalog import Catalog
from penstock.lakes.format.changes import ChangeSet, TableChange
from penstock.lakes.format.files import PartitionField
from penstock.lakes.format.schema import Column, TableSchema, assign_missing_ids
from penstock.lakes.snapshot import At, Snapshot
from tests.lakes.catalog import staging
from tests.lakes.catalog.conftest import Place

IV = staging.columns(id="int64", v="varchar")


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "v": [f"v{i}" for i in ids]})


def test_create_with_files(lake: Catalog) -> None:
    done = staging.create(lake, "t", IV, rows(1, 2), rows(3))
    assert done == lake.latest()
    assert done.changes == 'created_table:"main"."t",inserted_into_table:1'
    assert (done.id, done.schema_version, done.next_catalog_id, done.next_file_id) == (1, 1, 2, 2)
    table = lake.table("MAIN", "T", done.id)
    assert (table.id, table.qualified_name, table.schema, table.schema_version) == (
        *(1, "main.t", IV, 1),
    )
    files = lake.files(table, done.id).files
    assert [(f.id, f.record_count, f.row_id_start, f.begin_snapshot) for f in files] == [
        *((0, 2, 0, 1), (1, 1, 2, 1)),
    ]


def test_author_message_extra_and_also(lake: Catalog) -> None:
    seen: list[int] = []

    def note(connection: Connection, snapshot_id: int) -> None:
        connection.execute(text("CREATE TABLE penstock_test (snapshot_id BIGINT)"))
        seen.append(snapshot_id)

    new = staging.new_table(lake, "t", IV)
    done = lake.commit(
        lake.latest(),
        staging.change_set("t", create=new),
        author="me",
        message="m",
        extra="{}",
        on_commit=[note],
    )
    assert (done.author, done.message, done.extra) == ("me", "m", "{}")
    assert lake.snapshots()[-1] == done
    assert seen == [1]


def test_a_failing_also_takes_everything_back(lake: Catalog) -> None:
    def fail(connection: Connection, snapshot_id: int) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        lake.commit(
            lake.latest(),
            staging.change_set("t", create=staging.new_table(lake, "t", IV)),
            on_commit=[fail],
        )
    assert lake.latest().id == 0
    assert lake.find_table("main", "t", 0) is None


def test_nothing_to_commit(lake: Catalog) -> None:
    with pytest.raises(CommitError, match="nothing"):
        lake.commit(lake.latest(), ChangeSet())


def test_delete_files_follow_each_other(lake: Catalog) -> None:
    first = staging.create(lake, "t", IV, rows(1, 2, 3))
    table = lake.table("main", "t", first.id)
    (file,) = lake.files(table, first.id).files
    for positions in ([0], [0, 2]):
        delete = staging.stage_deletes(table.path, file.path, positions)
        staging.change(lake, table, deletes={file.id or 0: delete})
    counts = []
    for at in (1, 2, 3):
        (file,) = lake.files(table, at).files
        counts.append(None if file.delete is None else file.delete.delete_count)
    assert counts == [None, 1, 2]
    assert lake.latest().changes == "deleted_from_table:1"


def test_ending_whole_files(lake: Catalog) -> None:
    first = staging.create(lake, "t", IV, rows(1), rows(2))
    table = lake.table("main", "t", first.id)
    staging.change(lake, table, end=(0,), add=(staging.stage(table.path, IV, rows(9)),))
    assert lake.latest().changes == "inserted_into_table:1,deleted_from_table:1"
    assert [f.id for f in lake.files(table, 1).files] == [0, 1]
    assert [f.id for f in lake.files(table, 2).files] == [1, 2]
    with pytest.raises(CommitConflict, match="no longer exist"):
        staging.change(lake, table, end=(0,))


def test_drop_and_create_in_one_commit(lake: Catalog) -> None:
    staging.create(lake, "t", IV, rows(1))
    new = staging.new_table(lake, "t", staging.columns(x="float64"))
    done = lake.commit(lake.latest(), staging.change_set("t", create=new, drops=1))
    assert done.changes == 'dropped_table:1,created_table:"main"."t"'
    assert lake.table("main", "t", 1).id == 1
    assert lake.table("main", "t", 2).id == 2
    assert lake.table("main", "t", 2).schema.names == ("x",)


def test_altering_keeps_old_snapshots(lake: Catalog) -> None:
    staging.create(lake, "t", IV, rows(1))
    table = lake.table("main", "t", 1)
    assert lake.next_column_id(table) == 3
    wider = assign_missing_ids(
        TableSchema((*IV.columns, Column("n", "int32", initial_default="4", default="4"))), 3
    )
    done = staging.change(lake, table, schema=wider)
    assert (done.changes, done.schema_version) == ("altered_table:1", 2)
    assert lake.table("main", "t", 2).schema == wider
    assert lake.table("main", "t", 1).schema == IV
    back = TableSchema((wider.columns[2], wider.columns[0]))
    staging.change(lake, lake.table("main", "t", 2), schema=back)
    assert lake.table("main", "t", 3).schema == back
    assert lake.table("main", "t", 3).schema_version == 3
    assert lake.next_column_id(table) == 4


def test_schemas_partitions_and_odd_names(lake: Catalog) -> None:
    new = staging.new_table(lake, 'o"d', IV, (PartitionField("v"),))
    file = staging.stage(new.path, IV, rows(1), partition_values=("v1",))
    changes = ChangeSet(("s,2",), (TableChange("S,2", 'o"d', create=new, add=(file,)),))
    done = lake.commit(lake.latest(), changes)
    assert done.changes == ('created_schema:"s,2",created_table:"s,2"."o""d",inserted_into_table:2')
    table = lake.table("s,2", 'O"D', done.id)
    assert (table.partition_id, table.partition_by) == (3, (PartitionField("v"),))
    (registered,) = lake.files(table, done.id).files
    assert (registered.path, registered.partition_id, registered.partition_values) == (
        file.path,
        3,
        ("v1",),
    )
    assert lake.schemas(done.id) == ["main", "s,2"]


def test_a_transform_that_is_not_known_is_not_written(lake: Catalog) -> None:
    new = staging.new_table(lake, "t", IV, (PartitionField("v", "truncate(3)"),))
    with pytest.raises(UnsupportedFeature, match=r"truncate"):
        lake.commit(lake.latest(), staging.change_set("t", create=new))
    assert lake.latest().id == 0


def test_names_that_are_not_there(lake: Catalog) -> None:
    staging.create(lake, "orders", IV)
    with pytest.raises(TableNotFound, match=r"did you mean main\.orders"):
        lake.table("main", "order", 1)
    with pytest.raises(SchemaNotFound, match="did you mean main"):
        lake.table("mian", "orders", 1)
    with pytest.raises(TableNotFound):
        lake.table("main", "orders", 0)


def test_lookup_by_version_and_time(lake: Catalog) -> None:
    for name in ("a", "b", "c"):
        staging.create(lake, name, IV)
    all_of_them = lake.snapshots()
    assert [lake.snapshot(At(timestamp=s.time)).id for s in all_of_them] == [0, 1, 2, 3]
    tick = dt.timedelta(microseconds=1)
    assert [lake.snapshot(At(timestamp=s.time - tick)).id for s in all_of_them[1:]] == [0, 1, 2]
    assert lake.snapshot(At(version=2)) == all_of_them[2]
    with pytest.raises(SnapshotNotFound, match="snapshots 0 to 3 remain"):
        lake.snapshot(At(timestamp=all_of_them[0].time - tick))
    with pytest.raises(SnapshotNotFound, match="snapshot 9 does not exist"):
        lake.snapshot(At(version=9))


def test_read_only(place: Place) -> None:
    place.open().close()
    with place.open(read_only=True) as lake:
        assert lake.latest().id == 0
        with pytest.raises(ReadOnlyLake):
            staging.create(lake, "t", IV)
        with pytest.raises(ReadOnlyLake), lake.writing():
            pass


def test_state_without_data(lake: Catalog) -> None:
    with lake.writing() as connection:
        connection.execute(text("CREATE TABLE penstock_x (a BIGINT)"))
        connection.execute(text("INSERT INTO penstock_x VALUES (:a)"), {"a": 5})
    with lake.reading() as connection:
        assert connection.execute(text("SELECT a FROM penstock_x")).scalar() == 5


def test_a_slice_that_is_replaced(lake: Catalog) -> None:
    """Rows that others put into it are a conflict, those that they put elsewhere are not."""
    new = staging.new_table(lake, "t", IV, (PartitionField("v"),))
    first = staging.stage(new.path, IV, rows(1), partition_values=("v1",))
    lake.commit(lake.latest(), staging.change_set("t", create=new, add=(first,)))
    base = lake.latest()
    table = lake.table("main", "t", base.id)

    def add(value: str, at: Snapshot) -> None:
        file = staging.stage(table.path, IV, rows(2), partition_values=(value,))
        staging.change(lake, table, at, add=(file,), replaces=(("v", value),))

    add("v2", base)
    add("v3", base)
    with pytest.raises(CommitConflict, match=r"changed rows of main\.t where v is v2") as caught:
        add("v2", base)
    assert caught.value.data["snapshot"] == base.id + 1
    add("v2", lake.latest())
