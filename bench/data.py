"""The rows that append, scan and merge work on: 6 columns of the usual types."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

_COLUMNS = (
    "id",
    "cast(pmod(id * 2654435761, 1000003) AS int) AS account",
    "cast(pmod(id * 40503, 1000000) / 100 AS decimal(10, 2)) AS amount",
    "timestamp_seconds(1600000000 + id) AS ordered_at",
    "array('new', 'paid', 'sent', 'back')[cast(pmod(id, 4) AS int)] AS state",
    "concat('order ', cast(pmod(id * 7919, 100000) AS string)) AS note",
)


def orders(spark: SparkSession, first: int, end: int, *, step: int = 1) -> DataFrame:
    """Orders with the ids ``range(first, end, step)``: every other column follows from the id."""
    return spark.range(first, end, step, numPartitions=4).selectExpr(*_COLUMNS)


def changes(spark: SparkSession, target_rows: int, rows: int) -> DataFrame:
    """``rows`` changes: the first half updates ids spread evenly over the target, the rest are new.

    An updated row has another amount and state than the target's.
    """
    half = rows // 2
    step = max(1, target_rows // half)
    updates = orders(spark, 0, half * step, step=step).selectExpr(
        "id",
        "account",
        "cast(amount + 1 AS decimal(10, 2)) AS amount",
        "ordered_at",
        "'upd' AS state",
        "note",
    )
    return updates.unionByName(orders(spark, target_rows, target_rows + rows - half))
