"""DataFrames staged as files.

Tests ``lakes/reading/conversions/align.py``, ``lakes/writing/fingerprint.py``,
``lakes/reading/conversions/spark_types.py``.

Tests ``lakes/reading/parquet/footers.py`` (counts and bounds of files that Spark wrote) and
``lakes/writing/settings.py`` (options by their scopes).
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow.parquet as pq
import pytest

from penstock.errors import (
    DataPathError,
    EnvironmentMissing,
    QueryFailed,
    SchemaMismatch,
    UnsupportedFeature,
)
from penstock.lakes import storage
from penstock.lakes.format.files import FileSet
from penstock.lakes.format.partitioning import PartitionKey
from penstock.lakes.format.schema import Column, TableSchema, assign_ids
from penstock.lakes.lake import Lake
from penstock.lakes.reading import scan
from penstock.lakes.reading.conversions.align import align
from penstock.lakes.reading.conversions.spark_types import schema_of
from penstock.lakes.writing import fingerprint
from penstock.lakes.writing.settings import WriteSettings, parquet_options, write_settings
from penstock.lakes.writing.spark import (
    Target,
    Written,
    make_job_directory,
    publishing_options,
    write,
)
from penstock.spark import session
from tests import s3
from tests.lakes.conftest import table_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark


@pytest.fixture(autouse=True)
def _prepared(spark: SparkSession) -> None:
    session.prepare(spark)


def stage(df: DataFrame, path: Path, schema: TableSchema | None = None, **more: Any) -> Written:
    schema = schema or assign_ids(schema_of(df))
    fingerprinted = more.pop("with_fingerprint", False)
    target = Target("main.t", f"{path}/", schema, **more)
    return write(df, align(df, schema, table="main.t"), target, with_fingerprint=fingerprinted)


def back(spark: SparkSession, written: Written, schema: TableSchema) -> list[tuple[Any, ...]]:
    return table_of(scan.read(spark, scan.Scan("main.t", schema, FileSet(written.files))))


def test_files_have_ids_and_optional_columns(spark: SparkSession, tmp_path: Path) -> None:
    df = spark.sql("SELECT 1 AS a, named_struct('b', 'x', 'c', 2D) AS s, 'z' AS z")
    (file,) = stage(df, tmp_path).files
    described = str(pq.ParquetFile(file.path).schema)
    for line in ("int32 field_id=1 a", "group field_id=2 s", "field_id=3 b", "field_id=4 c"):
        assert f"optional {line.split()[0]}" in described or line in described
        assert line in described
    assert "required int32" not in described
    assert not file.uses_mapping


def test_lists_and_maps_need_the_mapping(spark: SparkSession, tmp_path: Path) -> None:
    df = spark.sql("SELECT array(1) AS l")
    assert stage(df, tmp_path).files[0].uses_mapping


def test_what_a_file_says_of_itself(spark: SparkSession, tmp_path: Path) -> None:
    df = spark.range(0, 100, 1, 1).selectExpr("id", "if(id = 7, double('nan'), 1D) n", "2D m")
    (file,) = stage(df, tmp_path).files
    assert file.record_count == 100
    assert file.size_bytes == os.path.getsize(file.path)  # noqa: PTH202 - as the reader sees it
    by_id = {stats.column_id: stats for stats in file.stats}
    assert (by_id[1].min_value, by_id[1].max_value) == ("0", "99")
    assert [by_id[i].contains_nan for i in (2, 3)] == [True, False]
    assert (by_id[2].min_value, by_id[3].max_value) == (None, "2.0")


def test_every_write_has_a_directory_of_its_own(spark: SparkSession, tmp_path: Path) -> None:
    df = spark.range(3)
    directories = {stage(df, tmp_path).directory for _ in range(2)}
    assert {Path(str(d)).parent for d in directories} == {tmp_path}
    assert len(directories) == 2
    assert not list(tmp_path.rglob("_SUCCESS"))


def test_no_rows_no_files(spark: SparkSession, tmp_path: Path) -> None:
    written = stage(spark.range(0), tmp_path, with_fingerprint=True)
    assert (written.files, written.rows, written.directory) == ((), 0, None)
    assert written.fingerprint
    assert list(tmp_path.iterdir()) == []
    found_empty = spark.range(9).where("id % 7 = 9")  # when it has been shuffled
    schema = assign_ids(schema_of(found_empty))
    spread = {"partition_by": (PartitionKey(schema.columns[0]),), "partition_id": 5}
    again = stage(found_empty, tmp_path, schema, with_fingerprint=True, **spread)
    assert again == written


def test_a_failed_query_leaves_nothing(spark: SparkSession, tmp_path: Path) -> None:
    df = spark.range(10).selectExpr("1 / (id - 5) AS x")
    with pytest.raises(QueryFailed, match="Division by zero") as caught:
        stage(df, tmp_path, with_fingerprint=True)
    assert "\tat " not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_a_path_that_is_a_file(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "data").write_text("")
    with pytest.raises(DataPathError, match="cannot be written"):
        stage(spark.range(1), tmp_path / "data" / "main")


def test_rows_go_where_their_partition_is(spark: SparkSession, tmp_path: Path) -> None:
    df = spark.sql(
        "SELECT * FROM VALUES (1, DATE'2013-01-02'), (2, NULL), (3, DATE'2013-01-02') v(k, d)"
    )
    schema = assign_ids(schema_of(df))
    single = df.coalesce(1)
    keys = (PartitionKey(schema.columns[1]),)
    written = stage(single, tmp_path, schema, partition_by=keys, partition_id=5)
    counts = {file.partition_values: file.record_count for file in written.files}
    assert counts == {("2013-01-02",): 2, (None,): 1}
    assert {file.partition_id for file in written.files} == {5}
    assert len(back(spark, written, schema)) == 3  # the column is in the files


def test_one_known_partition_has_its_directory(spark: SparkSession, tmp_path: Path) -> None:
    df = spark.sql("SELECT 1 AS k, 'a/b' AS p")
    schema = assign_ids(schema_of(df))
    keys = (PartitionKey(schema.columns[1]),)
    written = stage(df, tmp_path, schema, partition_by=keys, values=("a/b",))
    assert Path(str(written.directory)).parent.name == "p=a%2Fb"
    assert [file.partition_values for file in written.files] == [("a/b",)]


def test_fingerprints_tell_contents_apart(spark: SparkSession, tmp_path: Path) -> None:
    queries = [
        "SELECT * FROM VALUES (1, 'a'), (2, NULL) v(a, b)",
        "SELECT * FROM VALUES (2, NULL), (1, 'a') v(a, b)",
        "SELECT * FROM VALUES (1, 'a'), (NULL, '2') v(a, b)",
        "SELECT * FROM VALUES (1, NULL), (2, 'a') v(a, b)",
        "SELECT * FROM VALUES (1, 'a'), (1, 'a') v(a, b)",
    ]
    fingerprints = [
        stage(spark.sql(q), tmp_path, with_fingerprint=True).fingerprint for q in queries
    ]
    assert fingerprints[0] == fingerprints[1]
    assert len(set(fingerprints)) == 4


def test_a_fingerprint_is_that_of_the_rows_read_back(spark: SparkSession, tmp_path: Path) -> None:
    df = spark.sql(
        "SELECT map('k', array(named_struct('t', TIMESTAMP'2013-01-02 03:04:05.123456Z'))) m, "
        "float('nan') f, -0D z, X'AA' b, CAST(1.5 AS DECIMAL(5, 2)) d, CAST(NULL AS INT) n"
    )
    schema = assign_ids(schema_of(df))
    written = stage(df, tmp_path, schema, with_fingerprint=True)
    read = scan.read(spark, scan.Scan("main.t", schema, FileSet(written.files)))
    assert fingerprint.of(read, schema) == written.fingerprint


TABLE = assign_ids(
    TableSchema(
        (
            Column("Id", "int64"),
            Column("name", "varchar"),
            Column("price", "decimal(10,2)"),
            Column("s", "struct", children=(Column("x", "int32"), Column("y", "varchar"))),
        )
    )
)
MISMATCHES = {
    "SELECT 1 AS id, 'a' AS nam": "no column 'nam'",
    "SELECT 'a' AS id": "'Id' is int64 and the rows have varchar",
    "SELECT 1 AS id, 2 AS ID": "two columns named 'ID'",
    "SELECT CAST(1 AS DECIMAL(12, 2)) AS price": "decimal",
    "SELECT 1L AS price": "decimal",
    "SELECT named_struct('x', 1, 'z', 2) AS s": "column s has no column 'z'",
    "SELECT named_struct('x', 1L) AS s": "'s.x' is int32",
    "SELECT array(1) AS name": "'name' is varchar",
}


@pytest.mark.parametrize("query", MISMATCHES)
def test_what_does_not_fit(spark: SparkSession, query: str) -> None:
    with pytest.raises(SchemaMismatch, match=MISMATCHES[query]) as caught:
        align(spark.sql(query), TABLE, table="main.t")
    assert caught.value.hint


def test_what_fits(spark: SparkSession, tmp_path: Path) -> None:
    df = spark.sql(
        "SELECT smallint(1) AS ID, 5 AS price, named_struct('Y', 'b', 'X', tinyint(2)) AS S"
    )
    with pytest.raises(SchemaMismatch, match="price"):
        align(df, TABLE, table="main.t")  # an int may need ten digits, the column has eight
    written = stage(df.drop("price"), tmp_path, TABLE)
    assert back(spark, written, TABLE) == [(1, None, None, (2, "b"))]


def test_untyped_nulls_take_the_table_s_types(spark: SparkSession, tmp_path: Path) -> None:
    df = spark.sql("SELECT NULL AS id, named_struct('x', NULL, 'y', 'a') AS s")
    assert back(spark, stage(df, tmp_path, TABLE), TABLE) == [(None, None, None, (None, "a"))]


CHECKED = {
    "uint8": ("smallint(255)", "smallint(256)"),
    "uint64": ("18446744073709551615", "-1"),
    "timestamp_s": ("TIMESTAMP_NTZ'1969-01-02 03:04:05'", "TIMESTAMP_NTZ'1969-01-02 03:04:05.1'"),
    "timestamp_ms": (
        "TIMESTAMP_NTZ'2013-01-02 03:04:05.12'",
        "TIMESTAMP_NTZ'2013-01-02 03:04:05.1234'",
    ),
    "uuid": ("'00112233-4455-6677-8899-aabbccddeeff'", "'00112233'"),
}


@pytest.mark.parametrize("kind", CHECKED)
def test_values_that_the_type_does_not_hold(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    schema = TableSchema((Column("c", kind, 1),))
    right, wrong = CHECKED[kind]
    assert stage(spark.sql(f"SELECT {right} AS c"), tmp_path, schema).rows == 1
    with pytest.raises(QueryFailed, match="column c holds"):
        stage(spark.sql(f"SELECT {wrong} AS c"), tmp_path, schema)


def test_not_null_and_nanoseconds(spark: SparkSession, tmp_path: Path) -> None:
    strict = TableSchema((Column("c", "int32", 1, nullable=False),))
    with pytest.raises(QueryFailed, match=r'column c is NOT NULL.*: \{"c":null\}'):
        stage(spark.sql("SELECT CAST(NULL AS INT) AS c"), tmp_path, strict)
    nanos = TableSchema((Column("c", "timestamp_ns", 1),))
    with pytest.raises(UnsupportedFeature, match="timestamp_ns"):
        stage(spark.sql("SELECT TIMESTAMP_NTZ'2013-01-02' AS c"), tmp_path, nanos)


def test_missing_columns_take_their_default(spark: SparkSession, tmp_path: Path) -> None:
    schema = TableSchema((Column("a", "int32", 1), Column("b", "int32", 2, default="4")))
    assert back(spark, stage(spark.sql("SELECT 1 AS a"), tmp_path, schema), schema) == [(1, 4)]


def test_files_are_as_the_options_say(spark: SparkSession, tmp_path: Path) -> None:
    options = {
        "parquet_compression": "zstd",
        "parquet_compression_level": "9",
        "parquet_row_group_size": "100",
        "parquet_version": "V2",
        "target_file_size": "4000",
    }
    df = spark.range(0, 1000, 1, 1)
    files = stage(df, tmp_path, settings=write_settings(options.get)).files
    assert [file.record_count for file in files] == [500, 500]
    parquet = pq.ParquetFile(files[0].path)
    assert parquet.metadata.row_group(0).num_rows == 100
    assert parquet.metadata.row_group(0).column(0).compression == "ZSTD"
    assert "DELTA_BINARY_PACKED" in parquet.metadata.row_group(0).column(0).encodings
    small = write_settings({"parquet_row_group_size_bytes": "1000"}.get)
    (file,) = stage(df, tmp_path, settings=small).files
    assert pq.ParquetFile(file.path).num_row_groups > 1


@pytest.mark.parametrize("codec", ["lz4", "lz4_raw"])
def test_lz4_is_the_one_that_duckdb_reads(spark: SparkSession, tmp_path: Path, codec: str) -> None:
    settings = write_settings({"parquet_compression": codec}.get)
    (file,) = stage(
        spark.range(0, 10, 1, 1).selectExpr("id AS a"), tmp_path, settings=settings
    ).files
    assert pq.ParquetFile(file.path).metadata.row_group(0).column(0).compression == "LZ4"
    read = duckdb.sql(f"SELECT sum(a) FROM read_parquet('{file.path}')").fetchone()
    assert read == (45,)


def test_rows_per_file() -> None:
    schema = TableSchema((Column("a", "int64"), Column("b", "varchar")))
    assert WriteSettings().rows_per_file(schema) == 512_000_000 // 40
    assert WriteSettings(row_bytes=10).rows_per_file(schema) == 51_200_000
    assert WriteSettings(row_bytes=1e9).rows_per_file(schema) == 512_000_000 // 65_536
    assert WriteSettings(target_file_size=1).rows_per_file(schema) == 1


def test_codecs() -> None:
    assert parquet_options(None, None) == {"compression": "snappy"}
    assert parquet_options("ZSTD", "9")["parquet.compression.codec.zstd.level"] == "9"
    with pytest.raises(UnsupportedFeature, match="'brotli'"):
        parquet_options("brotli", None)
    with pytest.raises(UnsupportedFeature, match="snappy has no levels"):
        parquet_options(None, "3")


# Nothing listens there: who asks it has written, or has tried to.
NOWHERE = {"access_key": "k", "secret_key": "s", "endpoint": "http://127.0.0.1:1", "region": "r"}
QUIET = {"mapreduce.fileoutputcommitter.marksuccessfuljobs": "false"}


def test_local_writes_know_no_committer(spark: SparkSession, tmp_path: Path) -> None:
    assert publishing_options(spark, str(tmp_path)) == QUIET


def test_the_committer_file_is_named(spark: SparkSession) -> None:
    """What the session has for a user's own writes is not to publish the lake's."""
    storage.use("s3://plain/x/", storage.Storage.of(NOWHERE))
    assert publishing_options(spark, "s3://plain/x/") == QUIET | {"fs.s3a.committer.name": "file"}


@pytest.mark.skipif(bool(s3.jars()), reason="with PENSTOCK_TEST_S3 the session has the classes")
def test_magic_without_its_classes(spark: SparkSession, tmp_path: Path) -> None:
    uri = f"ducklake:sqlite:{tmp_path / 'meta.sqlite'}"
    settings = {**NOWHERE, "committer": "magic"}
    with Lake.attach(
        uri, data_path="s3://nowhere/l/", spark=spark, storage=settings, new_catalog=True
    ) as lake:
        before = lake.catalog.latest()
        with pytest.raises(EnvironmentMissing) as error:
            lake.table("t").append(spark.range(3))
        assert lake.catalog.latest() == before
    assert "BindingParquetOutputCommitter" in error.value.message
    assert "spark-hadoop-cloud_2.13-4.1.2.jar" in (error.value.hint or "")
    spark.range(3).write.parquet(f"{tmp_path}/own")
    assert spark.read.parquet(f"{tmp_path}/own").count() == 3


def test_hadoop_finds_the_directories_of_its_job(spark: SparkSession, tmp_path: Path) -> None:
    """What it found missing it would make itself, a process each; what it does not use stays."""
    jvm: Any = spark.sparkContext._jvm  # to ask Hadoop
    hadoop = jvm.org.apache.hadoop
    attempt = hadoop.mapreduce.task.TaskAttemptContextImpl(
        hadoop.conf.Configuration(), hadoop.mapreduce.TaskAttemptID()
    )
    committer = hadoop.mapreduce.lib.output.FileOutputCommitter(
        hadoop.fs.Path(str(tmp_path)), attempt
    )
    of_job = committer.getJobAttemptPath(attempt).toUri().getPath()
    make_job_directory(str(tmp_path))
    assert Path(of_job).is_dir()
    assert [path.name for path in Path(of_job).iterdir()] == ["_temporary"]
    spark.range(3).write.mode("append").parquet(str(tmp_path))
    assert {path.suffix or path.name for path in tmp_path.iterdir()} <= {
        ".parquet",
        ".crc",
        "_SUCCESS",
    }
