"""Replacing, merging and evolving tables of which the catalog itself holds rows and deletes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from penstock.lakes.lake import Lake
from penstock.lakes.limits import Limits
from penstock.lakes.table import Table
from tests import duck
from tests.lakes.conftest import Rows

pytestmark = pytest.mark.spark

KDV = "k INT, d STRING, v STRING"


@pytest.fixture
def mixed(lake: Lake) -> Lake:
    """Days a and b, in a file and inlined; one row of the file is deleted there."""
    with duck.attach(lake.catalog.uri, inline=10) as con:
        con.execute("CREATE TABLE t(k INT, d VARCHAR, v VARCHAR)")
        con.execute("INSERT INTO t SELECT i, if(i % 2 = 0, 'a', 'b'), 'f' FROM range(12) s(i)")
        con.execute("INSERT INTO t VALUES (100, 'a', 'i'), (101, 'b', 'i')")
        con.execute("DELETE FROM t WHERE k = 0")
    return lake


def rows_of(lake: Lake) -> list[tuple[Any, ...]]:
    return duck.rows(lake.catalog.uri, "SELECT k, d, v FROM t ORDER BY k", order=False)


def feed(lake: Lake) -> list[tuple[Any, ...]]:
    """Changes of the last snapshot: what kind, and which row."""
    at = lake.catalog.latest().id
    query = f"FROM lk.table_changes('t', {at}, {at}) SELECT change_type, k"
    return duck.rows(lake.catalog.uri, query)


def test_replace(mixed: Lake, rows: Rows) -> None:
    result = mixed.table("t").replace(rows(KDV, [(1, "a", "new")]))
    assert result.staged.rows_deleted == 13
    assert rows_of(mixed) == [(1, "a", "new")]
    deleted = [("delete", k) for k in (*range(1, 12), 100, 101)]
    assert feed(mixed) == sorted([*deleted, ("insert", 1)], key=repr)


def test_the_same_rows_again_change_nothing(mixed: Lake) -> None:
    assert mixed.table("t").replace(mixed.table("t").to_df()).snapshot is None


def test_replace_slice(mixed: Lake, rows: Rows) -> None:
    result = mixed.table("t").replace_slice(rows(KDV, [(1, "b", "new")]), "d", "b")
    assert result.staged.rows_deleted == 7
    assert rows_of(mixed) == [
        (1, "b", "new"),
        *((k, "a", "f") for k in range(2, 12, 2)),
        (100, "a", "i"),
    ]
    assert ("delete", 0) not in feed(mixed)


@pytest.mark.parametrize("at_once", [2_000_000, -1], ids=["small", "large"])
def test_merge(mixed: Lake, rows: Rows, at_once: int) -> None:
    mixed.limits = Limits(compared_rows=at_once)
    source = rows(KDV, [(0, "a", "back"), (3, "b", "u"), (100, "a", "u"), (101, "b", "u")])
    staged = mixed.table("t").merge(source, ["k"]).staged
    assert (staged.rows_updated, staged.rows_inserted, staged.slice_rows) == (3, 1, 14)
    pairs = ("update_preimage", "update_postimage")
    wanted = [("insert", 0), *((kind, k) for kind in pairs for k in (3, 100, 101))]
    assert feed(mixed) == sorted(wanted, key=repr)
    ids = duck.rows(mixed.catalog.uri, "SELECT rowid, k FROM t WHERE v = 'u'")
    assert ids == [(12, 100), (13, 101), (3, 3)]


def test_merge_of_a_slice(mixed: Lake, rows: Rows) -> None:
    with mixed.transaction() as tx:
        source = rows("k INT, v STRING", [(100, "u"), (101, "new")])
        staged = tx.table("t").merge(source, ["k"], slice=("d", "a"))
    assert (staged.rows_updated, staged.rows_inserted, staged.slice_rows) == (1, 1, 7)


def test_evolve(mixed: Lake, rows: Rows) -> None:
    with mixed.transaction() as tx:
        table = tx.table("t")
        source = rows(f"{KDV}, n DOUBLE", [(100, "a", "u", 1.5), (1, "b", "u", 2.5)])
        table.evolve(source)
        table.merge(source, ["k"])
    values = duck.rows(mixed.catalog.uri, "SELECT k, v, n FROM t WHERE k IN (1, 2, 100, 101)")
    assert values == [(1, "u", 2.5), (100, "u", 1.5), (101, "i", None), (2, "f", None)]


def twice(table: Table, stage: Callable[[Any], Any]) -> None:
    with table.begin() as tx:
        stage(tx.table("t"))


def test_a_merge_over_what_the_transaction_wrote(mixed: Lake, rows: Rows) -> None:
    def stage(table: Any) -> None:
        table.append(rows(KDV, [(200, "a", "new"), (201, "a", "new")]))
        table.merge(rows(KDV, [(200, "a", "u"), (2, "a", "u"), (100, "a", "u")]), ["k"])
        table.merge(rows(KDV, [(200, "a", "w"), (2, "a", "w"), (100, "a", "w")]), ["k"])

    twice(mixed.table("t"), stage)
    assert [row for row in rows_of(mixed) if row[2] not in "fi"] == [
        *[(2, "a", "w"), (100, "a", "w"), (200, "a", "w"), (201, "a", "new")]
    ]
    assert {row for row in feed(mixed) if row[1] >= 200} == {("insert", 200), ("insert", 201)}
