"""Files that are a merge's source are read here as Spark reads them, or not at all."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.lakes.format.schema import Column, TableSchema, assign_ids
from penstock.lakes.lake import Lake
from penstock.lakes.reading.conversions.spark_types import schema_of
from penstock.lakes.rows.merge_source import is_bare_scan, local_files, read_source
from tests.lakes.conftest import Rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

MOST = 1_000
KV = TableSchema((Column("k", "int64", 1), Column("v", "varchar", 2)))


def read(df: DataFrame, schema: TableSchema = KV) -> pa.Table | None:
    files = local_files(df, 1 << 20, MOST)
    assert files is not None
    return read_source(df, schema, files) if is_bare_scan(df.sparkSession, df) else None


def written(tmp_path: Path, *tables: pa.Table) -> str:
    folder = tmp_path / "files"
    folder.mkdir()
    for at, table in enumerate(tables):
        with pq.ParquetWriter(folder / f"{at}.parquet", table.schema, store_schema=False) as file:
            file.write_table(table)
            file.add_key_value_metadata(table.schema.metadata or {})
    return str(folder)


def kv(*rows: tuple[int | None, str | None]) -> pa.Table:
    schema = pa.schema([("k", pa.int64()), ("v", pa.string())])
    return pa.Table.from_pylist([{"k": k, "v": v} for k, v in rows], schema)


def test_as_spark_reads_them(spark: SparkSession, rows: Rows, tmp_path: Path) -> None:
    df = rows("k BIGINT", [(k,) for k in range(50)]).selectExpr(
        "k",
        "cast(k AS int) AS i",
        "k % 2 = 0 AS b",
        "if(k % 5 = 0, NULL, cast(k AS string)) AS s",
        "cast(k / 4 AS decimal(9, 2)) AS small",
        "cast(k / 4 AS decimal(30, 2)) AS large",
        "date'1500-01-01' + cast(k AS int) AS d",
        "timestamp_seconds(k - 100) AS t",
        "cast(timestamp_seconds(k) AS timestamp_ntz) AS n",
        "if(k = 3, double('NaN'), -0.0D) AS v",
        "cast(cast(k AS string) AS binary) AS x",
    )
    df.repartition(3).write.parquet(str(tmp_path / "source"))
    files = spark.read.parquet(str(tmp_path / "source"))
    schema = assign_ids(schema_of(files))
    here = read(files, schema)
    assert here is not None
    there = files.toArrow()
    assert here.schema.types == there.schema.types
    assert str(here.sort_by("k").to_pylist()) == str(there.sort_by("k").to_pylist())
    two = spark.read.schema("k BIGINT, s STRING").parquet(str(tmp_path / "source"))
    some = read(two, TableSchema((schema.columns[3], schema.columns[0])))
    assert some is not None
    assert some.equals(here.select(["s", "k"]))


def test_names_in_other_letters(spark: SparkSession, tmp_path: Path) -> None:
    table = kv((1, "a"), (2, None)).rename_columns(["K", "V"])
    here = read(spark.read.parquet(written(tmp_path, table)))
    assert here is not None
    assert here.to_pylist() == [{"k": 1, "v": "a"}, {"k": 2, "v": None}]


@pytest.mark.parametrize("told", ["INT96", "TIMESTAMP_MICROS"])
def test_instants(spark: SparkSession, rows: Rows, tmp_path: Path, told: str) -> None:
    """As Spark writes them unless it is told otherwise, and as the lake has them."""
    df = rows("k BIGINT", [(k,) for k in range(9)]).selectExpr(
        "timestamp_micros(k * 1234567891234567 - 99999999999999999) AS t"
    )
    spark.conf.set("spark.sql.parquet.outputTimestampType", told)
    try:
        df.write.parquet(str(tmp_path / "source"))
    finally:
        spark.conf.unset("spark.sql.parquet.outputTimestampType")
    files = spark.read.parquet(str(tmp_path / "source"))
    here = read(files, assign_ids(schema_of(files)))
    assert here is not None
    assert here.sort_by("t").equals(files.orderBy("t").toArrow().cast(here.schema))


def dates(days: int, **metadata: str) -> pa.Table:
    schema = pa.schema([("d", pa.date32())], metadata=metadata)
    return pa.table([pa.array([days, None], pa.int32()).cast(pa.date32())], schema=schema)


@pytest.mark.parametrize(
    ("days", "version", "here"),
    [(-200_000, "3.0.1", False), (-200_000, "3.1.0", True), (-200_000, "", False), (0, "", True)],
)
def test_old_dates(
    spark: SparkSession, tmp_path: Path, days: int, version: str, *, here: bool
) -> None:
    """What they mean is told by who wrote them."""
    told = {"org.apache.spark.version": version} if version else {}
    df = spark.read.parquet(written(tmp_path, dates(days, **told)))
    found = read(df, TableSchema((Column("d", "date", 1),)))
    assert (found is not None) == here
    if found is not None:
        assert found.to_pylist() == [row.asDict() for row in df.collect()]


@pytest.mark.parametrize(
    "tables",
    [
        (kv((1, "a")), kv((2, "b")).rename_columns(["k", "V"])),
        (kv((1, "a")), kv((2, "b")).select(["k"])),
        (kv((1, "a")), kv((2, "b")).append_column("V", pa.array(["c"]))),
        (kv((1, "a")).replace_schema_metadata({"org.apache.spark.legacyDateTime": ""}),),
    ],
    ids=["letters of one file", "lacks a column", "twice", "of Spark 2"],
)
def test_files_that_are_left_to_spark(
    spark: SparkSession, tmp_path: Path, tables: tuple[pa.Table, ...]
) -> None:
    assert read(spark.read.schema("k BIGINT, v STRING").parquet(written(tmp_path, *tables))) is None


def test_a_column_that_paths_have(spark: SparkSession, tmp_path: Path) -> None:
    """Spark takes the path's value, whatever the file has."""
    folder = tmp_path / "files" / "v=path"
    folder.mkdir(parents=True)
    pq.write_table(kv((1, "file")), folder / "0.parquet", store_schema=False)
    df = spark.read.parquet(str(tmp_path / "files"))
    assert df.collect()[0]["v"] == "path"
    assert local_files(df, 1 << 20, MOST) is None


