"""A table as users have it.

Tests ``lakes/rows/overwrite.py`` (replaced rows, unless they are the same).
"""

from __future__ import annotations

import datetime as dt

import pytest
from pyspark.sql import SparkSession

from penstock.errors import (
    ArgumentError,
    ColumnNotFound,
    SchemaMismatch,
    SnapshotNotFound,
    TableNotFound,
)
from penstock.lakes.lake import Lake
from tests.lakes.conftest import Rows, table_of

pytestmark = pytest.mark.spark

KV = "k INT, v STRING"


def test_reading_at_versions_and_times(lake: Lake, rows: Rows) -> None:
    table = lake.table("t")
    first = table.append(rows(KV, [(1, "a")])).snapshot
    second = table.append(rows(KV, [(2, "b")])).snapshot
    assert first is not None
    assert second is not None
    assert table_of(table.to_df()) == [(1, "a"), (2, "b")]
    assert table_of(table.to_df(version=1)) == [(1, "a")]
    assert table_of(table.to_df(timestamp=first.time)) == [(1, "a")]
    assert table_of(table.to_df(timestamp=second.time + dt.timedelta(days=1), where="k > 1")) == [
        (2, "b")
    ]
    with pytest.raises(SnapshotNotFound, match="snapshot 9 does not exist"):
        table.to_df(version=9)
    with pytest.raises(TableNotFound):
        table.to_df(version=0)
    assert (table.exists(), lake.table("u").exists()) == (True, False)
    assert table.schema.names == ("k", "v")


def test_replace_keeps_the_table_or_makes_it_anew(lake: Lake, rows: Rows) -> None:
    table = lake.table("t")
    table.append(rows(KV, [(1, "a")]))
    first = table.info()
    assert table.replace(rows(KV, [(2, "b")])).snapshot
    assert table.info().id == first.id
    changed = table.replace(rows("k BIGINT, v STRING, w INT", [(3, "c", 1)]))
    assert changed.snapshot is not None
    assert table.info().id != first.id
    assert table_of(table.to_df(version=2)) == [(2, "b")]
    assert table_of(table.to_df()) == [(3, "c", 1)]


def test_replacing_with_the_same_rows_changes_nothing(lake: Lake, rows: Rows) -> None:
    table = lake.table("t")
    table.append(rows(KV, [(1, "a"), (2, None), (2, None)]))
    same = table.replace(rows(KV, [(2, None), (1, "a"), (2, None)]))
    assert (same.staged.unchanged, same.staged.slice_rows, same.snapshot) == (True, 3, None)
    other = table.replace(rows(KV, [(2, None), (1, "a"), (1, "a")]))
    assert (other.staged.unchanged, other.staged.rows_deleted) == (False, 3)


def test_a_known_fingerprint_saves_the_comparison(lake: Lake, rows: Rows) -> None:
    with lake.transaction() as tx:
        known = tx.table("t").replace(rows(KV, [(1, "a")])).fingerprint
    with lake.transaction() as tx:
        again = tx.table("t").replace(rows(KV, [(1, "a")]), known_fingerprint=known)
        assert again.unchanged
        wrong = tx.table("t").replace(rows(KV, [(1, "a")]), known_fingerprint="1:0:0:0:0")
        assert not wrong.unchanged


def test_slices_are_replaced_whole(lake: Lake, rows: Rows) -> None:
    table = lake.table("t")
    for day in ("mon", "tue"):
        table.replace_slice(rows(KV, [(1, day), (2, day)]), "day", day)
    result = table.replace_slice(rows(KV, [(7, "new")]), "day", "mon")
    assert (result.staged.rows_deleted, result.staged.slice_rows) == (2, 1)
    assert table_of(table.to_df()) == [(1, "tue", "tue"), (2, "tue", "tue"), (7, "new", "mon")]
    assert table.replace_slice(rows(KV, [(7, "new")]), "day", "mon").staged.unchanged
    assert table.replace_slice(rows(KV, []), "day", "mon").staged.rows_deleted == 1
    assert table.replace_slice(rows(KV, []), "day", "mon").staged.unchanged


def test_slices_of_a_table_that_is_not_partitioned_by_them(lake: Lake, rows: Rows) -> None:
    table = lake.table("t")
    table.append(rows(KV, [(1, "x"), (2, "x"), (3, "y"), (4, None)]))
    assert table.replace_slice(rows(KV, [(2, "x"), (1, "x")]), "v", "x").staged.unchanged
    assert table.replace_slice(rows(KV, [(9, "x")]), "v", "x").staged.rows_deleted == 2
    assert table.replace_slice(rows(KV, []), "v", None).staged.rows_deleted == 1
    assert table_of(table.to_df()) == [(3, "y"), (9, "x")]


def test_a_slice_of_no_column(lake: Lake, rows: Rows) -> None:
    table = lake.table("t")
    table.append(rows(KV, [(1, "x")]))
    with lake.transaction() as tx, pytest.raises(ColumnNotFound, match="'nope'"):
        tx.table("t").slice_df("nope", 1)


def test_slices_of_several_partition_columns(lake: Lake, rows: Rows) -> None:
    values = [(1, "a", "x"), (2, "a", "y"), (3, "b", "x")]
    table = lake.table("t")
    table.append(rows("k INT, p STRING, q STRING", values), partition_by=["p", "q"])
    result = table.replace_slice(rows("k INT, q STRING", [(9, "z"), (8, "x")]), "p", "a")
    assert result.staged.rows_deleted == 2
    stored = {f.partition_values for f in lake.catalog.files(table.info(), 2).files}
    assert stored == {("b", "x"), ("a", "z"), ("a", "x")}


def test_an_untyped_null_has_the_type_of_its_column(lake: Lake, spark: SparkSession) -> None:
    table = lake.table("t")
    with pytest.raises(SchemaMismatch, match="'v' is of Spark type void"):
        table.append(spark.sql("SELECT 1 AS k, NULL AS v"))
    table.append(spark.sql("SELECT 1 AS k, 'a' AS v"))
    table.append(spark.sql("SELECT 2 AS k, NULL AS v"))
    table.merge(spark.sql("SELECT 1 AS k, NULL AS V"), ["k"])
    assert table_of(table.to_df()) == [(1, None), (2, None)]
    assert table.replace(spark.sql("SELECT 3 AS k, NULL AS v")).staged.rows_deleted == 2
    assert table.schema.names == ("k", "v")


def test_a_text_names_one_column(lake: Lake, rows: Rows) -> None:
    columns = "id INT, i STRING, d STRING"
    table = lake.table("t")
    table.append(rows(columns, [(1, "a", "x")]), partition_by="id")
    merged = table.merge(rows(columns, [(1, "b", "y"), (2, "a", "x")]), keys="id")
    assert (merged.staged.rows_updated, merged.staged.rows_inserted) == (1, 1)
    assert [field.column for field in table.info().partition_by] == ["id"]
    with pytest.raises(ArgumentError, match="keys is empty"):
        table.merge(rows(columns, [(1, "b", "y")]), keys=[])
