"""Names inside one transaction: what was created, renamed, dropped is seen so at once.

Tests ``lakes/candidate/staged.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from penstock.errors import (
    ArgumentError,
    CommitConflict,
    NameTaken,
    SchemaNotFound,
    TableNotFound,
    UnsupportedFeature,
)
from penstock.lakes import alter
from penstock.lakes.format.files import PartitionField
from penstock.lakes.format.objects import SortKey
from penstock.lakes.format.schema import Column, TableSchema
from penstock.lakes.lake import Lake
from penstock.lakes.rows.append import append_rows
from penstock.lakes.transaction import Transaction
from penstock.sql.macros import MacroForm
from tests import duck

T = TableSchema((Column("a", "int32"), Column("b", "varchar")))
FORM = [MacroForm("scalar", "duckdb", "1")]


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    uri = f"ducklake:sqlite:{tmp_path / 'meta.sqlite'}"
    with Lake.attach(uri, data_path=str(tmp_path / "data")) as attached:
        with attached.transaction() as transaction:
            for name in ("t", "u"):
                append_rows(transaction.create_table(name, T), [{"a": 1, "b": name}])
            transaction.create_view("v", "SELECT 1 AS one")
        yield attached


def names(lake: Lake) -> list[str]:
    return [table.qualified_name for table in lake.tables()]


def rows(lake: Lake, query: str) -> list[tuple[object, ...]]:
    return duck.rows(lake.catalog.uri, query)


def test_two_tables_swap_their_names(lake: Lake) -> None:
    with lake.transaction() as transaction:
        transaction.rename_table("t", "x")
        transaction.rename_table("u", "t")
        transaction.table("x").rename("u")
        assert transaction.kind_of("x") is None
    assert names(lake) == ["main.t", "main.u"]
    assert rows(lake, "SELECT * FROM t") == [(1, "u")]


def test_a_dropped_name_is_given_anew_and_rows_go_along(lake: Lake) -> None:
    with lake.transaction() as transaction:
        transaction.drop_table("t")
        assert transaction.kind_of("t") is None
        transaction.rename_table("u", "t")
        table = transaction.table("t")
        table.alter(alter.add_column(table.schema, (), Column("c", "int32", default="7")))
        append_rows(table, [{"a": 2, "b": "new", "c": 8}])
        transaction.create_table("u", T)
    assert rows(lake, "SELECT * FROM t") == [(1, "u", 7), (2, "new", 8)]
    assert rows(lake, "SELECT count(*) FROM u") == [(0,)]


def test_what_is_created_and_dropped_again_makes_no_snapshot(lake: Lake) -> None:
    before = lake.catalog.latest()
    transaction = lake.transaction()
    transaction.create_schema("s")
    append_rows(transaction.create_table("s.n", T), [{"a": 1, "b": "x"}])
    transaction.create_view("s.w", "SELECT 1")
    transaction.create_macro("s.m", FORM)
    transaction.drop_schema("s", cascade=True)
    assert transaction.commit() is None
    assert lake.catalog.latest() == before


def test_a_schema_is_dropped_with_all_in_it_and_made_again(lake: Lake) -> None:
    with lake.transaction() as transaction:
        transaction.create_schema("s")
        transaction.create_table("s.n", T)
        transaction.create_view("s.w", "SELECT 1")
    with lake.transaction() as transaction:
        with pytest.raises(ArgumentError, match=r"not empty: s\.n, s\.w"):
            transaction.drop_schema("s")
        transaction.drop_schema("S", cascade=True)
        with pytest.raises(SchemaNotFound):
            transaction.create_table("s.n", T)
        transaction.create_schema("s")
        assert transaction.kind_of("s.w") is None
        transaction.create_view("s.n", "SELECT 2 AS two")
    assert rows(lake, "SELECT * FROM s.n") == [(2,)]
    assert names(lake) == ["main.t", "main.u"]


@pytest.mark.parametrize("name", ["t", "V"])
def test_tables_and_views_share_their_names(lake: Lake, name: str) -> None:
    transaction = lake.transaction()
    with pytest.raises(NameTaken, match="already"):
        transaction.create_table(name, T)
    with pytest.raises(NameTaken, match="already"):
        transaction.create_view(name, "SELECT 1")
    with pytest.raises(NameTaken, match="already"):
        transaction.rename_table("u", name)
    assert transaction.kind_of(name) is not None


def test_what_is_of_another_kind_is_not_found(lake: Lake) -> None:
    transaction = lake.transaction()
    with pytest.raises(TableNotFound, match="it is a view"):
        transaction.drop_table("v", if_exists=True)
    with pytest.raises(TableNotFound, match="it is a table"):
        transaction.drop_view("t")
    with pytest.raises(TableNotFound, match=r"did you mean|table main\.tt does not exist"):
        transaction.drop_table("tt")
    transaction.drop_table("tt", if_exists=True)


def test_keys_of_the_layout_are_not_dropped_and_follow_renames(lake: Lake) -> None:
    with lake.transaction() as transaction:
        table = transaction.table("t")
        table.set_partitioning([PartitionField("a")])
        table.set_sorting([SortKey("lower(b)")])
    with lake.transaction() as transaction:
        table = transaction.table("t")
        for name, doing in (("a", "partitioned"), ("b", "sorted")):
            with pytest.raises(UnsupportedFeature, match=f"is {doing} by column"):
                table.alter(alter.drop_column(table.schema, (name,)))
        table.alter(alter.rename_column(table.schema, ("b",), "order"))
        table.alter(alter.rename_column(table.schema, ("a",), "A b"))
        assert table.candidate.partition_by == (PartitionField("A b"),)
        assert table.sort_keys()[0].expression == 'LOWER("order")'
    append = "INSERT INTO t SELECT i % 2, 'x' FROM range(30) r(i)"
    connection = duck.attach(lake.catalog.uri)
    connection.execute(append)  # DuckDB partitions and sorts by the new names
    connection.close()
    assert len(lake.table("t").list_files()) == 2


def test_ids_of_columns_are_never_given_twice(lake: Lake) -> None:
    with lake.transaction() as transaction:
        table = transaction.table("t")
        table.alter(alter.add_column(table.schema, (), Column("c", "int32")))
        table.alter(alter.drop_column(table.schema, ("c",)))
        table.alter(alter.add_column(table.schema, (), Column("d", "int32")))
        assert table.schema.columns[-1].id == 4


def test_others_that_came_first_are_told_of(lake: Lake) -> None:
    mine = lake.transaction()
    mine.comment_on_table("t", "mine")
    with lake.transaction(author="ann", message="new column") as theirs:
        table = theirs.table("t")
        table.alter(alter.add_column(table.schema, (), Column("c", "int32")))
    with pytest.raises(CommitConflict, match=r"by ann \('new column'\).*altered main\.t") as caught:
        mine.commit()
    assert caught.value.data["author"] == "ann"


def test_a_name_that_others_took_meanwhile_is_a_conflict(lake: Lake) -> None:
    mine, other = lake.transaction(), lake.transaction()
    mine.rename_table("t", "n")
    other.create_view("N", "SELECT 1")
    other.commit()
    with pytest.raises(CommitConflict, match=r"gave the name n, which is wanted for main\.t"):
        mine.commit()


def _add_column(transaction: Transaction) -> None:
    table = transaction.table("t")
    table.alter(alter.add_column(table.schema, (), Column("c", "int32")))


Act = Callable[[Transaction], object]
ACTS: dict[str, Act] = {
    "insert": lambda tx: append_rows(tx.table("t"), [{"a": 2, "b": "x"}]),
    "add column": _add_column,
    "drop": lambda tx: tx.drop_table("t"),
    "rename": lambda tx: tx.rename_table("t", "other"),
    "drop view": lambda tx: tx.drop_view("v"),
    "rename view": lambda tx: tx.rename_view("v", "other_v"),
}
RENAMES: dict[str, Act] = {
    "table": lambda tx: tx.rename_table("t", "n"),
    "view": lambda tx: tx.rename_view("v", "n"),
}


@pytest.mark.parametrize("other", ACTS)
@pytest.mark.parametrize("rename_first", [True, False])
def test_a_rename_excludes_other_changes(lake: Lake, other: str, rename_first: bool) -> None:
    rename, act = RENAMES["view" if "view" in other else "table"], ACTS[other]
    first, second = lake.transaction(), lake.transaction()
    for transaction, change in ((first, rename), (second, act)):
        change(transaction)
    quick, late = (first, second) if rename_first else (second, first)
    quick.commit()
    with pytest.raises(CommitConflict, match=r"renamed|altered|dropped|changed rows of"):
        late.commit()


@pytest.mark.parametrize("mine", ["insert", "drop", "rename", "rename view"])
def test_a_rename_by_duckdb_excludes_other_changes(lake: Lake, mine: str) -> None:
    transaction = lake.transaction()
    ACTS[mine](transaction)
    kind, name = ("VIEW", "v") if "view" in mine else ("TABLE", "t")
    with duck.attach(lake.catalog.uri) as connection:
        connection.execute(f"ALTER {kind} {name} RENAME TO theirs")
    with pytest.raises(CommitConflict, match="renamed"):
        transaction.commit()


def test_a_name_of_another_table_hinders_nobody(lake: Lake) -> None:
    mine = lake.transaction()
    append_rows(mine.table("t"), [{"a": 2, "b": "x"}])
    with lake.transaction() as theirs:
        theirs.rename_table("u", "n")
    assert mine.commit() is not None


def test_columns_become_required_where_they_have_no_nulls(lake: Lake) -> None:
    with lake.transaction() as transaction:
        table = transaction.table("t")
        table.alter(alter.set_nullable(table.schema, ("a",), False))
    assert not lake.table("t").schema.columns[0].nullable
    nullable = "SELECT is_nullable FROM (DESCRIBE t) d(n, t, is_nullable, k, d, e) WHERE n = 'a'"
    assert rows(lake, nullable) == [("NO",)]
