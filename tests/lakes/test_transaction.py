"""Several tables, one snapshot; what is staged, seen, published and removed."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from penstock.errors import (
    CommitConflict,
    QueryFailed,
    ReadOnlyLake,
    SchemaNotFound,
    TableNotFound,
)
from penstock.lakes.format.files import DataFile
from penstock.lakes.lake import Lake
from penstock.lakes.transaction import Transaction
from tests.lakes.conftest import Rows, table_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

KV = "k INT, v STRING"
Change = Callable[[Transaction, Rows], None]


def files_below(lake: Lake) -> set[Path]:
    return set(Path(lake.catalog.data_path).rglob("*.parquet"))


def test_tables_of_a_transaction_share_a_snapshot(lake: Lake, rows: Rows) -> None:
    with lake.transaction(author="me", message="load", extra='{"a": 1}') as tx:
        tx.create_schema("s")
        tx.create_schema("main")  # there already
        tx.table("a").append(rows(KV, [(1, "x")]))
        tx.table("s.b").append(rows(KV, [(2, "y")]))
    last = lake.snapshots()[-1]
    assert (last.id, last.author, last.message, last.extra) == (1, "me", "load", '{"a": 1}')
    assert lake.schemas() == ["main", "s"]
    assert [table.qualified_name for table in lake.tables()] == ["main.a", "s.b"]


def test_two_transactions_may_need_the_same_new_schema(lake: Lake, rows: Rows) -> None:
    with lake.transaction() as first, lake.transaction() as second:
        for tx, name in ((first, "S.a"), (second, "s.b")):
            tx.create_schema(name[0])
            tx.table(name).append(rows(KV, [(1, name)]))
        first.commit()
        second.commit()
    assert lake.schemas() == ["S", "main"]
    assert [table.qualified_name for table in lake.tables()] == ["S.a", "S.b"]
    assert table_of(lake.table("s.b").to_df()) == [(1, "s.b")]


def test_a_transaction_sees_its_own_changes(lake: Lake, rows: Rows) -> None:
    lake.table("t").append(rows(KV, [(1, "a"), (2, "b")]))
    with lake.transaction() as tx:
        table = tx.table("t")
        table.append(rows(KV, [(3, "c")]))
        table.merge(rows(KV, [(1, "z")]), ["k"])
        assert table_of(table.to_df()) == [(1, "z"), (2, "b"), (3, "c")]
        assert len(table_of(lake.table("t").to_df())) == 2
        assert tx.table("MAIN.T") is table
    assert table_of(lake.table("t").to_df()) == [(1, "z"), (2, "b"), (3, "c")]


def test_rollback_removes_files(lake: Lake, rows: Rows) -> None:
    lake.table("t").append(rows(KV, [(1, "a"), (2, "b")]))
    before = files_below(lake)
    tx = lake.transaction()
    tx.table("t").merge(rows(KV, [(1, "z"), (5, "n")]), ["k"])
    tx.table("u").append(rows(KV, [(1, "a")]))
    assert files_below(lake) > before
    tx.rollback()
    assert files_below(lake) == before
    assert tx.commit() is None


def test_an_error_inside_rolls_back(lake: Lake, rows: Rows) -> None:
    def fail() -> None:
        with lake.transaction() as tx:
            tx.table("t").append(rows(KV, [(1, "a")]))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert files_below(lake) == set()
    assert not lake.table("t").exists()


def test_a_call_that_fails_leaves_the_rest(lake: Lake, rows: Rows, spark: SparkSession) -> None:
    with lake.transaction() as tx:
        tx.table("t").append(rows(KV, [(1, "a")]))
        for table in ("t", "u"):
            with pytest.raises(QueryFailed):
                tx.table(table).append(spark.sql("SELECT int(1 / (id - 1)) AS k FROM range(3)"))
    assert table_of(lake.table("t").to_df()) == [(1, "a")]
    assert not lake.table("u").exists()
    assert len(files_below(lake)) == 1


def test_nothing_staged_is_no_snapshot(lake: Lake, rows: Rows) -> None:
    lake.table("t").append(rows(KV, [(1, "a")]))
    called: list[int] = []
    with lake.transaction() as tx:
        tx.on_commit(lambda connection, snapshot_id: called.append(snapshot_id))
        tx.table("t").append(rows(KV, []))
        assert tx.table("t").replace(rows(KV, [(1, "a")])).unchanged
    assert (called, len(lake.snapshots())) == ([], 2)


def test_also_runs_with_the_data(lake: Lake, rows: Rows) -> None:
    def write(connection: object, snapshot_id: int) -> None:
        connection.exec_driver_sql(f"CREATE TABLE mine AS SELECT {snapshot_id} AS id")  # type: ignore[attr-defined] # SQLAlchemy's

    with lake.transaction() as tx:
        tx.on_commit(write)
        tx.table("t").append(rows(KV, [(1, "a")]))
    with lake.catalog.reading() as connection:
        assert connection.exec_driver_sql("SELECT id FROM mine").scalar_one() == 1


def test_also_that_fails_undoes_the_data(lake: Lake, rows: Rows) -> None:
    def fail(connection: object, snapshot_id: int) -> None:
        raise ZeroDivisionError

    tx = lake.transaction()
    tx.on_commit(fail)
    tx.table("t").append(rows(KV, [(1, "a")]))
    with pytest.raises(ZeroDivisionError):
        tx.commit()
    tx.rollback()
    assert len(lake.snapshots()) == 1


def test_appends_do_not_conflict(lake: Lake, rows: Rows) -> None:
    lake.table("t").append(rows(KV, [(0, "a")]))
    transactions = [lake.transaction() for _ in range(3)]
    for at, tx in enumerate(transactions, start=1):
        tx.table("t").append(rows(KV, [(at, "b")]))
    threads = [threading.Thread(target=tx.commit) for tx in transactions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [row[0] for row in table_of(lake.table("t").to_df())] == [0, 1, 2, 3]


def replace(tx: Transaction, rows: Rows) -> None:
    tx.table("t").replace(rows(KV, [(9, "r")]))


def merge(tx: Transaction, rows: Rows) -> None:
    tx.table("t").merge(rows(KV, [(1, "m")]), ["k"])


def replace_slice(tx: Transaction, rows: Rows) -> None:
    tx.table("t").replace_slice(rows(KV, [(1, "s")]), "k", 1)


@pytest.mark.parametrize("mine", [merge, replace_slice])
@pytest.mark.parametrize("theirs", [replace, merge])
def test_changes_of_the_same_rows_conflict(
    lake: Lake, rows: Rows, mine: Change, theirs: Change
) -> None:
    lake.table("t").append(rows(KV, [(1, "a"), (2, "b")]))
    tx = lake.transaction()
    mine(tx, rows)
    with lake.transaction() as other:
        theirs(other, rows)
    before = table_of(lake.table("t").to_df())
    with pytest.raises(CommitConflict):
        tx.commit()
    assert table_of(lake.table("t").to_df()) == before
    known = {file.path for version in (1, 2) for file in _files(lake, version)}
    deletes = {path for path in files_below(lake) if "penstock_number" in str(path)}
    assert {str(path) for path in files_below(lake) - deletes} == known


ON_KEY = "MERGE INTO t USING (SELECT 1 AS k, 'a' AS v) AS s ON t.k = s.k"
FILLS: dict[str, Callable[[Transaction, DataFrame], object]] = {
    "slice": lambda tx, new: tx.table("t").replace_slice(new, "k", 1),
    "condition": lambda tx, new: tx.table("t").overwrite(new, "k = 1"),
    "whole": lambda tx, new: tx.table("t").replace(new),
    "merge": lambda tx, new: tx.table("t").merge(new, "k"),
    "merge in a slice": lambda tx, new: tx.table("t").merge(new, "v", slice=("k", 1)),
    "merge by a condition": lambda tx, new: (
        tx.table("t").merge_into(new, "t.k < s.k + 1").when_not_matched_insert_all().execute()
    ),
    "MERGE": lambda tx, _: tx.sql(
        f"{ON_KEY} WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    ),
    "MERGE with a condition": lambda tx, _: tx.sql(
        f"{ON_KEY} WHEN MATCHED AND s.v <> t.v THEN DELETE WHEN NOT MATCHED THEN INSERT *"
    ),
}
OTHER_ROWS = {"slice", "condition", "merge in a slice"}  # which such a fill leaves alone


@pytest.mark.parametrize("fill", FILLS)
def test_nothing_is_not_filled_twice(lake: Lake, rows: Rows, fill: str) -> None:
    """Two that fill the same nothing, by whatever means, would leave the rows of both."""
    first = [(2, "b")] if fill in OTHER_ROWS else []
    lake.table("t").append(rows(KV, first), partition_by=["k"] if first else [])
    tx = lake.transaction()
    FILLS[fill](tx, rows(KV, [(1, "a")]))
    with lake.transaction() as other:
        FILLS[fill](other, rows(KV, [(1, "a")]))
    with pytest.raises(CommitConflict, match=r"changed rows of main\.t"):
        tx.commit()
    assert table_of(lake.table("t").to_df()) == [(1, "a"), *first]


@pytest.mark.parametrize("fill", ["slice", "merge in a slice"])
def test_slices_are_filled_beside_each_other(lake: Lake, rows: Rows, fill: str) -> None:
    lake.table("t").replace_slice(rows(KV, [(2, "b")]), "k", 2)
    tx = lake.transaction()
    FILLS[fill](tx, rows(KV, [(1, "a")]))
    lake.table("t").replace_slice(rows(KV, [(3, "c")]), "k", 3)
    tx.commit()
    assert table_of(lake.table("t").to_df()) == [(1, "a"), (2, "b"), (3, "c")]


@pytest.mark.parametrize("change", ["delete", "update"])
def test_a_key_that_is_not_there_is_not_inserted_twice(lake: Lake, rows: Rows, change: str) -> None:
    """A change of rows that finds none, and an INSERT of them: the second one conflicts."""
    lake.table("t").append(rows(KV, [(1, "x")]))
    with lake.transaction() as first, lake.transaction() as second, lake.transaction() as third:
        for tx in (first, second, third):
            table = tx.table("t")
            _ = table.delete("k = 7") if change == "delete" else table.update({"v": "'y'"}, "k = 7")
            if tx is not third:
                table.append([{"k": 7, "v": "a"}])
        first.commit()
        with pytest.raises(CommitConflict, match=r"changed rows of main\.t"):
            second.commit()
        assert third.commit() is None
    assert table_of(lake.table("t").to_df()) == [(1, "x"), (7, "a")]


def _files(lake: Lake, version: int) -> list[DataFile]:
    info = lake.catalog.table("main", "t", version)
    return list(lake.catalog.files(info, version).files)


def test_tables_and_schemas_that_are_not_there(lake: Lake, rows: Rows) -> None:
    tx = lake.transaction()
    assert not tx.table("t").exists
    with pytest.raises(TableNotFound, match=r"table main\.t does not exist yet"):
        tx.table("t").to_df()
    with pytest.raises(SchemaNotFound, match="'nope'"):
        tx.table("nope.t").append(rows(KV, [(1, "a")]))
    tx.rollback()


def test_a_read_only_lake(lake: Lake, rows: Rows) -> None:
    with Lake.attach(lake.catalog.uri, read_only=True) as other, pytest.raises(ReadOnlyLake):
        other.transaction()
