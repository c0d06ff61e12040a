"""Groups of files rewritten in parallel by Spark's executors.

Each group is one task, which does what the calling process does with small groups (`writing`). It
uses Arrow, which preserves every type, row id and field id, also those that Spark cannot represent
(UUIDs, unsigned numbers, ids inside lists). So the executors' Python needs Penstock. A plain Python
UDF runs it, which is public API, also of Spark Connect, and needs no pandas. Each task returns the
description of its file.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from penstock.errors import EnvironmentMissing, LakeError
from penstock.lake.format.changes import NewFile
from penstock.lake.format.files import DataFile
from penstock.lake.format.naming import new_uuid7
from penstock.lake.maintenance.writing import Job, write_together
from penstock.lake.storage import Storage, list_files, remove_file, storage_of, use

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class Part:
    """A group of files, and the job that writes it."""

    files: Group
    job: Job


def write_on_spark(spark: SparkSession, parts: Sequence[Part]) -> list[NewFile]:
    """The new files of these parts, in their order, each written as by `write_together`.

    If one fails, no files are left behind. (A lost task that continues to write leaves an orphan.)
    Raises what `write_together` raises, EnvironmentMissing when the executors lack Penstock, and
    LakeError when Spark itself fails.
    """
    mark = new_uuid7()
    largest_first = sorted(range(len(parts)), key=lambda at: -_bytes(parts[at]))
    rows = [
        (place, at, _packed(parts[at], f"{mark}-{at}")) for place, at in enumerate(largest_first)
    ]
    try:
        results = _run(spark, rows)
        failed = [result for result in results.values() if isinstance(result, LakeError)]
        if failed:
            raise failed[0]
    except BaseException:
        _sweep(parts, mark)
        raise
    return [new for at in range(len(parts)) for new in results[at]]  # type: ignore[union-attr] # no error is left


def _bytes(part: Part) -> int:
    return sum(file.size_bytes for file in part.files)


def _packed(part: Part, mark: str) -> bytes:
    """The input of one task: the sources without what the task does not need."""
    files = tuple(replace(file, stats=()) for file in part.files)
    used = {file.mapping_id for file in files}
    mappings = {key: mapping for key, mapping in part.job.mappings.items() if key in used}
    job = replace(part.job, mappings=mappings, mark=mark)
    return pickle.dumps((files, job, storage_of(job.table.path)))


def _run(
    spark: SparkSession, rows: Sequence[tuple[int, int, bytes]]
) -> dict[int, list[NewFile] | LakeError]:
    from pyspark.errors import PySparkException
    from pyspark.sql.functions import udf
    from pyspark.sql.types import BinaryType

    write = udf(_written, BinaryType(), useArrow=False).asNondeterministic()
    try:
        results = (
            spark.createDataFrame(list(rows), "place INT, at INT, part BINARY")
            .repartitionByRange(len(rows), "place")
            .select("at", write("part").alias("result"))
            .collect()
        )
    except PySparkException as error:
        if lacks(error, "penstock"):
            raise EnvironmentMissing(
                "the Python of Spark's executors has no penstock",
                hint="install it there, or leave Spark out of it by Resources(spark_from=None)",
            ) from error
        raise LakeError(
            f"Spark failed to rewrite files: {str(error).splitlines()[0]}",
            hint="nothing was changed; Resources(spark_from=None) leaves Spark out of it",
        ) from error
    return {row.at: pickle.loads(row.result) for row in results}


def lacks(error: Exception, module: str) -> bool:
    """Return whether a task failed because the executors' Python lacks this module."""
    return f"No module named '{module}'" in str(error)


def _written(packed: bytes) -> bytes:
    """In a task: write one part, and return its files or its error, pickled."""
    files, job, storage = pickle.loads(packed)
    return pickle.dumps(_outcome(files, job, storage))


def _outcome(files: Group, job: Job, storage: Storage | None) -> list[NewFile] | LakeError:
    try:
        use(job.table.path, storage)
        return write_together(files, job)
    except LakeError as error:  # as itself: Spark would make text of it
        return error


def _sweep(parts: Sequence[Part], mark: str) -> None:
    """Remove the files of tasks that finished before another one failed."""
    for directory in {part.job.table.path for part in parts}:
        for path in list_files(directory):
            if f"/penstock-{mark}-" in path:
                remove_file(path)


Group = tuple[DataFile, ...]
