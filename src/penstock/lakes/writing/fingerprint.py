"""A fingerprint of a table's rows, whatever their order: equal content, equal text.

It is computed while the rows are written, so that an unchanged re-run is detected without reading
anything twice. It has the number of rows, the sum of a 64-bit hash of each row and the sum of a
hash of that hash, each sum in two halves, which cannot overflow. Different contents have equal
fingerprints only if their rows collide in the first hash, one pair in 2**64. It adds about a tenth
to the time of a write.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from penstock.lakes.format.schema import Column, TableSchema
from penstock.lakes.format.values.bounds import base_type
from penstock.spark.functions import expr, fn
from penstock.sql.identifiers import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

_LOW = 0xFFFF_FFFF
_FLAGS = 60  # NULL flags that one long holds
_JSON = ", ".join(
    f"'{name}', '{value}'"
    for name, value in (
        ("ignoreNullFields", "false"),
        ("timestampFormat", "yyyy-MM-dd HH:mm:ss.SSSSSSXXX"),
        ("timestampNTZFormat", "yyyy-MM-dd HH:mm:ss.SSSSSS"),
        ("timeZone", "UTC"),
    )
)


def can_tell(schema: TableSchema) -> bool:
    """Return whether rows of these columns have a fingerprint: Spark cannot hash a VARIANT."""
    return not any(base_type(column.type) == "variant" for column in schema.walk())


def aggregates(schema: TableSchema) -> list[SparkColumn]:
    """Aggregates to observe or select over a frame that has the columns of ``schema``."""
    first = row_hash(schema.columns)
    sums: list[SparkColumn] = [fn.count(fn.lit(1)).alias("rows")]
    for at, hashed in enumerate((first, fn.xxhash64(first))):
        sums.append(fn.sum(hashed.bitwiseAND(fn.lit(_LOW))).alias(f"low{at}"))
        sums.append(fn.sum(fn.shiftrightunsigned(hashed, 32)).alias(f"high{at}"))
    return sums


def text(values: dict[str, Any]) -> str:
    """The fingerprint from the values of `aggregates`, by alias; without values, of no rows."""
    sums = [values.get(f"{half}{at}") or 0 for at in (0, 1) for half in ("low", "high")]
    return ":".join([str(values.get("rows", 0)), *(f"{n:x}" for n in sums)])


def of(df: DataFrame, schema: TableSchema) -> str:
    """The fingerprint of existing rows, by one scan."""
    (row,) = df.agg(*aggregates(schema)).collect()
    return text(row.asDict())


def row_hash(columns: Sequence[Column], seed: int = 0) -> SparkColumn:
    """A 64-bit hash of these columns of a frame that has them under their names.

    It is built as SQL text: a call to the JVM for each part would take longer than a small write.
    """

    values = (
        f"to_json({quoted(column.name)}, map({_JSON}))" if column.children else quoted(column.name)
        for column in columns
    )
    parts = (str(seed), *_null_flags(columns), *values)
    return expr(f"xxhash64({', '.join(parts)})")


def _null_flags(columns: Sequence[Column]) -> list[str]:
    """Flags of NULLs, which the hash skips: (NULL, 1) and (1, NULL) must differ."""
    return [
        " + ".join(
            f"if({quoted(column.name)} IS NULL, {1 << bit}L, 0L)"
            for bit, column in enumerate(columns[start : start + _FLAGS])
        )
        for start in range(0, len(columns), _FLAGS)
    ]
