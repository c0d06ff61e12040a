"""Columns that are only in the path of a file: ``.../country=a%2Fb/file.parquet``.

As DuckDB reads them (measured, 1.5.5): the path wins over a column of that name in the file, what
is escaped is unescaped, ``__HIVE_DEFAULT_PARTITION__`` and ``NULL`` are NULL.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from penstock.errors import UnsupportedFeature
from penstock.lake.conversions.spark_types import spark_type
from penstock.lake.schema import Column
from penstock.lake.values.bounds import base_type

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn

_NULL = ("__HIVE_DEFAULT_PARTITION__", "NULL")  # letter case aside
_TYPES = frozenset(
    {"int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"}
    | {"boolean", "float32", "float64", "decimal", "varchar", "json", "date"}
    | {"timestamp", "timestamp_s", "timestamp_ms", "timestamptz"}
)


def in_path(name: str, column: Column) -> SparkColumn:
    """The value of ``column``, called ``name`` in the path of the file that the row is from.

    Raises UnsupportedFeature for types that are not read from text alike by both engines.
    """
    from pyspark.sql import functions as fn

    if base_type(column.type) not in _TYPES:
        raise UnsupportedFeature(
            f"column {column.name!r} is {column.type}, and is only in the paths of its files",
            hint="read it with DuckDB, or rewrite the files there",
            data={"column": column.name, "type": column.type},
        )
    path = _unescaped(fn.col("_metadata.file_path"))
    pattern = f"(?i)(?:^|.*/){re.escape(name)}=([^/]*)/.*"
    text = _unescaped(fn.regexp_extract(path, pattern, 1))
    return fn.when(~fn.upper(text).isin(*_NULL), text).cast(spark_type(column))


def _unescaped(text: SparkColumn) -> SparkColumn:
    """A plus is itself here; to Spark's function it would be a space."""
    from pyspark.sql import functions as fn

    return fn.url_decode(fn.replace(text, fn.lit("+"), fn.lit("%2B")))
