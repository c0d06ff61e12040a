"""A lake in S3 by the committer `magic`: every kind of change, and what the server was asked for.

Beside it `file`, which copies, so that to see no copy says something.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from penstock.lakes import storage
from penstock.lakes.lake import Lake
from tests import s3
from tests.lakes.conftest import table_of
from tests.s3_relay import Relay, relay

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

BUCKET = "published"


@pytest.fixture(scope="module")
def between(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Relay, dict[str, object]]]:
    with (
        s3.server(tmp_path_factory.mktemp("s3"), BUCKET) as store,
        relay(str(store["endpoint"])) as proxy,
    ):
        yield proxy, {**store, "endpoint": proxy.endpoint}


@pytest.fixture
def asked(between: tuple[Relay, dict[str, object]]) -> Relay:
    proxy, _ = between
    proxy.asked.clear()
    return proxy


def attach(
    folder: Path,
    spark: SparkSession,
    between: tuple[Relay, dict[str, object]],
    committer: str = "magic",
) -> Lake:
    uri = f"ducklake:sqlite:{folder / 'meta.sqlite'}"
    path = f"s3://{BUCKET}/{folder.name}/"
    return Lake.attach(
        uri, data_path=path, spark=spark, storage={**between[1], "committer": committer}
    )


def uploads(asked: Relay, method: str, mark: str) -> list[str]:
    return [
        request.path for request in asked.asked if request.method == method and mark in request.path
    ]


@pytest.fixture
def lake(
    tmp_path: Path, spark: SparkSession, between: tuple[Relay, dict[str, object]]
) -> Iterator[Lake]:
    with attach(tmp_path, spark, between) as attached:
        yield attached


def test_every_change_copies_nothing(
    lake: Lake, spark: SparkSession, between: tuple[Relay, dict[str, object]], asked: Relay
) -> None:
    lake.table("u").append(spark.range(0, 20, 1, 2).selectExpr("id AS k"))
    lake.table("u").replace(spark.range(0, 30, 1, 2).selectExpr("id AS k"))
    table = lake.table("t")
    table.append(spark.range(0, 60, 1, 2).selectExpr("id AS k", "id % 3 AS p"), partition_by=["p"])
    table.append(spark.range(60, 66, 1, 2).selectExpr("id AS k", "id % 3 AS p"))
    table.delete("k = 5")
    table.update({"p": "7"}, where="k = 6")
    table.merge(spark.sql("SELECT * FROM VALUES (59L, 1L), (66L, 0L) v(k, p)"), ["k"])
    expected = {k: k % 3 for k in range(67) if k != 5} | {6: 7, 59: 1}
    assert dict(table_of(table.to_df())) == expected
    assert sorted(k for (k,) in table_of(lake.table("u").to_df())) == list(range(30))
    with s3.duckdb_on(lake.catalog.uri, between[1]) as con:
        if con is not None:  # a file of its own, among those that are merged
            con.execute("INSERT INTO lk.u SELECT range FROM range(30, 60)")
    _check_duckdb(lake, between[1], expected)
    assert len(uploads(asked, "POST", "?uploads")) >= 10
    lake.sql("CALL ducklake_merge_adjacent_files('lake')")
    lake.sql("CALL ducklake_expire_snapshots('lake', older_than => now())")
    lake.sql("CALL ducklake_cleanup_old_files('lake', cleanup_all => true)")
    assert dict(table_of(table.to_df())) == expected
    _check_duckdb(lake, between[1], expected)
    assert asked.copies() == []
    named = {file.data_file for name in ("t", "u") for file in lake.list_files(name)}
    assert named <= set(storage.list_files(lake.catalog.data_path))
    everything = [request.path for request in asked.asked]
    assert any("__magic" in path for path in everything)
    assert left_over(lake) == []


def _check_duckdb(lake: Lake, store: dict[str, object], expected: dict[int, int]) -> None:
    with s3.duckdb_on(lake.catalog.uri, store) as con:
        if con is not None:
            assert dict(con.execute("SELECT k, p FROM lk.t").fetchall()) == expected
            assert con.execute("SELECT count(*), max(k) FROM lk.u").fetchone() == (60, 59)
    assert lake.table("u").to_df().count() == (30 if con is None else 60)


def left_over(lake: Lake) -> list[str]:
    """What the committer keeps below its own directories while a job runs."""
    from pyarrow import fs

    system, root = storage.open_system(lake.catalog.data_path)
    selector = fs.FileSelector(root.rstrip("/"), recursive=True, allow_not_found=True)
    return [info.path for info in system.get_file_info(selector) if "__magic" in info.path]


def test_the_committer_file_copies(
    tmp_path: Path, spark: SparkSession, between: tuple[Relay, dict[str, object]], asked: Relay
) -> None:
    with attach(tmp_path, spark, between, "file") as lake:
        lake.table("t").append(spark.range(0, 9, 1, 1))
    assert len(asked.copies()) == 2


def test_a_write_that_fails_half_way(lake: Lake, spark: SparkSession, asked: Relay) -> None:
    # A file for each thousand rows or so: some are uploaded by the time the last row fails.
    lake.set_option("target_file_size", "4KB")
    rows = spark.range(0, 40_000, 1, 2).selectExpr("1 / (id - 39999) AS x")
    with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
        lake.table("t").append(rows)
    begun = uploads(asked, "POST", "?uploads")
    assert len(begun) > 2
    assert len(uploads(asked, "DELETE", "?uploadId=")) == len(begun)
    assert uploads(asked, "POST", "?uploadId=") == []
    assert storage.list_files(lake.catalog.data_path) == []
    assert left_over(lake) == []


def published(spark: SparkSession) -> dict[str, str]:
    """The session's settings of how files are published."""
    return {key: value for key, value in spark.conf.getAll.items() if "commit" in key.lower()}


def test_other_writes_of_the_session(lake: Lake, spark: SparkSession, tmp_path: Path) -> None:
    before = published(spark)
    lake.table("t").append(spark.range(3))
    assert published(spark) == before
    for path in (f"{tmp_path}/own", f"s3a://{BUCKET}/{tmp_path.name}-own"):
        spark.range(4).write.parquet(f"{path}/p")
        spark.range(4).write.csv(f"{path}/c")
        assert spark.read.parquet(f"{path}/p").count() == 4
        assert spark.read.csv(f"{path}/c").count() == 4
