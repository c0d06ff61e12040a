"""Inlined rows as a DataFrame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING

from penstock.lake.format.inlined.found import (
    BEGIN_COLUMN,
    END_COLUMN,
    ROW_ID_COLUMN,
    InlinedPart,
    InlinedRows,
)
from penstock.lake.format.inlined.values import arrow_schema, batches, counted, kept
from penstock.lake.format.schema import Column, TableSchema
from penstock.lake.format.values.bounds import base_type
from penstock.lake.reading.conversions.old_values import from_old
from penstock.lake.reading.conversions.spark_types import quoted, spark_schema

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame, SparkSession

ROW_ID = "_penstock_row_id"
BEGIN = "_penstock_begin"
END = "_penstock_end"


def read(
    spark: SparkSession,
    schema: TableSchema,
    rows: InlinedRows,
    *,
    extra: bool = False,
    ends: bool = False,
) -> DataFrame:
    """The rows with exactly the columns of ``schema``, which may be another than they were under.

    With ``extra`` also ROW_ID and BEGIN, the snapshot in which the row began; with ``ends`` also
    END, the one in which it ended (longs).
    """
    system = {ROW_ID_COLUMN: ROW_ID, BEGIN_COLUMN: BEGIN} if extra else {}
    system |= {END_COLUMN: END} if ends else {}
    alike: dict[TableSchema, list[InlinedPart]] = {}
    for part in rows.parts:
        alike.setdefault(kept(part, schema), []).append(part)
    frames = [_frame(spark, schema, old, parts, system) for old, parts in alike.items()]
    return reduce(lambda a, b: a.union(b), frames)


def _frame(
    spark: SparkSession,
    schema: TableSchema,
    old: TableSchema,
    parts: Sequence[InlinedPart],
    system: Mapping[str, str],
) -> DataFrame:
    """Parts whose values have the same types, ``old``."""
    import pyarrow as pa

    found = [batch for part in parts for batch in batches(part, old, system)]
    table = pa.Table.from_batches(found, arrow_schema(old, system))
    stored = spark_schema(TableSchema(tuple(counted(column) for column in old.columns)))
    for name in system.values():
        stored = stored.add(name, "long")
    df = spark.createDataFrame(table, schema=stored)
    pairs = zip(old.columns, schema.columns, strict=True)
    return df.select(*(_value(was, column) for was, column in pairs), *system.values())


def _value(old: Column, column: Column) -> SparkColumn | str:
    """A column as users see it.

    Nanoseconds may be none of Spark's, which is to show only when they are used.
    """
    if old == column and counted(column) == column:
        return quoted(column.name)
    was, now = _only_stored(old, column)
    return from_old(quoted(column.name), was, now, frozenset()).alias(column.name)


def _only_stored(old: Column, new: Column) -> tuple[Column, Column]:
    """Both as if nothing but nanoseconds were stored in another form than users see."""
    pairs = [_only_stored(*pair) for pair in zip(old.children, new.children, strict=True)]
    if not pairs and old.type == new.type and base_type(old.type) != "timestamp_ns":
        return replace(old, type="int64"), replace(new, type="int64")
    olds, news = tuple(a for a, _ in pairs), tuple(b for _, b in pairs)
    return replace(old, children=olds), replace(new, children=news)
