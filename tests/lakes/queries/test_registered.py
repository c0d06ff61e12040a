"""Tables as temporary views: their names, and `Lake.register`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from penstock.errors import ArgumentError, SnapshotNotFound, TableNotFound
from penstock.lakes.format.naming import TableRef
from penstock.lakes.lake import Lake
from penstock.lakes.queries.running import view_names
from tests.lakes.conftest import table_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize(
    ("tables", "prefix", "names"),
    [
        ([], "", []),
        (["main.t", "shop.t"], "", ["t", "shop_t"]),
        (["main.t", "shop.t"], "lake_", ["lake_t", "lake_shop_t"]),
        (["main.t", "main.t"], "", ["t"]),
        (['main."a.b"', 'main."a b"'], "", ["a.b", "a b"]),
    ],
)
def test_names_of_views(tables: list[str], prefix: str, names: list[str]) -> None:
    assert list(view_names(map(TableRef.parse, tables), prefix)) == names


@pytest.mark.parametrize("other", ["main.shop_t", "main.SHOP_T"])
def test_two_tables_of_one_name_are_refused(other: str) -> None:
    with pytest.raises(ArgumentError, match="would both be the view") as caught:
        view_names([TableRef.parse("shop.t"), TableRef.parse(other)])
    assert 'tables=["shop.t"]' in str(caught.value.hint)


@pytest.fixture
def shop(lake: Lake) -> Lake:
    lake.sql(
        "CREATE TABLE t AS SELECT 1 AS k; CREATE SCHEMA shop; "
        "CREATE TABLE shop.t AS SELECT 2 AS k; CREATE VIEW doubled AS SELECT k * 2 AS k FROM t; "
        "CREATE TABLE `odd. name` AS SELECT 3 AS k"
    )
    return lake


@pytest.mark.spark
def test_a_session_sees_tables_and_views(shop: Lake, spark: SparkSession) -> None:
    views = shop.register(spark)
    assert views == {
        "t": "main.t",
        "odd. name": "main.odd. name",
        "shop_t": "shop.t",
        "doubled": "main.doubled",
    }
    assert table_of(spark.table("shop_t")) == [(2,)]
    joined = "SELECT t.k, d.k, o.k FROM t, doubled AS d, `odd. name` AS o"
    assert table_of(spark.sql(joined)) == [(1, 2, 3)]


@pytest.mark.spark
def test_views_stay_at_their_snapshot(shop: Lake, spark: SparkSession) -> None:
    before = shop.snapshots()[-1].id
    shop.register(spark, tables=["t"])
    shop.sql("INSERT INTO t VALUES (5)")
    assert table_of(spark.table("t")) == [(1,)]
    shop.register()  # the lake's own session
    assert table_of(spark.table("t")) == [(1,), (5,)]
    assert shop.register(spark, tables=["main.t"], prefix="old_", version=before) == {
        "old_t": "main.t"
    }
    assert table_of(spark.sql("SELECT t.k FROM t LEFT ANTI JOIN old_t USING (k)")) == [(5,)]


@pytest.mark.spark
def test_another_session_has_views_of_its_own(shop: Lake, spark: SparkSession) -> None:
    other = spark.newSession()
    shop.register(other, tables=["shop.t"], prefix="other_")
    assert table_of(other.table("other_shop_t")) == [(2,)]
    assert not spark.catalog.tableExists("other_shop_t")


@pytest.mark.spark
def test_what_is_not_there(shop: Lake, spark: SparkSession) -> None:
    with pytest.raises(TableNotFound):
        shop.register(spark, tables=["missing"])
    with pytest.raises(SnapshotNotFound):
        shop.register(spark, version=999)
