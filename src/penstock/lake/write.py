"""A DataFrame as staged data files: written by Spark, described by their footers.

Every write has a directory of its own, ``<table>/[column=value/]<uuid>/``: two jobs in one
directory would destroy each other's temporary files. Until a commit registers the files nobody
sees them, and what no commit registers is an orphan.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from penstock.errors import DataPathError, UnsupportedFeature
from penstock.lake import fingerprint
from penstock.lake.bounds import base_type
from penstock.lake.failures import explained
from penstock.lake.files import DataFile
from penstock.lake.footers import describe, list_files, remove_directory, remove_file
from penstock.lake.naming import new_uuid7
from penstock.lake.partitioning import hive_directory
from penstock.lake.schema import Column, TableSchema
from penstock.lake.spark_types import quoted
from penstock.lake.types import needs_mapping

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

_HELPER = "_penstock_part"
_SEGMENT = re.compile(rf"{_HELPER}(\d+)=([^/]*)")
_CODECS = {"snappy", "gzip", "zstd", "uncompressed", "lz4", "brotli"}
_AS_TEXT = (
    *("boolean", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("date", "timestamp", "timestamp_s", "timestamp_ms", "varchar", "json", "uuid", "decimal"),
)


@dataclass(frozen=True, slots=True)
class Target:
    """Where rows are written to.

    ``partition_by`` are the columns of the table's partitioning, in key order; ``values`` their
    texts when all rows have the same ones, else every row goes where it belongs.
    """

    table: str
    path: str  # the table's directory, ends in "/"
    schema: TableSchema
    partition_by: tuple[Column, ...] = ()
    partition_id: int | None = None
    values: tuple[str | None, ...] | None = None
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Written:
    """``directory`` is None when no file was kept, ``fingerprint`` unless it was asked for."""

    files: tuple[DataFile, ...] = ()
    rows: int = 0
    directory: str | None = None
    fingerprint: str | None = None


def parquet_options(compression: str | None, level: str | None) -> dict[str, str]:
    """Spark's options for the lake's ``parquet_compression`` and ``parquet_compression_level``."""
    codec = (compression or "snappy").lower()
    if codec not in _CODECS:
        raise UnsupportedFeature(
            f"parquet_compression is {codec!r}, which Spark does not write",
            hint=f"set it to one of {', '.join(sorted(_CODECS))}",
        )
    found = {"compression": "lz4raw" if codec == "lz4" else codec}
    if level is not None and codec == "zstd":
        found["parquet.compression.codec.zstd.level"] = level
    return found


def write(
    df: DataFrame,
    columns: Sequence[SparkColumn],
    target: Target,
    *,
    with_fingerprint: bool = False,
) -> Written:
    """Write ``df.select(columns)`` and describe the files; no pass over the data but Spark's own.

    ``columns`` come from `penstock.lake.align`. Empty files are left out. Raises QueryFailed when
    the query fails, DataPathError when nothing can be written, DataFileMissing when a file that
    the query reads is gone; nothing staged is left behind then.
    """
    from pyspark.sql import Observation

    directory = _directory(target)
    frame = df.select(*columns)
    observation = Observation()
    if with_fingerprint:
        frame = frame.observe(observation, *fingerprint.aggregates(target.schema))
    spread = bool(target.partition_by) and target.values is None
    if spread:
        frame = frame.select("*", *_helpers(target.partition_by))
    try:
        with explained(table=target.table):
            writer = frame.write.mode("append").options(**_options(target))
            if spread:
                writer = writer.partitionBy(*_helper_names(target.partition_by))
            writer.parquet(directory)
        files = _describe(directory, target, spread)
        # Only after success: the values of a job that failed would never come.
        seen = fingerprint.text(observation.get) if with_fingerprint else None
    except BaseException:
        remove_directory(directory)
        raise
    if not files:
        remove_directory(directory)
        return Written(fingerprint=seen)
    return Written(files, sum(file.record_count for file in files), directory, seen)


def _options(target: Target) -> dict[str, str]:
    return {
        **target.options,
        "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
        "maxRecordsPerFile": "0",
    }


def _directory(target: Target) -> str:
    segment = ""
    if target.partition_by and target.values is not None:
        segment = hive_directory([c.name for c in target.partition_by], target.values)
    directory = f"{target.path}{segment}{new_uuid7()}"
    if "://" not in directory:
        _make_parent(Path(directory).parent)
    return directory


def _make_parent(parent: Path) -> None:
    try:
        parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _unwritable(parent, error.strerror or str(error)) from error
    if not os.access(parent, os.W_OK | os.X_OK):
        raise _unwritable(parent, "permission denied")


def _unwritable(parent: Path, why: str) -> DataPathError:
    return DataPathError(
        f"{parent} in the lake's data path cannot be written: {why}",
        hint="check that the data path exists and is writable",
        data={"path": str(parent)},
    )


def _helper_names(columns: Sequence[Column]) -> list[str]:
    return [f"{_HELPER}{at}" for at, _ in enumerate(columns)]


def _helpers(columns: Sequence[Column]) -> list[SparkColumn]:
    """Columns that say where a row goes, so that the partition columns stay in the files.

    ``v`` and the value's text, or ``n`` for NULL: as a directory an empty text and NULL are alike.
    """
    from pyspark.sql import functions as fn

    helpers: list[SparkColumn] = []
    for name, column in zip(_helper_names(columns), columns, strict=True):
        marked = fn.concat(fn.lit("v"), _partition_text(column))
        helpers.append(fn.coalesce(marked, fn.lit("n")).alias(name))
    return helpers


def _partition_text(column: Column) -> SparkColumn:
    """The text that the catalog keeps for the value, as `partitioning.partition_value` has it."""
    from pyspark.sql import functions as fn

    value = fn.col(quoted(column.name))
    kind = base_type(column.type)
    if kind == "timestamptz":
        epoch = fn.lit("1970-01-01 00:00:00").cast("timestamp_ntz")
        utc = fn.timestamp_add("MICROSECOND", fn.unix_micros(value), epoch)
        return fn.concat(utc.cast("string"), fn.lit("+00"))
    if kind not in _AS_TEXT:
        raise UnsupportedFeature(
            f"partitioning by column {column.name!r} of type {column.type} is not written",
            hint="partition by a column of text, whole numbers, dates or times",
            data={"column": column.name, "type": column.type},
        )
    return value.cast("string")


def _describe(directory: str, target: Target, spread: bool) -> tuple[DataFile, ...]:
    mapped = needs_mapping(target.schema)
    found: list[DataFile] = []
    for staged in describe(list_files(directory), target.schema):
        if staged.record_count == 0:
            remove_file(staged.path)  # of a task without rows: no commit would ever register it
            continue
        file = replace(staged, uses_mapping=mapped)
        if target.partition_by:
            values = _values_of(file.path[len(directory) :]) if spread else target.values
            file = replace(file, partition_id=target.partition_id, partition_values=values)
        found.append(file)
    return tuple(found)


def _values_of(path: str) -> tuple[str | None, ...]:
    """Partition values from the helper directories; Spark escapes them with ``%XX``."""
    texts = [unquote(text) for _, text in _SEGMENT.findall(path)]
    return tuple(text[1:] if text.startswith("v") else None for text in texts)
