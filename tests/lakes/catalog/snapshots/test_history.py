"""Has a table, or one partition of it, changed since a snapshot?"""

from __future__ import annotations

import pyarrow as pa
import pytest

from penstock.lakes.catalog.catalog import Catalog
from penstock.lakes.format.files import DataFile, PartitionField, Table
from penstock.lakes.format.schema import Column, TableSchema, assign_missing_ids
from tests import duck
from tests.lakes.catalog import staging
from tests.lakes.catalog.conftest import Place

IV = staging.columns(id="int64", v="varchar")


def part(directory: str, value: str | None, *, partitioned: bool = True) -> DataFile:
    data = pa.table({"id": [1], "v": pa.array([value], pa.string())})
    values = (value,) if partitioned else None
    return staging.stage(directory, IV, data, partition_values=values)


@pytest.fixture
def table(lake: Catalog) -> Table:
    """Snapshot 1: partitions a (file 0), b (file 1) and NULL (file 2)."""
    new = staging.new_table(lake, "t", IV, (PartitionField("v"),))
    files = tuple(part(new.path, value) for value in ("a", "b", None))
    lake.commit(lake.latest(), staging.change_set("t", create=new, add=files))
    return lake.table("main", "t", 1)


def changed(lake: Catalog, table: Table, since: int = 1) -> list[str | None]:
    """The partitions that changed, as far as it is known."""
    return [v for v in ("a", "b", None) if lake.changed_since(table, since, ("V", v))]


def test_nothing_changed(lake: Catalog, table: Table) -> None:
    staging.create(lake, "other", IV)
    assert not lake.changed_since(table, 1)
    assert lake.changed_since(table, 0)
    assert changed(lake, table) == []


def test_an_append_to_one_partition(lake: Catalog, table: Table) -> None:
    staging.change(lake, table, add=(part(table.path, "a"),))
    assert lake.changed_since(table, 1)
    assert changed(lake, table) == ["a"]
    assert changed(lake, table, since=2) == []


def test_an_end_and_a_delete(lake: Catalog, table: Table) -> None:
    staging.change(lake, table, end=(1,))
    delete = staging.stage_deletes(table.path, "x", [0])
    staging.change(lake, table, deletes={2: delete})
    assert changed(lake, table) == ["b", None]
    assert changed(lake, table, since=2) == [None]


def test_files_without_the_partition_may_hold_anything(lake: Catalog, table: Table) -> None:
    staging.change(lake, table, add=(part(table.path, "a", partitioned=False),))
    assert changed(lake, table) == ["a", "b", None]


def test_other_columns_and_dropped_tables(lake: Catalog, table: Table) -> None:
    wider = assign_missing_ids(TableSchema((*IV.columns, Column("n", "int32"))), 3)
    staging.change(lake, table, schema=wider)
    assert changed(lake, table) == ["a", "b", None]
    assert changed(lake, table, since=2) == []
    again = staging.new_table(lake, "t", IV)
    lake.commit(lake.latest(), staging.change_set("t", create=again, drops=table.id))
    assert lake.changed_since(table, 2)


def test_a_value_is_data(lake: Catalog, table: Table) -> None:
    assert not lake.changed_since(table, 1, ("v", "x' OR '1'='1"))
    assert not lake.changed_since(table, 1, ("nope", "a"))


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO t VALUES (1)",
        "DELETE FROM t WHERE i = 3",
        "UPDATE t SET i = 99 WHERE i = 3",
        "ALTER TABLE t ADD COLUMN k INT",
    ],
)
@pytest.mark.parametrize("inline", [0, 10])
def test_what_duckdb_did(place: Place, statement: str, inline: int) -> None:
    with duck.attach(place.uri, place.data_path, inline=inline) as theirs:
        theirs.execute("CREATE TABLE t AS SELECT range AS i FROM range(50)")
        theirs.execute("DELETE FROM t WHERE i = 1")
    with place.open() as lake:
        assert not lake.changed_since(lake.table("main", "t", 2), 2)
    with duck.attach(place.uri, place.data_path, inline=inline) as theirs:
        theirs.execute(statement)
    with place.open() as lake:
        assert lake.changed_since(lake.table("main", "t", 2), 2)


def test_a_snapshot_that_has_expired_tells_nothing(place: Place) -> None:
    with duck.attach(place.uri, place.data_path) as theirs:
        theirs.execute("CREATE TABLE t (i INT)")
        theirs.execute("CREATE TABLE u (i INT)")
        theirs.execute("CALL ducklake_expire_snapshots('lk', versions => [1])")
    with place.open() as lake:
        assert lake.changed_since(lake.table("main", "t", 2), 1)
        assert not lake.changed_since(lake.table("main", "t", 2), 2)
