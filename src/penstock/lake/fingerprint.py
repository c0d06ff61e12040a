"""A fingerprint of a table's rows, whatever their order: equal content, equal text.

It is computed while the rows are written, so that an unchanged re-run is known without reading
anything twice: the count of rows, the sum of a 64-bit hash of each and the sum of a hash of that
hash, each sum in two halves, which cannot overflow. Two contents that differ have equal texts only
if rows of theirs collide in the first hash, one pair in 2**64. It adds about a tenth to a write.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from penstock.lake.schema import Column, TableSchema
from penstock.lake.spark_types import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

_LOW = 0xFFFF_FFFF
_FLAGS = 60  # NULL flags that one long holds
_JSON = {
    "ignoreNullFields": "false",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
    "timeZone": "UTC",
}


def aggregates(schema: TableSchema) -> list[SparkColumn]:
    """Aggregates to observe or select over a frame that has the columns of ``schema``."""
    from pyspark.sql import functions as fn

    first = row_hash(schema.columns)
    sums: list[SparkColumn] = [fn.count(fn.lit(1)).alias("rows")]
    for at, one in enumerate((first, fn.xxhash64(first))):
        sums.append(fn.sum(one.bitwiseAND(fn.lit(_LOW))).alias(f"low{at}"))
        sums.append(fn.sum(fn.shiftrightunsigned(one, 32)).alias(f"high{at}"))
    return sums


def text(values: dict[str, Any]) -> str:
    """The fingerprint from the values of `aggregates`, by alias."""
    sums = [values[f"{half}{at}"] or 0 for at in (0, 1) for half in ("low", "high")]
    return ":".join([str(values["rows"]), *(f"{n:x}" for n in sums)])


def of(df: DataFrame, schema: TableSchema) -> str:
    """The fingerprint of rows already there, by one scan of them."""
    (row,) = df.agg(*aggregates(schema)).collect()
    return text(row.asDict())


def row_hash(columns: Sequence[Column], seed: int = 0) -> SparkColumn:
    """A 64-bit hash of these columns of a frame that has them under their names."""
    from pyspark.sql import functions as fn

    return fn.xxhash64(fn.lit(seed), *_null_flags(columns), *(_hashable(c) for c in columns))


def _hashable(column: Column) -> SparkColumn:
    from pyspark.sql import functions as fn

    value = fn.col(quoted(column.name))
    return fn.to_json(value, _JSON) if column.children else value


def _null_flags(columns: Sequence[Column]) -> list[SparkColumn]:
    """A hash skips NULLs: without the flags, (NULL, 1) and (1, NULL) would be alike."""
    from pyspark.sql import functions as fn

    flags: list[SparkColumn] = []
    for start in range(0, len(columns), _FLAGS):
        total = fn.lit(0).cast("long")
        for bit, column in enumerate(columns[start : start + _FLAGS]):
            is_null = fn.col(quoted(column.name)).isNull()
            total = total + fn.when(is_null, fn.lit(1 << bit).cast("long")).otherwise(fn.lit(0))
        flags.append(total)
    return flags
