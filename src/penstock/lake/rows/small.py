"""Small sets of rows, looked at on the driver: a small merge waits for jobs, not for data.

Arrow stands in for an aggregation in Spark where it certainly compares as Spark does.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

_TOO_MUCH = "spark.driver.maxResultSize"  # Spark's setting, which its error names
_COMMON_YEAR = re.compile(r"\d{4}-")


def collect(df: DataFrame, columns: Sequence[str], limit: int) -> pa.Table | None:
    """These columns of ``df``, quoted, or None when it has more than ``limit`` rows."""
    rows = to_arrow(df.selectExpr(*columns).limit(limit + 1))
    return rows if rows is not None and rows.num_rows <= limit else None


def to_arrow(df: DataFrame) -> pa.Table | None:
    """The rows of ``df``; None where they are more bytes than Spark lets the driver collect."""
    try:
        return df.toArrow()
    except Exception as error:  # of Py4J or of Spark Connect, which have no class in common
        if _TOO_MUCH in str(error):
            return None
        raise


def distinct(rows: pa.Table, keys: Sequence[str]) -> int | None:
    """How many different keys the rows have; None where Arrow may see that otherwise than Spark."""
    if not all(compares(rows.schema.field(key).type) for key in keys):
        return None
    return int(rows.select(keys).group_by(list(keys)).aggregate([]).num_rows)


def has_nulls(rows: pa.Table, keys: Sequence[str]) -> bool:
    return any(rows[key].null_count for key in keys)


def bounds(rows: pa.Table, key: str) -> tuple[str, str] | None:
    """Lowest and highest value as text that Spark reads back, instants as microseconds; or None."""
    import pyarrow as pa
    import pyarrow.compute as pc

    column = rows[key]
    if not len(column):
        return None
    ends = pc.min_max(column)
    kind = column.type
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        low, high = (str(ends[name].cast(pa.int64()).as_py()) for name in ("min", "max"))
        return low, high
    low, high = (str(ends[name].cast(pa.string()).as_py()) for name in ("min", "max"))
    dated = pa.types.is_date(kind) or pa.types.is_timestamp(kind)
    if dated and not (_COMMON_YEAR.match(low) and _COMMON_YEAR.match(high)):
        return None
    return low, high


def compares(kind: pa.DataType) -> bool:
    """Whether values are equal in Arrow just where they are in Spark.

    Floating point has two zeros and many NaNs; what is nested may hold it.
    """
    import pyarrow as pa

    tests = (
        pa.types.is_integer,
        pa.types.is_boolean,
        pa.types.is_decimal,
        pa.types.is_date,
        pa.types.is_timestamp,
        pa.types.is_string,
        pa.types.is_large_string,
        pa.types.is_binary,
    )
    return any(test(kind) for test in tests)


def is_comparable(kind: pa.DataType) -> bool:
    """Whether `small_merge.changed` compares columns of this type."""
    return compares(kind) or is_float(kind)


def is_float(kind: pa.DataType) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_floating(kind))
