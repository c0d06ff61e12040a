"""Which of Spark's plans are known to be scans of files and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from penstock.lake.merging.plans import is_plain_scan, reads_files_only

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

SCAN = "+- FileScan parquet [id#0L] Batched: true, PushedFilters: [], ReadSchema: struct<id:bigint>"


@pytest.mark.parametrize(
    "plan",
    [
        f"== Physical Plan ==\n*(1) ColumnarToRow\n{SCAN}\n\n",
        f"== Physical Plan ==\n*(1) Project [id#0L AS x#8L, a#1]\n+- *(1) ColumnarToRow\n   {SCAN}",
    ],
)
def test_scans(plan: str) -> None:
    assert reads_files_only(plan)


@pytest.mark.parametrize(
    "plan",
    [
        "",
        "== Physical Plan ==\n",
        f"== Physical Plan ==\n*(1) Project [id#0L, rand(1) AS r#1]\n{SCAN}",
        f"== Physical Plan ==\n*(1) Filter (id#0L > 3)\n{SCAN}",
        f"AdaptiveSparkPlan isFinalPlan=false\n+- Sort [id#0L ASC]\n   {SCAN}",
        "+- FileScan csv [id#0L] Batched: false",
    ],
)
def test_anything_else(plan: str) -> None:
    assert not reads_files_only(plan)


@pytest.mark.spark
def test_as_spark_shows_them(spark: SparkSession, tmp_path: Path) -> None:
    spark.range(3).write.parquet(str(tmp_path / "ids"))
    ids = spark.read.parquet(str(tmp_path / "ids"))
    assert is_plain_scan(spark, ids)
    assert is_plain_scan(spark, ids.selectExpr("id AS other"))
    assert not is_plain_scan(spark, ids.selectExpr("id", "rand() AS r"))
    assert not is_plain_scan(spark, ids.distinct())
    assert not is_plain_scan(spark, spark.range(3))
