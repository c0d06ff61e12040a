"""How Spark publishes the files of one write: options of that write, never of the session.

A setting of the session would be there for a user's other writes as well, which fail where its
class is missing. Spark copies a write's options into the Hadoop configuration of its job, where the
committers look, and its own commit protocol works with S3A's through this one class of
``spark-hadoop-cloud``: the session's ``spark.sql.sources.commitProtocolClass`` stays what it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from penstock.errors import EnvironmentMissing
from penstock.lake import storage
from penstock.lake.spark.session_objects import kept_with

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_FACTORY = "org.apache.hadoop.fs.s3a.commit.S3ACommitterFactory"
_COMMITTER = "org.apache.spark.internal.io.cloud.BindingParquetOutputCommitter"
_MAGIC: Mapping[str, str] = {
    "mapreduce.outputcommitter.factory.scheme.s3": _FACTORY,
    "mapreduce.outputcommitter.factory.scheme.s3a": _FACTORY,
    "spark.sql.parquet.output.committer.class": _COMMITTER,
}
# Of spark-hadoop-cloud this is the newest that there is, and what is tested with Spark 4.3.0.
_JARS: Mapping[str, str] = {
    _FACTORY: "hadoop-aws-3.5.0.jar",
    _COMMITTER: "spark-hadoop-cloud_2.13-4.1.2.jar",
}
_PROBE = "_penstock_is_there"
_JOB = "_temporary/0/_temporary"  # of the job's first attempt, and of its tasks


def options(spark: SparkSession, directory: str) -> dict[str, str]:
    """Options of a Parquet write below ``directory``.

    Raises EnvironmentMissing where Spark lacks a class that they name.
    """
    found = {"mapreduce.fileoutputcommitter.marksuccessfuljobs": "false"}
    if storage.bucket_of(directory) is None:
        return found
    committer = (storage.told(directory) or storage.Storage()).committer
    found["fs.s3a.committer.name"] = committer
    if committer != "magic":
        return found
    kept_with(spark).get(_PROBE, lambda: _check(spark))
    return {**found, **_MAGIC}


def make_job_directory(directory: str) -> None:
    """Make what Hadoop's committer makes below a local directory before the tasks begin.

    It starts a process, ``chmod``, for each that it makes itself: some 10 ms of a small write. It
    takes them away when the job ends. Raises DataPathError.
    """
    if not storage.is_remote(directory):
        storage.make_directory(f"{directory}/{_JOB}")


def _check(spark: SparkSession) -> None:
    missing = [name for name in _JARS if not _is_there(spark, name)]
    if not missing:
        return
    jars = " and ".join(_JARS[name] for name in missing)
    raise EnvironmentMissing(
        f"s3_committer = 'magic' needs {missing[-1]}, which this Spark has not",
        hint=f"add {jars} to spark.jars, without what they depend on (scripts/s3-jars.sh fetches "
        "them), or set s3_committer = 'file'",
        data={"jars": [_JARS[name] for name in missing]},
    )


def _is_there(spark: SparkSession, name: str) -> bool:
    """Whether Spark can load a class: it looks when a function is to be of it, and calls nothing.

    What else fails says nothing of the class; the write itself will.
    """
    from pyspark.errors import PySparkException

    try:
        spark.sql(f"CREATE OR REPLACE TEMPORARY FUNCTION {_PROBE} AS '{name}'")
        spark.sql(f"DROP TEMPORARY FUNCTION IF EXISTS {_PROBE}")
    except PySparkException as error:
        return error.getCondition() != "CANNOT_LOAD_FUNCTION_CLASS"
    return True
