"""Writing a DataFrame as staged data files with Spark; their footers describe them.

Every write has a directory of its own, ``<table>/[column=value/]<uuid>/``: two jobs in one
directory would destroy each other's temporary files. Files are invisible until a commit registers
them, and orphans if no commit does.

Options of the write, never of the session, decide how Spark publishes the files: a session's
setting would also apply to the user's other writes, which fail where its class is missing. Spark
copies a write's options into the Hadoop configuration of its job, where the committers look, and
its own commit protocol works with S3A's committers through one class of ``spark-hadoop-cloud``, so
the session's ``spark.sql.sources.commitProtocolClass`` stays unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from penstock.errors import EnvironmentMissing
from penstock.lakes import storage
from penstock.lakes.format.files import DataFile
from penstock.lakes.format.inlined.text import may_inline, stored
from penstock.lakes.format.inlined.values import arrow_schema
from penstock.lakes.format.naming import new_uuid7
from penstock.lakes.format.objects import SortKey
from penstock.lakes.format.partitioning import PartitionKey, directory_names, hive_directory
from penstock.lakes.format.schema import EMBEDDED_ROW_ID, MAPPED_ROW_ID, TableSchema
from penstock.lakes.format.types import needs_mapping
from penstock.lakes.reading.conversions.spark_types import as_parquet
from penstock.lakes.reading.parquet.footers import describe
from penstock.lakes.storage import open_system
from penstock.lakes.writing import fingerprint
from penstock.lakes.writing.settings import WriteSettings
from penstock.lakes.writing.spread import (
    ValuesNotProven,
    helper_names,
    hive_paths,
    sort_columns,
    values_of,
    with_helpers,
)
from penstock.lazy import pa, pq
from penstock.spark.failures import explained
from penstock.spark.functions import run_sql
from penstock.spark.session import cache_of, prepare

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame, Observation, SparkSession


@dataclass(frozen=True, slots=True)
class Target:
    """The directory that rows are written to, and how to write them.

    ``partition_by`` are the keys of the table's partitioning, in order; ``values`` are their texts
    when all rows belong to one partition, else rows are spread over partitions. ``sort_by`` are
    the keys that rows are sorted by, in each file and from file to file. ``partitions`` is the
    number of partitions that the rows belong to, where it is known.
    """

    table: str
    path: str  # the table's directory, ends in "/"
    schema: TableSchema
    partition_by: tuple[PartitionKey, ...] = ()
    partition_id: int | None = None
    values: tuple[str | None, ...] | None = None
    sort_by: tuple[SortKey, ...] = ()
    settings: WriteSettings = field(default_factory=WriteSettings)
    partitions: int | None = None

    @property
    def spreads(self) -> bool:
        """Return whether the rows may belong to more than one partition."""
        return bool(self.partition_by) and self.values is None


@dataclass(frozen=True, slots=True)
class Written:
    """``directory`` is None when no file remained, ``fingerprint`` unless it was requested and the
    columns have one.
    """

    files: tuple[DataFile, ...] = ()
    rows: int = 0
    directory: str | None = None
    fingerprint: str | None = None


def write(
    df: DataFrame,
    columns: Sequence[SparkColumn],
    target: Target,
    *,
    with_fingerprint: bool = False,
) -> Written:
    """Write ``df.select(columns)`` in a single pass by Spark, and describe the files.

    ``columns`` come from `conversions.align`. Empty files are left out. Raises QueryFailed when
    the query fails, DataPathError when nothing can be written, DataFileMissing when a file that
    the query reads is missing, EnvironmentMissing when Spark lacks the classes that publish the
    files; it leaves no staged files behind then.
    """
    observed = with_fingerprint and fingerprint.can_tell(target.schema)
    rows = df.select(*columns)
    try:
        return _write(rows, target, observed=observed, hashed=True)
    except ValuesNotProven:
        return _write(rows, target, observed=observed, hashed=False)


def _write(rows: DataFrame, target: Target, *, observed: bool, hashed: bool) -> Written:
    """Raises ValuesNotProven as `spread.values_of` does, only where ``hashed``."""
    from pyspark.sql import Observation

    published = publishing_options(rows.sparkSession, target.path)
    directory = _directory(target)
    observation = Observation() if observed else None
    try:
        make_job_directory(directory)
        with explained(table=target.table):
            # The rows may come from a session that the lake has not prepared yet.
            prepare(rows.sparkSession, storage.spark_settings(target.path))
            frame = _arranged(rows, target, observation, hashed=hashed)
            frame = as_parquet(frame, target.schema)
            writer = frame.write.mode("append").options(**published, **_options(target))
            if target.spreads:
                writer = writer.partitionBy(*helper_names(target.partition_by))
            writer.parquet(directory)
        files = _described(directory, target)
        # Only after success: waiting for the values of a failed job would never end. Of no rows
        # there may be none: Spark drops what observes a stage that turns out to be empty.
        values = {} if observation is None or not files else observation.get
        seen = None if observation is None else fingerprint.text(values)
    except BaseException:
        storage.remove_directory(directory)
        raise
    if not files:
        storage.remove_directory(directory)
        return Written(fingerprint=seen)
    return Written(files, sum(file.record_count for file in files), directory, seen)


def _arranged(
    frame: DataFrame, target: Target, observation: Observation | None, *, hashed: bool
) -> DataFrame:
    """The rows, shuffled to the tasks that write them, and sorted.

    A table that is neither partitioned nor sorted is written without a shuffle. Partitions are
    gathered, else every task would write a file for each of them; adaptive execution coalesces
    small blocks of the shuffle and splits large ones. With as many blocks as partitions it splits
    none but of a large partition, and so writes one file for each. Sorted rows are
    range-partitioned: each file has a range of its own.
    """
    order = sort_columns(target.sort_by) if target.settings.sort else []

    def observed(rows: DataFrame) -> DataFrame:
        if observation is None:
            return rows
        key = ("fingerprint", target.schema)
        cache = cache_of(rows.sparkSession)
        sums = cache.get(key, lambda: fingerprint.aggregates(target.schema))
        return rows.observe(observation, *sums)

    if not target.spreads:
        # Range partitioning samples its input by a job of its own, which must not be observed.
        return observed(frame.orderBy(*order) if order else frame)
    helpers = helper_names(target.partition_by)
    frame = with_helpers(observed(frame), target.partition_by, hashed=hashed)
    gathered = [*helpers] if target.partitions is None else [target.partitions, *helpers]
    frame = frame.hint("rebalance", *gathered)
    return frame.sortWithinPartitions(*helpers, *order) if order else frame


def _options(target: Target) -> dict[str, str]:
    return {
        **target.settings.parquet,
        "maxRecordsPerFile": str(target.settings.rows_per_file(target.schema)),
    }


def _directory(target: Target) -> str:
    segment = ""
    if target.partition_by and target.values is not None and target.settings.hive:
        segment = hive_directory(directory_names(target.partition_by), target.values)
    directory = f"{target.path}{segment}{new_uuid7()}"
    storage.make_parent(directory)
    return directory


def _described(directory: str, target: Target) -> tuple[DataFile, ...]:
    mapped = needs_mapping(target.schema)
    files: list[DataFile] = []
    for staged in describe(storage.list_files(directory), target.schema):
        if staged.record_count == 0:
            # The file of a task without rows: no commit would ever register it.
            storage.remove_file(staged.path)
            continue
        file = replace(staged, uses_mapping=mapped)
        if target.partition_by:
            values = target.values or values_of(file, directory, target.partition_by)
            file = replace(file, partition_id=target.partition_id, partition_values=values)
        files.append(file)
    return tuple(_in_place(directory, files, target) if target.spreads else files)


def _in_place(directory: str, files: Sequence[DataFile], target: Target) -> list[DataFile]:
    """Move the files to the directories of their partitions.

    In an object store they stay where they are: renaming would copy them, and readers use only the
    catalog's path.
    """
    if storage.is_remote(directory):
        return list(files)
    keys, hive = target.partition_by, target.settings.hive
    paths = [file.path for file in files]
    values = [file.partition_values or () for file in files]
    moved = hive_paths(directory, paths, values, keys, hive=hive)
    storage.move_files(zip(paths, moved, strict=True))
    storage.remove_empty(directory)
    return [replace(file, path=path) for file, path in zip(files, moved, strict=True)]


_FACTORY = "org.apache.hadoop.fs.s3a.commit.S3ACommitterFactory"
_COMMITTER = "org.apache.spark.internal.io.cloud.BindingParquetOutputCommitter"
_MAGIC: Mapping[str, str] = {
    "mapreduce.outputcommitter.factory.scheme.s3": _FACTORY,
    "mapreduce.outputcommitter.factory.scheme.s3a": _FACTORY,
    "spark.sql.parquet.output.committer.class": _COMMITTER,
}
# The newest release of spark-hadoop-cloud, which is tested with Spark 4.3.0.
_JARS: Mapping[str, str] = {
    _FACTORY: "hadoop-aws-3.5.0.jar",
    _COMMITTER: "spark-hadoop-cloud_2.13-4.1.2.jar",
}
_PROBE = "_penstock_is_there"
_JOB = "_temporary/0/_temporary"  # directories of the job's first attempt and of its tasks


def publishing_options(spark: SparkSession, directory: str) -> dict[str, str]:
    """Options of a Parquet write below ``directory``.

    Raises EnvironmentMissing where Spark lacks a class that they name.
    """
    options = {"mapreduce.fileoutputcommitter.marksuccessfuljobs": "false"}
    if storage.bucket_of(directory) is None:
        return options
    committer = (storage.storage_of(directory) or storage.Storage()).committer
    options["fs.s3a.committer.name"] = committer
    if committer != "magic":
        return options
    cache_of(spark).get(_PROBE, lambda: _check(spark))
    return {**options, **_MAGIC}


def make_job_directory(directory: str) -> None:
    """Create the directories of Hadoop's committer below a local directory before the tasks begin.

    It would start a process, ``chmod``, for each directory that it creates itself: some 10 ms of a
    small write. It removes them when the job ends. Raises DataPathError.
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
        hint=f"add {jars} to spark.jars, without what they depend on (`penstock s3-jars DIRECTORY` "
        "downloads them, by Maven), or set s3_committer = 'file'",
        data={"jars": [_JARS[name] for name in missing]},
    )


