"""Groups of files written anew by Spark's executors, side by side.

Each group is one task, which does what the calling process does with small ones (`writing`): by
Arrow, which keeps every type, row id and field id as the files have them, also those that Spark has
no type or no place for (UUIDs, unsigned numbers, ids inside lists). So the executors' Python needs
Penstock. Through a plain Python UDF: it is of the public API, Spark Connect's too, and needs no
pandas. What comes back are descriptions of files, one for each group.
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
from penstock.lake.storage import Storage, list_files, remove_file, told, use

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class Part:
    """A group of files, and what becomes of it."""

    files: Group
    job: Job


def write_on_spark(spark: SparkSession, parts: Sequence[Part]) -> list[NewFile]:
    """The new files of these parts, in their order, each written as by `write_together`.

    When one fails nothing is left behind. (A task that is lost but goes on writing leaves an
    orphan.) Raises what `write_together` does, EnvironmentMissing when the executors have
    no Penstock, and LakeError for what else Spark itself fails at.
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
    """For one task: the sources without what it does not look at."""
    files = tuple(replace(file, stats=()) for file in part.files)
    used = {file.mapping_id for file in files}
    mappings = {key: one for key, one in part.job.mappings.items() if key in used}
    job = replace(part.job, mappings=mappings, mark=mark)
    return pickle.dumps((files, job, told(job.table.path)))


def _run(
    spark: SparkSession, rows: Sequence[tuple[int, int, bytes]]
) -> dict[int, list[NewFile] | LakeError]:
    from pyspark.errors import PySparkException
    from pyspark.sql.functions import udf
    from pyspark.sql.types import BinaryType

    write = udf(_written, BinaryType(), useArrow=False).asNondeterministic()
    try:
        found = (
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
            f"Spark failed to write files anew: {str(error).splitlines()[0]}",
            hint="nothing was changed; Resources(spark_from=None) leaves Spark out of it",
        ) from error
    return {row.at: pickle.loads(row.result) for row in found}


def lacks(error: Exception, module: str) -> bool:
    """Whether a task failed because the executors' Python has not this module."""
    return f"No module named '{module}'" in str(error)


def _written(packed: bytes) -> bytes:
    """In a task: write one part, and what came of it."""
    files, job, storage = pickle.loads(packed)
    return pickle.dumps(_outcome(files, job, storage))


def _outcome(files: Group, job: Job, storage: Storage | None) -> list[NewFile] | LakeError:
    try:
        use(job.table.path, storage)
        return write_together(files, job)
    except LakeError as error:  # as itself: Spark would make text of it
        return error


def _sweep(parts: Sequence[Part], mark: str) -> None:
    """Remove what tasks wrote that were done before another one failed."""
    for directory in {part.job.table.path for part in parts}:
        for path in list_files(directory):
            if f"/penstock-{mark}-" in path:
                remove_file(path)


Group = tuple[DataFile, ...]
