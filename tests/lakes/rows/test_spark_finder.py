"""Rows deleted and updated by place, as DuckDB sees them: rows, row ids, change feed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from penstock.errors import MergeKeyError
from penstock.lakes.lake import Lake
from penstock.lakes.limits import Limits
from penstock.lakes.reading.scan import Scan
from penstock.lakes.rows.change import Condition, RowChange
from penstock.lakes.rows.engine import stage
from penstock.lakes.rows.route import facts_of
from penstock.lakes.rows.spark_finder import find_updated, rows_of, target_rows
from penstock.lakes.transaction import Transaction, TransactionTable
from tests import duck
from tests.lakes.conftest import Rows, table_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark


def selected(table: TransactionTable, query: Callable[[DataFrame], DataFrame]) -> Condition:
    """What Spark selects: a text might be computed by Arrow."""

    def select(source: Scan) -> DataFrame:
        return query(rows_of(table, source))

    return Condition(selected=select, once=False)


def delete(tx: Transaction, where: str) -> Any:
    table = tx.table("t")
    return stage(table, RowChange.delete(selected(table, lambda rows: rows.where(where))))


def update(tx: Transaction, where: str, value: str) -> Any:
    """Set ``v``."""
    table = tx.table("t")
    match = selected(
        table, lambda rows: rows.where(where).selectExpr("* EXCEPT (v)", f"{value} AS v")
    )
    return stage(table, RowChange.update(match, None))


def feed(lake: Lake, first: int) -> list[tuple[Any, ...]]:
    """Changes by DuckDB: row id, kind and values."""
    uri = lake.catalog.uri
    last = lake.catalog.latest().id
    query = f"SELECT rowid, change_type, k, v FROM table_changes('t', {first}, {last})"
    return duck.rows(
        uri,
        f"FROM lk.{query[query.index('table_changes') :]}".replace(
            "FROM ", "SELECT rowid, change_type, k, v FROM ", 1
        ),
    )


def ids(lake: Lake) -> list[tuple[Any, ...]]:
    return duck.rows(lake.catalog.uri, "SELECT rowid, k, v FROM t")


@pytest.fixture
def filled(lake: Lake, rows: Rows) -> Lake:
    for first in (0, 3):
        lake.table("t").append(
            rows("k INT, v STRING", [(first + at, "a") for at in range(3)]).coalesce(1)
        )
    return lake


@pytest.fixture(params=[(2_000_000, 64), (2_000_000, 0), (0, 64)], ids=["driver", "names", "spark"])
def by(request: pytest.FixtureRequest, lake: Lake) -> None:
    """The driver writes updated rows, found by numbers or by names, or Spark does, as of many."""
    values, files = request.param
    lake.limits = Limits(collected_values=values, numbered_files=files)


@pytest.mark.usefixtures("by")
def test_deletes_and_updates(filled: Lake) -> None:
    with filled.transaction() as tx:
        assert delete(tx, "k IN (0, 3, 4, 5)").rows_deleted == 4
    with filled.transaction() as tx:
        assert update(tx, "k = 2", "'b'").rows_updated == 1
    assert ids(filled) == [(1, 1, "a"), (2, 2, "b")]
    assert feed(filled, 3) == [
        *[(at, "delete", at, "a") for at in (0,)],
        (2, "update_postimage", 2, "b"),
        (2, "update_preimage", 2, "a"),
        *[(at, "delete", at, "a") for at in (3, 4, 5)],
    ]


def test_nothing_touched_is_nothing_staged(filled: Lake) -> None:
    before = filled.catalog.latest().id
    with filled.transaction() as tx:
        assert delete(tx, "k > 100").unchanged
        assert update(tx, "k > 100", "'b'").unchanged
    assert filled.catalog.latest().id == before


@pytest.mark.usefixtures("by")
def test_rows_of_the_same_transaction(filled: Lake, rows: Rows) -> None:
    """Each change sees those before it, and the snapshot tells their net effect."""
    with filled.transaction() as tx:
        tx.table("t").append(rows("k INT, v STRING", [(6, "n"), (7, "n"), (8, "n")]))
        update(tx, "k IN (2, 6)", "'b'")
        update(tx, "k IN (1, 2, 7)", "'c'")
        delete(tx, "k IN (1, 8)")
        assert table_of(tx.table("t").to_df().where("k in (1, 2) OR k > 5")) == [
            (2, "c"),
            (6, "b"),
            (7, "c"),
        ]
    found = feed(filled, 3)
    assert [row for row in found if row[0] < 6] == [
        (1, "delete", 1, "a"),
        (2, "update_postimage", 2, "c"),
        (2, "update_preimage", 2, "a"),
    ]
    assert [row[1:] for row in found if row[0] >= 6] == [("insert", 6, "b"), ("insert", 7, "c")]


def test_several_new_values_for_a_row(filled: Lake, spark: SparkSession) -> None:
    with filled.transaction() as tx:
        table = tx.table("t")
        match = selected(table, lambda rows: rows.crossJoin(spark.range(2)).drop("id"))
        with pytest.raises(MergeKeyError, match="6 rows of main") as caught:
            stage(table, RowChange.update(match, None))
        assert len(caught.value.data["samples"]) == 6
        assert stage(table, RowChange.delete(match)).rows_deleted == 6
    assert len(list(Path(filled.table("t").info(None).path).iterdir())) == 2


@pytest.mark.parametrize("once", [False, True])
def test_what_is_collected_is_bounded(
    filled: Lake, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, *, once: bool
) -> None:
    """Each row of a small table may have many new values, unless who asks knows that it has one."""
    filled.limits = Limits(collected_values=2 * 10)
    with filled.transaction() as tx:
        table = tx.table("t")
        rows = target_rows(table)
        if not once:
            rows = rows.crossJoin(spark.range(100)).drop("id")
        sizes: list[int] = []
        bring = type(rows).toArrow

        def counted(df: DataFrame) -> Any:
            collected = bring(df)
            sizes.append(collected.num_rows)
            return collected

        monkeypatch.setattr(type(rows), "toArrow", counted)
        source = table.scan_all()
        facts = facts_of(source, table.schema)
        found = find_updated(table, source, rows, facts, once=once)
        assert (found is None, sizes) == ((False, [6]) if once else (True, [11]))


@pytest.mark.usefixtures("by")
def test_rows_of_merged_files_keep_their_ids(filled: Lake) -> None:
    """A merged file embeds ids that are not its places; one more column came after it."""
    with duck.attach(filled.catalog.uri) as con:
        con.execute("DELETE FROM t WHERE k = 1")
        con.execute("CALL ducklake_rewrite_data_files('lk', delete_threshold => 0)")
        con.execute("INSERT INTO t VALUES (6, 'a')")
        con.execute("CALL ducklake_merge_adjacent_files('lk')")
        con.execute("ALTER TABLE t ADD COLUMN n INT DEFAULT 7")
    first = filled.catalog.latest().id + 1
    with filled.transaction() as tx:
        assert update(tx, "k IN (2, 4, 6)", "'b'").rows_updated == 3
    with filled.transaction() as tx:
        assert delete(tx, "k IN (0, 2)").rows_deleted == 2
    query = "SELECT rowid, k, v, n FROM t"
    assert duck.rows(filled.catalog.uri, query) == [
        *[(3, 3, "a", 7), (4, 4, "b", 7), (5, 5, "a", 7), (6, 6, "b", 7)]
    ]
    kinds = [row[:2] for row in feed(filled, first)]
    updated = [(id_, kind) for id_ in (2, 4, 6) for kind in ("postimage", "preimage")]
    assert kinds == sorted(
        [(0, "delete"), (2, "delete"), *((id_, f"update_{kind}") for id_, kind in updated)],
        key=repr,
    )
