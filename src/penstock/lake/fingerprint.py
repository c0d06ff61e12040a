"""A fingerprint of a table's rows, whatever their order: equal content, equal text.

It is computed while the rows are written, so that an unchanged re-run is known without reading
anything twice. Two 64-bit hashes per row, each summed in two halves (which cannot overflow), and
the count: rows that differ give the same text with a chance of about 2**-100.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.lake.schema import Column, TableSchema
from penstock.lake.spark_types import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

_SEEDS = (0x5045_4E53, 0x544F_434B)
_LOW = 0xFFFF_FFFF
_JSON = {
    "ignoreNullFields": "false",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
    "timeZone": "UTC",
}


def aggregates(schema: TableSchema) -> list[SparkColumn]:
    """Aggregates to observe or select over a frame that has the columns of ``schema``."""
    from pyspark.sql import functions as fn

    sums: list[SparkColumn] = [fn.count(fn.lit(1)).alias("rows")]
    parts = [part for column in schema.columns for part in _parts(column)]
    for at, seed in enumerate(_SEEDS):
        row_hash = fn.xxhash64(fn.lit(seed), *parts)
        sums.append(fn.sum(row_hash.bitwiseAND(fn.lit(_LOW))).alias(f"low{at}"))
        sums.append(fn.sum(fn.shiftrightunsigned(row_hash, 32)).alias(f"high{at}"))
    return sums


def text(values: dict[str, Any]) -> str:
    """The fingerprint from the values of `aggregates`, by alias."""
    sums = [values[f"{half}{at}"] or 0 for at in range(len(_SEEDS)) for half in ("low", "high")]
    return ":".join([str(values["rows"]), *(f"{n:x}" for n in sums)])


def of(df: DataFrame, schema: TableSchema) -> str:
    """The fingerprint of rows already there, by one scan of them."""
    (row,) = df.agg(*aggregates(schema)).collect()
    return text(row.asDict())


def _parts(column: Column) -> list[SparkColumn]:
    """A hash skips NULLs: without the flag, (NULL, 1) and (1, NULL) would be alike."""
    from pyspark.sql import functions as fn

    value = fn.col(quoted(column.name))
    if column.children:
        value = fn.to_json(value, _JSON)
    return [fn.isnull(value), value]
