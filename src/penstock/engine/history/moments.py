"""Moments in the type of a table's validity columns: TIMESTAMP in UTC, TIMESTAMPTZ or DATE.

A column without a zone is read as UTC, one with a zone is an instant (history.md); the session's
time zone has no part in it.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from penstock.spark.functions import expr, fn

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn

#: what a column of moments may be, as Spark's simple strings
KINDS = ("timestamp_ntz", "timestamp", "date")
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - without a zone, as the columns are


def literal(moment: datetime, kind: str) -> SparkColumn:
    """An aware moment as a column of this type."""

    return expr(literal_text(moment, kind))


def literal_text(moment: datetime, kind: str) -> str:
    """An aware moment as a literal of this type in Spark's SQL."""
    text = moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f")
    if kind == "date":
        return f"DATE '{text[:10]}'"
    return f"TIMESTAMP '{text}Z'" if kind == "timestamp" else f"TIMESTAMP_NTZ '{text}'"


def converted(value: SparkColumn, kind: str, to: str, zone: str) -> SparkColumn:
    """A column of moments as another type of moments; ``zone`` is the session's."""
    if kind == to:
        return value
    if kind == "timestamp":
        naive = value.cast("timestamp_ntz") if zone == "UTC" else _in_utc(value)
        return naive if to == "timestamp_ntz" else naive.cast("date")
    if to == "timestamp":
        naive = value.cast("timestamp_ntz")
        return naive.cast("timestamp") if zone == "UTC" else _instant(naive)
    return value.cast(to)


def _in_utc(value: SparkColumn) -> SparkColumn:
    """An instant as the clocks of UTC show it: a cast would show those of the session's zone."""
    seconds = (fn.unix_micros(value).cast("decimal(20,0)") / 1_000_000).cast("decimal(18,6)")
    zero = fn.lit(0)
    since = fn.make_dt_interval(zero, zero, zero, seconds)
    return fn.lit(str(_EPOCH)).cast("timestamp_ntz") + since


def _instant(value: SparkColumn) -> SparkColumn:
    """The instant at which the clocks of UTC show this."""
    return fn.concat(value.cast("string"), fn.lit("Z")).cast("timestamp")
