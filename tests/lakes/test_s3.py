"""A lake in S3: every kind of change and its maintenance on a real server, and DuckDB beside it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from penstock.errors import DataFileMissing
from penstock.lakes import storage
from penstock.lakes.lake import Lake
from tests import s3
from tests.lakes.conftest import table_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, object]]:
    with s3.server(tmp_path_factory.mktemp("s3")) as server:
        yield server


@pytest.fixture
def remote(tmp_path: Path, spark: SparkSession, store: dict[str, object]) -> Iterator[Lake]:
    uri = f"ducklake:sqlite:{tmp_path / 'meta.sqlite'}"
    path = f"s3://{s3.BUCKET}/{tmp_path.name}/"
    with Lake.attach(uri, data_path=path, spark=spark, storage=store) as attached:
        yield attached


def test_every_change_and_its_maintenance(
    remote: Lake, spark: SparkSession, store: dict[str, object]
) -> None:
    table = remote.table("t")
    table.append(spark.range(60).selectExpr("id AS k", "id % 3 AS p"), partition_by=["p"])
    table.delete("k = 5")
    table.update({"p": "7"}, where="k = 6")
    table.merge(spark.sql("SELECT * FROM VALUES (59L, 1L), (60L, 0L) v(k, p)"), ["k"])
    expected = {k: k % 3 for k in range(61) if k != 5} | {6: 7, 59: 1}
    assert dict(table_of(table.to_df())) == expected
    assert table.to_df(version=1).count() == 60
    assert len(list(remote.list_files("t"))) >= 4
    with s3.duckdb_on(remote.catalog.uri, store) as con:
        if con is not None:
            assert con.execute("SELECT count(*), max(p) FROM lk.t").fetchone() == (60, 7)
            assert con.execute("SELECT count(*) FROM lk.t AT (VERSION => 1)").fetchone() == (60,)
    remote.sql("CALL ducklake_merge_adjacent_files('lake')")
    remote.sql("CALL ducklake_expire_snapshots('lake', older_than => now())")
    remote.sql("CALL ducklake_cleanup_old_files('lake', cleanup_all => true)")
    assert dict(table_of(table.to_df())) == expected
    left = set(storage.list_files(remote.catalog.data_path))
    listed = {file.data_file for file in remote.list_files("t")}
    assert listed <= left
    storage.remove_file(min(listed))
    with pytest.raises(DataFileMissing):
        table.to_df().collect()


def test_a_failed_write_leaves_nothing(remote: Lake, spark: SparkSession) -> None:
    with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
        remote.table("t").append(spark.range(9).selectExpr("1 / (id - 5) AS x"))
    assert storage.list_files(remote.catalog.data_path) == []