def test_queries_and_types(spark: SparkSession, tmp_path: Path) -> None:
    df = spark.read.parquet(written(tmp_path, kv((1, "a"), (2, "b"))))
    assert read(df) is not None
    assert read(df.where("k > 1")) is None
    assert read(df.selectExpr("k", "upper(v) AS v")) is None
    assert read(df.selectExpr("k AS v", "v AS k")) is None
    assert read(df.select("k")) is None
    required = Column("k", "int64", 1, nullable=False)
    assert read(df, TableSchema((required, KV.columns[1]))) is None
    assert read(df, TableSchema((Column("k", "int32", 1), KV.columns[1]))) is None
    assert read(df, TableSchema((KV.columns[0], Column("v", "json", 2)))) is None


def test_what_is_a_scan_and_nothing_else(spark: SparkSession, tmp_path: Path) -> None:
    folder = written(tmp_path, kv((1, "a")), kv((2, "b")))
    df = spark.read.parquet(folder)
    df.createOrReplaceTempView("penstock_source")
    frames = {
        "directory": df,
        "file": spark.read.parquet(f"{folder}/0.parquet"),
        "its URI": spark.read.parquet(f"file://{folder}"),
        "all columns": df.select("*"),
        "view": spark.sql("SELECT * FROM penstock_source"),
        "computed": df.selectExpr("k", "rand() AS v"),
        "renamed": df.selectExpr("k AS v", "v AS k"),
        "filtered": df.where("k > 1"),
        "first": df.limit(1),
        "distinct": df.distinct(),
        "twice": spark.read.parquet(folder, folder),
        "both": df.union(df),
        "by an option": spark.read.option("modifiedBefore", "2999-01-01T00:00:00").parquet(folder),
        "no files": spark.range(3),
    }
    bare = [name for name, frame in frames.items() if is_bare_scan(spark, frame)]
    assert bare == ["directory", "file", "its URI", "all columns", "view"]


def test_tables_of_a_lake_are_read_by_their_ids(lake: Lake, rows: Rows) -> None:
    lake.table("t").append(rows("k BIGINT, v STRING, w STRING", [(1, "v", "w")]))
    for old, new in (("v", "x"), ("w", "v"), ("x", "w")):
        lake.sql(f"ALTER TABLE t RENAME COLUMN {old} TO {new}")
    df = lake.table("t").to_df()
    assert df.collect()[0]["v"] == "w"
    assert read(df) is None


def test_a_file_that_is_read_twice(spark: SparkSession, tmp_path: Path) -> None:
    folder = written(tmp_path, kv((1, "a")))
    twice = spark.read.parquet(folder, folder)
    assert read(twice) is None


def test_files_elsewhere_or_too_large(spark: SparkSession, tmp_path: Path) -> None:
    df = spark.read.parquet(written(tmp_path, kv((1, "a"))))
    assert local_files(df, 1, MOST) is None
    assert local_files(df, 1 << 20, 0) is None
    files = local_files(df, 1 << 20, MOST)
    assert files is not None
    assert [file.name for file in files] == ["0.parquet"]
