"""Reading a given list of Parquet files with Spark, whatever their paths look like."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING

from penstock.lake.reading.parquet import manifest
from penstock.lake.reading.parquet.identity import check_size
from penstock.lake.spark.failures import explained, file_corrupt, file_missing
from penstock.lake.spark.session_objects import kept_with

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameReader, SparkSession
    from pyspark.sql.types import StructType

_GLOB = re.compile(r"[\[\]{}*?\\]")


def read_files(
    spark: SparkSession,
    schema: StructType,
    told: Mapping[str, int],
    *,
    table: str | None = None,
    snapshot_id: int | None = None,
) -> DataFrame:
    """The rows of these files, at least one, as ``schema``: fields with an id match by it.

    ``told`` are their sizes in bytes by path, as the catalog has them.

    Each file is named, so Spark infers no partition columns from directories. A path without a
    scheme is on the local disk, whatever file system Spark takes for its default. Raises
    DataFileMissing when one is gone, DataFileCorrupt when one has another size (an empty one is no
    error to Spark).
    """
    paths = list(told)
    elsewhere = "connect" in type(spark).__module__  # its server need not have this disk
    sizes = {} if elsewhere else _look(told, table, snapshot_id)
    with explained(table=table, snapshot_id=snapshot_id):
        if len(sizes) == len(paths) and manifest.serves(spark, len(paths)):
            return manifest.read(_reader(spark, schema), sizes)
        return _read(spark, schema, paths)


def _reader(spark: SparkSession, schema: StructType) -> DataFrameReader:
    """Never fewer rows than the catalog says, whatever the session is set to."""
    return spark.read.schema(schema).options(ignoreMissingFiles="false", mergeSchema="false")


def _look(told: Mapping[str, int], table: str | None, snapshot_id: int | None) -> dict[str, int]:
    """What is on a local disk is looked at first: some 2 µs a file. The sizes of these files."""
    sizes: dict[str, int] = {}
    for path, wanted in told.items():
        if "://" in path:
            continue
        try:
            size = os.stat(path).st_size  # noqa: PTH116 - a Path costs more than the look
        except FileNotFoundError:
            raise file_missing(path, table, snapshot_id) from None
        if size == 0:
            raise file_corrupt(path, "it is empty", table, snapshot_id)
        check_size(path, size, wanted, table, snapshot_id)
        sizes[path] = size
    return sizes


def _read(spark: SparkSession, schema: StructType, paths: Sequence[str]) -> DataFrame:
    """Spark takes paths for glob patterns: characters that mean something there are escaped.

    Hadoop cannot glob a path with a colon, escaped or not. Such files are read one by one with
    globbing off (``__globPaths__``, internal to Spark): with several paths that option reads each
    file several times over.
    """
    # A reader is changed by its options: the one that is kept is given no more of them.
    reader = kept_with(spark).get(("reader", schema), lambda: _reader(spark, schema))
    odd = [_with_scheme(path) for path in paths if _GLOB.search(path)]
    if not odd or not any(":" in path.split("://", 1)[1] for path in odd):
        return reader.parquet(*(_GLOB.sub(r"\\\g<0>", _with_scheme(path)) for path in paths))
    plain = [_with_scheme(path) for path in paths if not _GLOB.search(path)]
    parts = [reader.parquet(*plain)] if plain else []
    alone = _reader(spark, schema).option("__globPaths__", "false")
    parts += [alone.parquet(path) for path in odd]
    return reduce(lambda a, b: a.union(b), parts)


def _with_scheme(path: str) -> str:
    return f"file://{path}" if path.startswith("/") else path
