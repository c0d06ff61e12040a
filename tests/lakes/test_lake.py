"""Attaching, and what a lake answers without Spark."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from penstock.errors import (
    CatalogMissing,
    EnvironmentMissing,
    ReadOnlyLake,
    SnapshotNotFound,
    UnsupportedFeature,
)
from penstock.lakes.lake import Lake
from tests.lakes.conftest import Rows, table_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_a_catalog_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "pyspark", raising=False)  # of another test
    uri = f"ducklake:sqlite:{tmp_path / 'meta.sqlite'}"
    with Lake.attach(uri, data_path=str(tmp_path / "data")) as lake:
        assert lake.schemas() == ["main"]
        assert lake.tables() == []
        assert [snapshot.id for snapshot in lake.snapshots()] == [0]
        where = f"'sqlite:{tmp_path / 'meta.sqlite'}'"
        assert repr(lake) == f"Lake('lake', {where})"
        assert repr(lake.table("t")) == f"Table('main.t', {where})"
        assert repr(lake.snapshots()[0]).startswith("Snapshot(0, 20")
        with pytest.raises(EnvironmentMissing, match="without a Spark session"):
            lake.sql("SELECT 1")


def test_a_lake_is_not_made_where_nothing_can_be_written(tmp_path: Path) -> None:
    uri = f"ducklake:sqlite:{tmp_path / 'meta.sqlite'}"
    with pytest.raises(UnsupportedFeature, match="gs://"):
        Lake.attach(uri, data_path="gs://bucket/lake/")
    with pytest.raises(CatalogMissing):
        Lake.attach(uri, create_if_not_exists=False)


def test_nothing_to_attach(tmp_path: Path) -> None:
    uri = f"ducklake:sqlite:{tmp_path / 'meta.sqlite'}"
    with pytest.raises(CatalogMissing):
        Lake.attach(uri, create_if_not_exists=False)
    with pytest.raises(CatalogMissing):
        Lake.attach(uri, snapshot_version=1)


@pytest.mark.spark
def test_a_session_is_asked_for_when_needed(lake: Lake, rows: Rows, spark: SparkSession) -> None:
    lake.table("t").append(rows("k INT", [(1,)]))
    asked: list[int] = []

    def start() -> SparkSession:
        asked.append(1)
        return spark

    with Lake.attach(lake.catalog.uri, spark=start) as other:
        assert other.table("t").schema.names == ("k",)
        assert asked == []
        assert table_of(other.table("t").to_df()) == [(1,)]
        assert other.table("t").to_df().count() == 1
    assert asked == [1]


@pytest.mark.spark
def test_attached_at_a_snapshot(lake: Lake, rows: Rows, spark: SparkSession) -> None:
    for at in (1, 2):
        lake.table("t").append(rows("k INT", [(at,)]))
    with Lake.attach(lake.catalog.uri, spark=spark, snapshot_version=1) as old:
        assert table_of(old.table("t").to_df()) == [(1,)]
        assert table_of(old.sql("SELECT * FROM t")) == [(1,)]
        assert table_of(old.sql("SELECT * FROM t AT (VERSION => 2)")) == [(1,), (2,)]
        with pytest.raises(ReadOnlyLake):
            old.transaction()
    with pytest.raises(SnapshotNotFound):
        Lake.attach(lake.catalog.uri, snapshot_version=9)
    first = lake.snapshots()[1].time
    with Lake.attach(lake.catalog.uri, spark=spark, snapshot_time=first) as old:
        assert table_of(old.table("t").to_df()) == [(1,)]
