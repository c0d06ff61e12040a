"""How files are published: options of a write, and what Spark has to have for them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from penstock.errors import EnvironmentMissing
from penstock.lake import storage
from penstock.lake.lake import Lake
from penstock.lake.writing import publishing
from tests import s3

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

# Nothing listens there: who asks it has written, or has tried to.
NOWHERE = {"access_key": "k", "secret_key": "s", "endpoint": "http://127.0.0.1:1", "region": "r"}
QUIET = {"mapreduce.fileoutputcommitter.marksuccessfuljobs": "false"}


def test_local_writes_know_no_committer(spark: SparkSession, tmp_path: Path) -> None:
    assert publishing.options(spark, str(tmp_path)) == QUIET


def test_the_committer_file_is_named(spark: SparkSession) -> None:
    """What the session has for a user's own writes is not to publish the lake's."""
    storage.use("s3://plain/x/", storage.Storage.of(NOWHERE))
    assert publishing.options(spark, "s3://plain/x/") == QUIET | {"fs.s3a.committer.name": "file"}


@pytest.mark.skipif(bool(s3.jars()), reason="with PENSTOCK_TEST_S3 the session has the classes")
def test_magic_without_its_classes(spark: SparkSession, tmp_path: Path) -> None:
    uri = f"ducklake:sqlite:{tmp_path / 'meta.sqlite'}"
    told = {**NOWHERE, "committer": "magic"}
    with Lake.attach(
        uri, data_path="s3://nowhere/l/", spark=spark, storage=told, new_catalog=True
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
    publishing.make_job_directory(str(tmp_path))
    assert Path(of_job).is_dir()
    assert [path.name for path in Path(of_job).iterdir()] == ["_temporary"]
    spark.range(3).write.mode("append").parquet(str(tmp_path))
    assert {path.suffix or path.name for path in tmp_path.iterdir()} <= {
        ".parquet",
        ".crc",
        "_SUCCESS",
    }
