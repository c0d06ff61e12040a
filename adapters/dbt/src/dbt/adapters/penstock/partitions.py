"""Partitions as models configure them, and as a condition on a table for `insert_overwrite`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import and_, or_
from typing import TYPE_CHECKING, Any

from dbt_common.exceptions import DbtRuntimeError

from penstock.lakes.format.partitioning import PartitionKey, partition_fields, partition_keys
from penstock.lakes.reading.conversions.spark_types import spark_type
from penstock.lakes.writing.spread import bucket
from penstock.spark.functions import fn
from penstock.sql.identifiers import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from penstock.lakes.format.schema import TableSchema

_LIMIT = 1_000  # partitions in a condition
_GRANULARITIES = ("year", "month", "day", "hour")
_OPTIONS = frozenset({"field", "data_type", "granularity", "copy_partitions"})


def time_partitions(option: Mapping[str, Any], *, columns_only: bool) -> list[str]:
    """Return the partitions of the form that dbt-bigquery has, of a column and a granularity.

    Packages configure it for each adapter but dbt-spark and dbt-databricks.

    Args:
        option: the configured `field`, with its `data_type` and `granularity`.
        columns_only: whether the table has no partitions by an expression. The partitions of a
            date are its days then.

    Raises:
        DbtRuntimeError: it has other options, or is of another type or granularity.
    """
    kind = str(option.get("data_type", "date")).lower()
    granularity = str(option.get("granularity", "day")).lower()
    field, is_date = option.get("field"), kind == "date"
    granularities = _GRANULARITIES[:3] if is_date else _GRANULARITIES
    if (
        not isinstance(field, str)
        or not _OPTIONS.issuperset(option)
        or kind not in {"date", "datetime", "timestamp"}
        or granularity not in granularities
    ):
        raise DbtRuntimeError(
            f"partition_by is a list of columns, or the field of a date or timestamp with one of "
            f"the granularities {', '.join(_GRANULARITIES)}, not {dict(option)!r}"
        )
    if is_date and (granularity == "day" or columns_only):
        return [field]
    finest = granularities.index(granularity)
    return [f"{unit}({field})" for unit in granularities[: finest + 1]]


def has_buckets(partitions: Sequence[str]) -> bool:
    """Return whether one of the partitions is ``bucket(8, id)``, which no SQL names."""
    return any(partition.lower().startswith("bucket") for partition in partitions)


def rows_beside(schema: TableSchema, partitions: Sequence[str], rows: DataFrame) -> Column:
    """Return the condition of a table's rows that are in the partitions of ``rows``.

    Raises DbtRuntimeError for more partitions than a condition can name.
    """
    keys = partition_keys(schema, partition_fields(schema, list(partitions)))
    typed = rows.select(
        *(  # a bucket depends on the type, which a query may give another
            fn.col(quoted(key.column.name)).cast(spark_type(key.column)).alias(key.column.name)
            for key in {key.column.name: key for key in keys}.values()
        )
    )
    values = [_value(key).alias(f"p{place}") for place, key in enumerate(keys)]
    tuples = typed.select(*values).distinct().limit(_LIMIT + 1).collect()
    if len(tuples) > _LIMIT:
        raise DbtRuntimeError(
            f"insert_overwrite would replace more than {_LIMIT} partitions by "
            f"{', '.join(partitions)}: use fewer buckets, or select fewer rows at once"
        )
    same = [
        reduce(and_, (_value(key).eqNullSafe(value) for key, value in zip(keys, row, strict=True)))
        for row in tuples
    ]
    return reduce(or_, same, fn.lit(False))


def _value(key: PartitionKey) -> Column:
    """The value of a partition; ``day(at)`` is the whole day, not the day of the month."""
    if key.transform == "bucket":
        return bucket(key)
    column = fn.col(quoted(key.column.name))
    if key.transform == "identity":
        return column
    return fn.date_trunc(key.transform, column).cast("timestamp_ntz")
