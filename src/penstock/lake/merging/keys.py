"""What the condition of a MERGE says of the target's rows that can match: keys and their range."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from penstock.lake.conversions.spark_types import quoted, schema_of
from penstock.lake.merging.source import ORDERED, bound_text, bound_value
from penstock.lake.merging.spec import MergeSpec
from penstock.lake.naming import fold
from penstock.lake.schema import Column, TableSchema
from penstock.lake.values.bounds import base_type

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

Pair = tuple[Column, str]  # the target's column and the name of the source's


def keys_of(spec: MergeSpec, schema: TableSchema) -> list[Pair]:
    """Columns of both sides that are of one type that orders, and equal where rows match.

    They are found in conditions given as text, as conjuncts ``t.a = s.b``.
    """
    if not isinstance(spec.on, str):
        return []
    try:
        tree = sqlglot.parse_one(spec.on, read="spark", into=exp.Condition)
    except SqlglotError:
        return []
    source = schema_of(spec.source)
    found: list[Pair] = []
    for part in tree.flatten() if isinstance(tree, exp.And) else [tree]:
        one = part.unnest()
        if not isinstance(one, exp.EQ):
            continue
        for left, right in ((one.left, one.right), (one.right, one.left)):
            column = _named(left, spec.target_alias, schema)
            other = _named(right, spec.source_alias, source)
            if column is not None and other is not None and _orders(column, other):
                found.append((column, other.name))
    return found


def _named(tree: exp.Expr, alias: str, schema: TableSchema) -> Column | None:
    tree = tree.unnest()
    if not isinstance(tree, exp.Column) or len(tree.parts) != 2 or fold(tree.table) != fold(alias):
        return None
    return schema.find(tree.name)


def _orders(one: Column, other: Column) -> bool:
    return one.type == other.type and base_type(one.type) in ORDERED


def measure(source: DataFrame, keys: list[Pair]) -> tuple[int, list[SparkColumn]]:
    """How many rows the source has, and conditions that all target rows satisfy which match."""
    from pyspark.sql import functions as fn

    ends: list[SparkColumn] = []
    for at, (column, name) in enumerate(keys):
        key, kind = fn.col(quoted(name)), base_type(column.type)
        ends.append(bound_text(fn.min(key), kind).alias(f"low{at}"))
        ends.append(bound_text(fn.max(key), kind).alias(f"high{at}"))
    (found,) = source.agg(fn.count(fn.lit(1)).alias("rows"), *ends).collect()
    conditions: list[SparkColumn] = []
    for at, (column, _) in enumerate(keys):
        low, high = found[f"low{at}"], found[f"high{at}"]
        if low is None:  # only NULLs, which match nothing
            continue
        span = bound_value(low, column), bound_value(high, column)
        conditions.append(fn.col(quoted(column.name)).between(*span))
    return found["rows"], conditions
