"""Time travel in queries: the values of clauses and arguments as snapshots to read at."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from penstock.errors import ArgumentError, UnsupportedFeature
from penstock.lakes.format.values.duck_text import Interval, parse_interval
from penstock.lakes.snapshot import At, moment, version
from penstock.lazy import exp
from penstock.spark.failures import explained
from penstock.spark.functions import run_sql
from penstock.sql.time_travel import Travel

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def point(
    travel: Travel, args: Mapping[str, Any], zone: str, spark: SparkSession | None = None
) -> At:
    """The snapshot that a clause names; ``zone`` is that of times without one.

    Raises ArgumentError for a marker without a value and for what is not a version or time,
    UnsupportedFeature for an expression that only Spark computes where there is no session.
    """
    value: Any = travel.value
    if travel.parameter is not None:
        if travel.parameter not in args:
            raise ArgumentError(
                f"there is no value for :{travel.parameter}", hint="pass it in args"
            )
        value = args[travel.parameter]
    elif travel.node is not None:
        value = _computed(travel, args, spark)
    if travel.kind == "version":
        return At(version=version(value))
    return At(timestamp=moment(value, zone))


def _computed(travel: Travel, args: Mapping[str, Any], spark: SparkSession | None) -> Any:
    """The value of an expression, without Spark for ``now()`` plus or minus an interval."""
    now = from_now(travel.node)
    if now is not None:
        return now
    if spark is None:
        raise UnsupportedFeature(
            f"only Spark can compute {travel.text.strip()}, and this is read without it",
            hint="write a number, a time in quotes, or now() less an interval",
        )
    with explained():
        return run_sql(spark, f"SELECT {travel.text}", args=dict(args)).collect()[0][0]


def from_now(node: Any) -> datetime | None:
    """``now()`` or ``current_timestamp``, plus or minus an interval; ``None`` for others."""
    if isinstance(node, exp.Sub | exp.Add):
        start, length = from_now(node.this), _interval(node.expression)
        if start is None or length is None:
            return None
        if isinstance(node, exp.Add):
            length = Interval(-length.months, -length.days, -length.microseconds)
        return length.before(start)
    is_now = isinstance(node, exp.CurrentTimestamp) or (
        isinstance(node, exp.Anonymous) and node.name.lower() == "now" and not node.expressions
    )
    return datetime.now(UTC) if is_now else None


def _interval(node: Any) -> Interval | None:
    if not isinstance(node, exp.Interval) or not isinstance(node.this, exp.Literal):
        return None
    unit = node.args.get("unit")
    return parse_interval(node.this.name if unit is None else f"{node.this.name} {unit.name}")


def in_zone(value: Any, zone: str) -> Any:
    """A time without a zone in ``zone``; by default PySpark would use Python's zone."""
    if not isinstance(value, datetime) or value.tzinfo is not None:
        return value
    return value.replace(tzinfo=ZoneInfo(zone))
