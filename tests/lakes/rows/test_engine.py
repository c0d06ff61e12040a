"""DELETE, UPDATE and replace-where by a condition: what they change, read and refuse."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from penstock.errors import ArgumentError, ColumnNotFound, QueryFailed, SchemaMismatch
from penstock.lakes.lake import Lake
from penstock.lakes.rows import engine
from tests import duck
from tests.lakes.conftest import Rows, table_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.fixture
def filled(lake: Lake, spark: SparkSession) -> Lake:
    """Three files of three rows, k from 0."""
    for first in (0, 3, 6):
        rows = spark.range(first, first + 3, 1, 1).selectExpr("int(id) AS k", "'a' AS v")
        lake.table("t").append(rows)
    return lake


def feed(lake: Lake, first: int) -> list[tuple[Any, ...]]:
    """Changes since a snapshot, by DuckDB."""
    last = lake.catalog.latest().id
    query = f"FROM lk.table_changes('t', {first}, {last}) SELECT rowid, change_type, k, v"
    return duck.rows(lake.catalog.uri, query)


def unread(*_: object, **__: object) -> Any:
    raise AssertionError("no data should be read")


@pytest.mark.parametrize("where", ["k < 3", "k BETWEEN 0 AND 2", "k < 3 AND v = 'a'", None])
def test_what_the_catalog_proves_is_not_read(
    filled: Lake, monkeypatch: pytest.MonkeyPatch, where: str | None
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(engine, "find", unread)
        result = filled.table("t").delete(where)
    assert result.staged.rows_deleted == (9 if where is None else 3)
    assert duck.rows(filled.catalog.uri, "SELECT count(*), min(k) FROM t") == [
        (0, None) if where is None else (6, 3)
    ]


def test_a_null_is_no_proof(lake: Lake, rows: Rows) -> None:
    table = lake.table("t")
    table.append(rows("k INT, v STRING", [(1, "a"), (None, "b")]))
    assert table.delete("k < 3").staged.rows_deleted == 1
    assert table.delete("k < 3").snapshot is None
    assert table_of(table.to_df()) == [(None, "b")]


def test_update(filled: Lake, spark: SparkSession) -> None:
    from pyspark.sql import functions as fn

    table = filled.table("t")
    result = table.update({"k": "k + 100", "V": fn.concat("v", fn.col("k"))}, fn.col("k") >= 7)
    assert result.staged.rows_updated == 2
    assert feed(filled, 4) == [
        (7, "update_postimage", 107, "a7"),
        (7, "update_preimage", 7, "a"),
        (8, "update_postimage", 108, "a8"),
        (8, "update_preimage", 8, "a"),
    ]
    assert table.update({"v": fn.lit(None)}, "rowid = 8").staged.rows_updated == 1
    assert table.update({"k": 1}, "k < 0").snapshot is None


def test_struct_fields(lake: Lake, spark: SparkSession) -> None:
    table = lake.table("t")
    table.append(spark.sql("SELECT 1 AS k, named_struct('x', 1, 'y', 'a') AS s"))
    table.update({"s.x": "s.x + k"})
    assert table_of(table.to_df().selectExpr("k", "s.x", "s.y")) == [(1, 2, "a")]
    table.update({"s": "NULL"})
    merge = table.merge_into(spark.sql("SELECT 1 AS k"), "t.k = s.k")
    merge.when_matched_update(None, {"k": "2", "s": "NULL"}).execute()
    assert table_of(table.to_df()) == [(2, None)]


def test_overwrite(filled: Lake, rows: Rows) -> None:
    table = filled.table("t")
    new = rows("k INT, v STRING", [(7, "n"), (70, "n")])
    with pytest.raises(QueryFailed, match=r'does not satisfy .*\{"k":7,"v":"n"\}'):
        table.overwrite(new, "k >= 8")
    result = table.overwrite(new, "k >= 7")
    assert (result.staged.rows_deleted, result.staged.rows_inserted) == (2, 2)
    assert table.overwrite(new).staged.rows_deleted == 9
    assert table_of(table.to_df()) == [(7, "n"), (70, "n")]
    table.overwrite(rows("z INT", [(1,)]))
    assert table.schema.names == ("z",)
    with pytest.raises(ArgumentError, match="either a condition or partition_by"):
        table.overwrite(new, "k = 7", partition_by="k")


def test_refused(filled: Lake) -> None:
    table = filled.table("t")
    with pytest.raises(ColumnNotFound, match="no column 'x'"):
        table.update({"x": "1"})
    with pytest.raises(SchemaMismatch, match="two values"):
        table.update({"k": "1", "K": "2"})
    with pytest.raises(QueryFailed, match=r"CAST_INVALID_INPUT|cannot be cast"):
        table.update({"k": "v"})
    assert len(filled.snapshots()) == 4


def test_not_null(lake: Lake, rows: Rows) -> None:
    duck.rows(lake.catalog.uri, "CREATE TABLE t(k INT NOT NULL, v VARCHAR)")
    table = lake.table("t")
    table.append(rows("k INT, v STRING", [(1, "a"), (2, "b")]))
    with pytest.raises(QueryFailed, match=r'column k of main.t is NOT NULL.*"v":"b"'):
        table.update({"k": "nullif(k, 2)"})


def test_inlined_rows(lake: Lake) -> None:
    """Rows and deletes that DuckDB keeps in the catalog change like others."""
    with duck.attach(lake.catalog.uri, inline=10) as con:
        con.execute("CREATE TABLE t(k INT, v VARCHAR)")
        con.execute("INSERT INTO t SELECT i, 'a' FROM range(20) s(i)")
        con.execute("INSERT INTO t VALUES (100, 'i'), (101, 'i'), (102, 'i')")
        con.execute("DELETE FROM t WHERE k = 3")
    table = lake.table("t")
    first = lake.catalog.latest().id + 1
    assert table.delete("k IN (4, 100)").staged.rows_deleted == 2
    assert table.update({"v": "'u'"}, "k IN (5, 101)").staged.rows_updated == 2
    assert feed(lake, first) == [
        (20, "delete", 100, "i"),
        (21, "update_postimage", 101, "u"),
        (21, "update_preimage", 101, "i"),
        (4, "delete", 4, "a"),
        (5, "update_postimage", 5, "u"),
        (5, "update_preimage", 5, "a"),
    ]
    assert table.delete().staged.rows_deleted == 20
    changes = feed(lake, lake.catalog.latest().id)
    assert len(changes) == 20
    assert {row[1] for row in changes} == {"delete"}
