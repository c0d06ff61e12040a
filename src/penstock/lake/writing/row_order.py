"""Rows in the order of a table's sort keys, so that the bounds of its files tell them apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import sqlglot

from penstock.errors import UnsupportedFeature
from penstock.lake.objects import SortKey
from penstock.lake.sql.trust import harmless_expression
from penstock.sql.duckdb.translate import to_spark

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn


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
    text = key.expression
    try:
        if key.dialect != "spark":
            text = to_spark(sqlglot.parse_one(text, read="duckdb"))
    except UnsupportedFeature as error:
        raise UnsupportedFeature(
            f"the table is sorted by {key.expression}, which Spark does not do alike: {error}",
            hint="sort by a plain column, or set sort_on_insert to false for the table",
            data={"expression": key.expression},
        ) from error
    return harmless_expression(text, f"the sort key {key.expression}")
