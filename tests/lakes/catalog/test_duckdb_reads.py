"""What we commit, DuckDB reads: every snapshot, row ids and the feed of changes.

Tests ``lakes/catalog/commits/writes.py``, ``lakes/catalog/commit_context.py``.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from penstock.lakes.catalog.catalog import Catalog
from penstock.lakes.format.files import PartitionField
from penstock.lakes.format.partitioning import hive_directory
from penstock.lakes.format.schema import Column, TableSchema, assign_ids, assign_missing_ids
from tests import duck
from tests.lakes.catalog import staging
from tests.lakes.catalog.conftest import Place

IV = staging.columns(id="int64", v="varchar")


def rows(*ids: int, v: str = "v") -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "v": [f"{v}{i}" for i in ids]})


def at(place: Place, version: int, what: str = "rowid, id, v", table: str = "t") -> list[Any]:
    return duck.rows(place.uri, f"SELECT {what} FROM {table} AT (VERSION => {version})")


def history(place: Place, first: int, last: int) -> list[Any]:
    query = f"SELECT * FROM lk.table_changes('t', {first}, {last})"
    return duck.rows(place.uri, query)


def merged(lake: Catalog) -> None:
    """Snapshots 1 to 4: five rows; one deleted; one updated; the first file ended."""
    staging.create(lake, "t", IV, rows(0, 1, 2, 3), rows(10))
    table = lake.table("main", "t", 1)
    first, _ = lake.files(table, 1).files
    staging.change(lake, table, deletes={0: staging.stage_deletes(table.path, first.path, [1])})
    update = staging.stage(table.path, IV, rows(3, v="new"), row_ids=[3])
    deletes = {0: staging.stage_deletes(table.path, first.path, [1, 3])}
    staging.change(lake, table, deletes=deletes, add=(update,))
    staging.change(lake, table, end=(0,), add=(staging.stage(table.path, IV, rows(50)),))


def test_every_snapshot_and_row_id(place: Place) -> None:
    with place.open() as lake:
        merged(lake)
    first = [(0, 0, "v0"), (1, 1, "v1"), (2, 2, "v2"), (3, 3, "v3"), (4, 10, "v10")]
    assert at(place, 1) == first
    assert at(place, 2) == [first[0], *first[2:]]
    assert at(place, 3) == [first[0], first[2], (3, 3, "new3"), first[4]]
    assert at(place, 4) == [(3, 3, "new3"), (4, 10, "v10"), (6, 50, "v50")]


def test_changes_of_each_snapshot(place: Place) -> None:
    with place.open() as lake:
        merged(lake)
    assert len(history(place, 1, 1)) == 5
    assert history(place, 2, 2) == [(2, 1, "delete", 1, "v1")]
    assert history(place, 3, 3) == [
        *((3, 3, "update_postimage", 3, "new3"), (3, 3, "update_preimage", 3, "v3")),
    ]
    assert history(place, 4, 4) == [
        *((4, 0, "delete", 0, "v0"), (4, 2, "delete", 2, "v2"), (4, 6, "insert", 50, "v50")),
    ]


def test_duckdb_goes_on_where_we_stopped(place: Place) -> None:
    with place.open() as lake:
        merged(lake)
        before = [at(place, version) for version in range(1, 5)]
        with duck.attach(place.uri) as theirs:
            theirs.execute("DELETE FROM t WHERE id = 10")
            theirs.execute("UPDATE t SET v = 'zz' WHERE id = 50")
            theirs.execute("INSERT INTO t VALUES (7, 'seven')")
        assert [at(place, version) for version in range(1, 5)] == before
        assert at(place, 7) == [(3, 3, "new3"), (6, 50, "zz"), (8, 7, "seven")]
        staging.append(lake, "t", rows(99))
        assert (9, 99, "v99") in at(place, 8)
        assert lake.latest().id == 8


def test_duckdb_deletes_more_of_a_file_that_we_deleted_from(place: Place) -> None:
    with place.open() as lake:
        staging.create(lake, "t", IV, rows(0, 1, 2, 3))
        table = lake.table("main", "t", 1)
        (file,) = lake.files(table, 1).files
        staging.change(lake, table, deletes={0: staging.stage_deletes(table.path, file.path, [1])})
        with duck.attach(place.uri) as theirs:
            theirs.execute("DELETE FROM t WHERE id = 2")
        (file,) = lake.files(table, 3).files
        assert file.delete is not None
        assert file.delete.partial_max == 3
    states = [[r[1] for r in at(place, version)] for version in (1, 2, 3)]
    assert states == [[0, 1, 2, 3], [0, 2, 3], [0, 3]]


def test_drop_and_create(place: Place) -> None:
    with place.open() as lake:
        staging.create(lake, "t", IV, rows(1))
        schema = staging.columns(x="float64")
        new = staging.new_table(lake, "t", schema)
        file = staging.stage(new.path, schema, pa.table({"x": [2.5]}))
        lake.commit(lake.latest(), staging.change_set("t", create=new, drops=1, add=(file,)))
    assert at(place, 1) == [(0, 1, "v1")]
    assert at(place, 2, "*") == [(2.5,)]


def test_partition_values_prune_rightly(place: Place) -> None:
    with place.open() as lake:
        new = staging.new_table(lake, "t", IV, (PartitionField("v"),))
        files = []
        for data, value in ((rows(1), "v1"), (rows(2), "v2")):
            path = new.path + hive_directory(["v"], [value])
            files.append(staging.stage(path, IV, data, partition_values=(value,)))
        lake.commit(lake.latest(), staging.change_set("t", create=new, add=tuple(files)))
        with duck.attach(place.uri) as theirs:
            theirs.execute("INSERT INTO t VALUES (5, 'a/b =ç'), (6, NULL)")
        table = lake.table("main", "t", 2)
        values = [f.partition_values for f in lake.files(table, 2).files]
        assert values == [("v1",), ("v2",), ("a/b =ç",), (None,)]
    assert duck.rows(place.uri, "SELECT id FROM t WHERE v = 'v2'") == [(2,)]
    assert duck.rows(place.uri, "SELECT id FROM t WHERE v > 'v1' OR v IS NULL") == [(2,), (6,)]


def test_altered_columns(place: Place) -> None:
    with place.open() as lake:
        schema = staging.columns(a="int32", b="varchar")
        data = pa.table({"a": pa.array([1], pa.int32()), "b": ["x"]})
        staging.create(lake, "t", schema, data)
        table = lake.table("main", "t", 1)
        wide = Column("a", "int64", id=1)
        added = Column("c", "int32", initial_default="4", default="4")
        altered = assign_missing_ids(TableSchema((wide, Column("bb", "varchar", 2), added)), 3)
        more = pa.table({"a": pa.array([5_000_000_000]), "bb": ["y"], "c": pa.array([9], "int32")})
        file = staging.stage(table.path, altered, more)
        staging.change(lake, table, schema=altered, add=(file,))
    assert at(place, 1, "*") == [(1, "x")]
    assert at(place, 2, "a, bb, c") == [(1, "x", 4), (5_000_000_000, "y", 9)]
    assert duck.rows(place.uri, "SELECT a FROM t WHERE c = 4") == [(1,)]
    assert duck.rows(place.uri, "SELECT count(*), max(c), min(a) FROM t") == [(2, 9, 1)]


def nested() -> TableSchema:
    element = Column("element", "int64")
    entries = (Column("key", "varchar"), Column("value", "int32"))
    inner = Column("xs", "list", children=(Column("element", "int64"),))
    return assign_ids(
        TableSchema(
            (
                Column("l", "list", children=(element,)),
                Column("m", "map", children=entries),
                Column("s", "struct", children=(Column("x", "int64"), inner)),
            )
        )
    )


NESTED_ROW = {
    "l": [[1, 2, None]],
    "m": pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int32())),
    "s": [{"x": 1, "xs": [7]}],
}


def test_name_mapping_for_files_without_ids(place: Place) -> None:
    with place.open() as lake:
        new = staging.new_table(lake, "t", nested())
        data = pa.table(NESTED_ROW)
        file = staging.stage(new.path, nested(), data, ids=False, uses_mapping=True)
        lake.commit(lake.latest(), staging.change_set("t", create=new, add=(file,)))
        table = lake.table("main", "t", 1)
        again = staging.stage(new.path, nested(), data, ids=False, uses_mapping=True)
        staging.change(lake, table, add=(again,))
        listed = lake.files(table, 2)
        assert {f.mapping_id for f in listed.files} == {0}
        fields = listed.mappings[0].fields
        assert fields["l",] == 1
        assert fields["l", "list"] == 2
        assert fields["m", "key"] == 4
        assert fields["s", "xs", "list"] == 9
        assert [s.column_id for s in file.stats] == [2, 4, 5, 7, 9]
    row = ([1, 2, None], {"k": 1}, {"x": 1, "xs": [7]})
    assert at(place, 2, "*") == [row, row]


@pytest.mark.parametrize("nan", [None, frozenset({1})])
def test_unknown_bounds_stay_unknown_after_duckdb_inserts(
    place: Place, nan: frozenset[int] | None
) -> None:
    """Else DuckDB would take the bounds of its own rows for those of the table."""
    with place.open() as lake:
        schema = staging.columns(x="float64", i="int64")
        new = staging.new_table(lake, "t", schema)
        data = pa.table({"x": [1.0, float("nan"), 500.0], "i": [1, None, 500]})
        file = staging.stage(new.path, schema, data, nan=nan)
        lake.commit(lake.latest(), staging.change_set("t", create=new, add=(file,)))
    with duck.attach(place.uri) as theirs:
        theirs.execute("INSERT INTO t VALUES (5, 5)")
    assert duck.rows(place.uri, "SELECT i FROM t WHERE i > 100") == [(500,)]
    assert duck.rows(place.uri, "SELECT count(*) FROM t WHERE x = 500") == [(1,)]
    assert duck.rows(place.uri, "SELECT count(*) FROM t WHERE i IS NULL") == [(1,)]
