"""Tables with every form of deletes, merged files and inlined rows, changed by Penstock.

DuckDB and Penstock then read the same at every snapshot, with the same row ids.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import pytest

from penstock.lakes.lake import Lake
from tests.duckdb_process import DuckDBProcess
from tests.lakes.catalog.conftest import Place
from tests.lakes.differential.test_file_forms import (
    FLUSH,
    MERGE,
    VECTORS,
    delete,
    insert,
    ours,
    run,
    theirs,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def duck() -> Iterator[DuckDBProcess]:
    process = DuckDBProcess("1.5.5")
    yield process
    process.close()


def attach(place: Place, spark: SparkSession) -> Lake:
    return Lake.attach(place.uri, data_path=place.data_path, spark=spark)


def rows(spark: SparkSession, *keys: int) -> DataFrame:
    return spark.createDataFrame([(key, "new") for key in keys], "k LONG, v STRING").coalesce(1)


def same(process: DuckDBProcess, place: Place, lake: Lake) -> None:
    process.execute(f"ATTACH '{place.uri}' AS lk (READ_ONLY)")
    process.execute("USE lk")
    known = theirs(process)
    process.renew()
    mine = ours(lake)
    for version, expected in known.items():
        assert mine[version] == expected, f"snapshot {version}"


BEFORE = {
    "several snapshots in one delete file": [insert(0, 9), delete(1), delete(4, 6)],
    "vectors": [VECTORS.format("true"), insert(0, 9), delete(1), delete(4, 6)],
    "merged": [*(insert(i, i + 3) for i in (0, 3, 6)), MERGE, delete(1), delete(4)],
    "merged, vectors": [
        *(insert(0, 4), insert(4, 9), MERGE, VECTORS.format("true"), delete(1, 4), delete(6)),
    ],
}


@pytest.mark.parametrize("script", BEFORE.values(), ids=BEFORE)
def test_merges(
    duck: DuckDBProcess, place: Place, spark: SparkSession, script: Sequence[str]
) -> None:
    run(duck, place, script, 0)
    duck.renew()
    with attach(place, spark) as lake:
        lake.table("t").merge(rows(spark, 1, 2, 8, 20), ["k"])
        lake.table("t").merge(rows(spark, 3), ["k"])
        same(duck, place, lake)
    run_more(duck, place, [delete(0), "UPDATE t SET v = 'x' WHERE k = 8"])
    with attach(place, spark) as lake:
        same(duck, place, lake)


def run_more(process: DuckDBProcess, place: Place, statements: Sequence[str]) -> None:
    process.renew()
    process.execute(f"ATTACH '{place.uri}' AS lk (DATA_INLINING_ROW_LIMIT 0)")
    for statement in ("USE lk", *statements):
        process.execute(statement)
    process.renew()


def test_slices_over_merged_files(duck: DuckDBProcess, place: Place, spark: SparkSession) -> None:
    script = [*(insert(i, i + 3) for i in (0, 3)), MERGE, delete(1), delete(4)]
    run(duck, place, script, 0)
    duck.renew()
    with attach(place, spark) as lake:
        df = spark.createDataFrame([(2, "v2"), (7, "v2")], "k LONG, v STRING").coalesce(1)
        lake.table("t").replace_slice(df, "v", "v2")
        same(duck, place, lake)


INLINED = [insert(0, 20), insert(20, 24), delete(1, 5), delete(21)]


def test_rows_are_added_beside_inlined_ones(
    duck: DuckDBProcess, place: Place, spark: SparkSession
) -> None:
    run(duck, place, INLINED, 10)
    duck.renew()
    with attach(place, spark) as lake:
        staged = lake.table("t").append(rows(spark, 30, 31)).staged
        assert staged.slice_rows == 23
        same(duck, place, lake)
    run_more(duck, place, [FLUSH, delete(30)])
    with attach(place, spark) as lake:
        same(duck, place, lake)


CHANGES: dict[str, Callable[[Lake, DataFrame], object]] = {
    "replacing its rows": lambda lake, df: lake.table("t").replace(df),
    "replacing a slice of it": lambda lake, df: lake.table("t").replace_slice(df, "v", "new"),
    "merging into it": lambda lake, df: lake.table("t").merge(df, ["k"]),
}


@pytest.mark.parametrize("doing", CHANGES)
def test_changes_end_inlined_rows(
    duck: DuckDBProcess, place: Place, spark: SparkSession, doing: str
) -> None:
    run(duck, place, INLINED, 10)
    duck.renew()
    with attach(place, spark) as lake:
        before = lake.catalog.latest()
        CHANGES[doing](lake, rows(spark, 3))
        assert lake.catalog.latest().id == before.id + 1
        same(duck, place, lake)


def test_a_table_with_inlined_rows_is_made_anew(
    duck: DuckDBProcess, place: Place, spark: SparkSession
) -> None:
    run(duck, place, INLINED, 10)
    duck.renew()
    with attach(place, spark) as lake:
        lake.table("t").replace(rows(spark, 1).withColumnRenamed("v", "w"))
        assert lake.table("t").to_df().columns == ["k", "w"]
        same(duck, place, lake)
