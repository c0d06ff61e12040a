"""Rows spread over the partitions of a table and sorted within them, for files with narrow bounds.

Spark takes the columns that it partitions by out of the files, and the format wants them there. So
it partitions by helper columns, whose directories carry the value's text in hex: no file system,
locale or escaping changes it. A value too long for a directory is there by its digest, and read
from the file.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from penstock.errors import UnsupportedFeature
from penstock.lake import storage
from penstock.lake.format.objects import SortKey
from penstock.lake.format.partitioning import PartitionKey, directory_names, hive_directory
from penstock.lake.format.values.bounds import base_type
from penstock.lake.format.values.partition_text import catalog_text
from penstock.lake.reading.conversions.spark_types import quoted
from penstock.lake.writing.bucket_hash import bucket
from penstock.sql.dialect import Unreadable, to_spark
from penstock.sql.trust import harmless_expression

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame


_HELPER = "_penstock_part"
_SEGMENT = re.compile(rf"{_HELPER}(\d+)=([^/]*)")
_LONGEST = 100  # bytes of a text that a directory's name carries


def helper_names(keys: Sequence[PartitionKey]) -> list[str]:
    return [f"{_HELPER}{at}" for at, _ in enumerate(keys)]


def with_helpers(frame: DataFrame, keys: Sequence[PartitionKey]) -> DataFrame:
    """``frame``, which has the table's columns, with a helper column for each key."""
    helpers = zip(helper_names(keys), keys, strict=True)
    return frame.select("*", *(_helper(key).alias(name) for name, key in helpers))


def _helper(key: PartitionKey) -> SparkColumn:
    """``v`` and the text in hex, ``h`` and its digest, ``n`` for NULL."""
    from pyspark.sql import functions as fn

    text = _text(key)
    if base_type(key.column.type) not in {"varchar", "json"} or key.transform != "identity":
        marked = fn.concat(fn.lit("v"), fn.hex(text))
    else:
        short = fn.concat(fn.lit("v"), fn.hex(text))
        long = fn.concat(fn.lit("h"), fn.sha2(text.cast("binary"), 256))
        marked = fn.when(fn.octet_length(text) <= _LONGEST, short).otherwise(long)
    return fn.when(text.isNull(), fn.lit("n")).otherwise(fn.coalesce(marked, fn.lit("n")))


def _text(key: PartitionKey) -> SparkColumn:
    """The value as text. Times with a zone are looked at in UTC."""
    from pyspark.sql import functions as fn

    value = fn.col(quoted(key.column.name))
    kind = base_type(key.column.type)
    if key.transform == "bucket":
        return bucket(value, key).cast("string")
    if kind == "timestamptz":
        epoch = fn.lit("1970-01-01 00:00:00").cast("timestamp_ntz")
        value = fn.timestamp_add("MICROSECOND", fn.unix_micros(value), epoch)
    if key.transform != "identity":
        if kind == "date" and key.transform == "hour":
            value = value.cast("timestamp_ntz")
        return fn.call_function(key.transform, value).cast("string")
    if kind in {"float32", "float64"}:
        value = fn.when(value == 0, fn.lit(0).cast("double")).otherwise(value)
    text = value.cast("string")
    return fn.concat(text, fn.lit("+00")) if kind == "timestamptz" else text


def values_of(directory: str, below: str, keys: Sequence[PartitionKey]) -> tuple[str | None, ...]:
    """The partition values of the file ``below`` a directory, by the helper directories there."""
    texts = [text for _, text in _SEGMENT.findall(below)]
    path = f"{directory}{below}"
    return tuple(_value(path, key, text) for key, text in zip(keys, texts, strict=True))


def _value(path: str, key: PartitionKey, text: str) -> str | None:
    if text == "n":
        return None
    name = key.column.name
    found = bytes.fromhex(text[1:]).decode() if text[0] == "v" else storage.first_value(path, name)
    if "\x00" in found:
        raise UnsupportedFeature(
            f"a value of {name} to partition by has a NUL character, which no catalog keeps",
            hint="take it out of the value in the SELECT",
            data={"column": name},
        )
    return found if key.transform != "identity" else catalog_text(key.column.type, found)


def hive_paths(
    directory: str,
    paths: Sequence[str],
    values: Sequence[tuple[str | None, ...]],
    keys: Sequence[PartitionKey],
    *,
    hive: bool,
) -> list[str]:
    """Where the files are to be: in directories as the real extension names them, or in none."""
    names = directory_names(keys)
    found: list[str] = []
    for at, (path, own) in enumerate(zip(paths, values, strict=True)):
        folder = hive_directory(names, own) if hive else ""
        found.append(f"{directory}/{folder}{at:05d}-{path.rsplit('/', 1)[1]}")
    return found


def sort_columns(keys: Sequence[SortKey]) -> list[SparkColumn]:
    """The keys as Spark sorts by them.

    NaN is above all numbers and texts are compared byte by byte, in both engines. Raises
    UnsupportedFeature naming a key that is not known to mean the same on Spark.
    """
    return [_ordered(key) for key in keys]


def _ordered(key: SortKey) -> SparkColumn:
    from pyspark.sql import functions as fn

    value = fn.expr(_spark_text(key))
    if key.descending:
        return value.desc_nulls_last() if key.nulls_last else value.desc_nulls_first()
    return value.asc_nulls_last() if key.nulls_last else value.asc_nulls_first()


def _spark_text(key: SortKey) -> str:
    try:
        text = to_spark(key.expression, key.dialect, expression=True)
    except (UnsupportedFeature, Unreadable) as error:
        raise UnsupportedFeature(
            f"the table is sorted by {key.expression}, which Spark does not do alike: {error}",
            hint="sort by a plain column, or set sort_on_insert to false for the table",
            data={"expression": key.expression},
        ) from error
    return harmless_expression(text, f"the sort key {key.expression}")
