"""Which of Spark's plans are known to be scans of files and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from penstock.lake.rows.plans import is_bare_scan, physical, reads_files_only

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
    frames = {
        "as it is": ids,
        "renamed": ids.selectExpr("id AS other"),
        "computed": ids.selectExpr("id", "rand() AS r"),
        "distinct": ids.distinct(),
        "no files": spark.range(3),
    }
    plans = {name: physical(spark, df) for name, df in frames.items()}
    assert [name for name, plan in plans.items() if reads_files_only(plan)] == [
        "as it is",
        "renamed",
    ]
    assert [name for name, plan in plans.items() if is_bare_scan(plan)] == ["as it is"]


FULL = (
    "== Physical Plan ==\n*(1) ColumnarToRow\n+- FileScan parquet [{given}] Batched: true, "
    "DataFilters: [], Format: Parquet, Location: {where}, PartitionFilters: [], "
    "PushedFilters: [{pushed}], ReadSchema: struct<{read}>\n"
)
FILES = "InMemoryFileIndex(1 paths)[file:/a]"


def full(given: str, read: str, where: str = FILES, pushed: str = "") -> str:
    return FULL.format(given=given, where=where, pushed=pushed, read=read)


@pytest.mark.parametrize(
    "plan",
    [
        full("id#0L,d#1,s#2", "id:bigint,d:decimal(10,2),s:string"),
        full("id#0L,... 5 more fields", "id:bigint,..."),
    ],
)
def test_bare_scans(plan: str) -> None:
    assert is_bare_scan(plan)


@pytest.mark.parametrize(
    "plan",
    [
        full("id#0L", "id:bigint", where="InMemoryFileIndex(2 paths)[file:/a, file:/a]"),
        full("id#0L", "id:bigint", where="TahoeLogFileIndex(1 paths)[file:/a]"),
        full("id#0L", "id:bigint", where="CatalogFileIndex(1 paths)[file:/a]"),
        full("id#0L", "id:bigint", pushed="IsNotNull(id)"),
        full("id#0L", "id:bigint").replace("ColumnarToRow", "Project [id#0L AS x#1L]"),
        full("id#0L", "id:bigint") * 2,
        "",
    ],
)
def test_scans_with_more_to_them(plan: str) -> None:
    assert not is_bare_scan(plan)
