"""A DataFrame as staged data files: written by Spark, described by their footers.

Every write has a directory of its own, ``<table>/[column=value/]<uuid>/``: two jobs in one
directory would destroy each other's temporary files. Until a commit registers the files nobody
sees them, and what no commit registers is an orphan.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from penstock.lake import storage
from penstock.lake.format.files import DataFile
from penstock.lake.format.naming import new_uuid7
from penstock.lake.format.objects import SortKey
from penstock.lake.format.partitioning import PartitionKey, directory_names, hive_directory
from penstock.lake.format.schema import TableSchema
from penstock.lake.format.types import needs_mapping
from penstock.lake.reading.conversions.spark_types import as_parquet
from penstock.lake.reading.parquet.footers import describe
from penstock.lake.spark.failures import explained
from penstock.lake.spark.session import prepare
from penstock.lake.spark.session_objects import kept_with
from penstock.lake.writing import fingerprint, publishing
from penstock.lake.writing.settings import WriteSettings
from penstock.lake.writing.spread import (
    helper_names,
    hive_paths,
    sort_columns,
    values_of,
    with_helpers,
)

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame, Observation


@dataclass(frozen=True, slots=True)
class Target:
    """Where rows are written to, and how.

    ``partition_by`` are the keys of the table's partitioning, in their order; ``values`` their
    texts when all rows have the same ones, else every row goes where it belongs. ``sort_by`` are
    what the rows are sorted by, in each file and from file to file.
    """

    table: str
    path: str  # the table's directory, ends in "/"
    schema: TableSchema
    partition_by: tuple[PartitionKey, ...] = ()
    partition_id: int | None = None
    values: tuple[str | None, ...] | None = None
    sort_by: tuple[SortKey, ...] = ()
    settings: WriteSettings = field(default_factory=WriteSettings)

    @property
    def spreads(self) -> bool:
        """Whether the rows go to more than one partition, for all that is known."""
        return bool(self.partition_by) and self.values is None


@dataclass(frozen=True, slots=True)
class Written:
    """``directory`` is None when no file was kept, ``fingerprint`` unless it was asked for and the
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
    """Write ``df.select(columns)`` and describe the files; no pass over the data but Spark's own.

    ``columns`` come from `conversions.align`. Empty files are left out. Raises QueryFailed when
    the query fails, DataPathError when nothing can be written, DataFileMissing when a file that
    the query reads is gone, EnvironmentMissing when Spark lacks what publishes the files; nothing
    staged is left behind then.
    """
    from pyspark.sql import Observation

    published = publishing.options(df.sparkSession, target.path)
    directory = _directory(target)
    observed = with_fingerprint and fingerprint.can_tell(target.schema)
    observation = Observation() if observed else None
    try:
        publishing.make_job_directory(directory)
        with explained(table=target.table):
            # The rows' session need not be one that the lake has read with, which is prepared.
            prepare(df.sparkSession, storage.spark_settings(target.path))
            frame = _arranged(df.select(*columns), target, observation)
            frame = as_parquet(frame, target.schema)
            writer = frame.write.mode("append").options(**published, **_options(target))
            if target.spreads:
                writer = writer.partitionBy(*helper_names(target.partition_by))
            writer.parquet(directory)
        files = _described(directory, target)
        # Only after success: the values of a job that failed would never come.
        seen = None if observation is None else fingerprint.text(observation.get)
    except BaseException:
        storage.remove_directory(directory)
        raise
    if not files:
        storage.remove_directory(directory)
        return Written(fingerprint=seen)
    return Written(files, sum(file.record_count for file in files), directory, seen)


def _arranged(frame: DataFrame, target: Target, observation: Observation | None) -> DataFrame:
    """The rows where they are to be written, and in order.

    A table that is neither partitioned nor sorted is written as its rows come. Partitions are
    gathered, else every task would write a file for each; the adaptive execution joins small ones
    in a task and splits large ones. Sorted rows are ranged: each file has a span of its own.
    """
    order = sort_columns(target.sort_by) if target.settings.sort else []

    def observed(rows: DataFrame) -> DataFrame:
        if observation is None:
            return rows
        key = ("fingerprint", target.schema)
        kept = kept_with(rows.sparkSession)
        sums = kept.get(key, lambda: fingerprint.aggregates(target.schema))
        return rows.observe(observation, *sums)

    if not target.spreads:
        # Ranging samples its input by a job of its own, which must not be observed.
        return observed(frame.orderBy(*order) if order else frame)
    helpers = helper_names(target.partition_by)
    frame = with_helpers(observed(frame), target.partition_by).hint("rebalance", *helpers)
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
    found: list[DataFile] = []
    for staged in describe(storage.list_files(directory), target.schema):
        if staged.record_count == 0:
            # Of a task without rows: no commit would ever register it.
            storage.remove_file(staged.path)
            continue
        file = replace(staged, uses_mapping=mapped)
        if target.partition_by:
            below = file.path[len(directory) :]
            values = target.values or values_of(directory, below, target.partition_by)
            file = replace(file, partition_id=target.partition_id, partition_values=values)
        found.append(file)
    return tuple(_in_place(directory, found, target) if target.spreads else found)


def _in_place(directory: str, files: Sequence[DataFile], target: Target) -> list[DataFile]:
    """The files in the directories of their partitions.

    In an object store they stay where they are: there a new name is a copy, and the format goes by
    the catalog's path alone.
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