def _is_there(spark: SparkSession, name: str) -> bool:
    """Return whether Spark can load a class, which creating a function of it checks without a call.

    Other errors say nothing about the class; the write itself will report them.
    """
    from pyspark.errors import PySparkException

    try:
        run_sql(spark, f"CREATE OR REPLACE TEMPORARY FUNCTION {_PROBE} AS '{name}'")
        run_sql(spark, f"DROP TEMPORARY FUNCTION IF EXISTS {_PROBE}")
    except PySparkException as error:
        return error.getCondition() != "CANNOT_LOAD_FUNCTION_CLASS"
    return True


def rows_to_inline(
    written: Written, schema: TableSchema, limit: int
) -> tuple[pa.Table, Sequence[int | None] | None] | None:
    """The rows of staged files as the catalog stores them, and the row ids that they embed.

    The number of rows of a DataFrame is known only after the write: counting first would cost every
    large DataFrame another job. So files of no more than ``limit`` rows are read again, without
    Spark; they have passed all checks of the write by then. ``None`` where rows stay in the files
    because there are too many, or types cannot be inlined.
    """
    if not 0 < written.rows <= limit or not may_inline(schema):
        return None
    names = list(schema.names)
    parts: list[pa.Table] = []
    ids: list[int | None] = []
    for file in written.files:
        system, name = open_system(file.path)
        rows = pq.read_table(name, filesystem=system, partitioning=None)
        own = next((n for n in (EMBEDDED_ROW_ID, MAPPED_ROW_ID) if n in rows.column_names), None)
        ids += [None] * rows.num_rows if own is None else rows[own].to_pylist()
        parts.append(rows.select(names).cast(arrow_schema(schema)))
    values = stored(pa.concat_tables(parts), schema)
    if values is None:
        return None
    return values, (ids if any(row_id is not None for row_id in ids) else None)
