"""What the condition of a MERGE says of the target's rows that can match: keys and their range."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from penstock.lake.format.naming import fold
from penstock.lake.format.schema import Column, TableSchema
from penstock.lake.format.values.bounds import base_type
from penstock.lake.reading.conversions.casts import stored
from penstock.lake.reading.conversions.spark_types import quoted, schema_of, spark_type
from penstock.lake.rows.change import Clause, Keys, RowChange
from penstock.lake.rows.merge_source import ORDERED, bound_text, bound_value

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

Pair = tuple[Column, str]  # the target's column and the name of the source's


def keys_of(change: RowChange, schema: TableSchema) -> list[Pair]:
    """Columns of both sides that are of one type that orders, and equal where rows match.

    They are found in conditions given as text, as conjuncts ``t.a = s.b``.
    """
    tree = _parsed(change.on.condition)
    if tree is None:
        return []
    source = schema_of(change.rows)
    found: list[Pair] = []
    for part in _parts(tree):
        one = part.unnest()
        if not isinstance(one, exp.EQ):
            continue
        for left, right in ((one.left, one.right), (one.right, one.left)):
            column = _named(left, change.on.target, schema)
            other = _named(right, change.on.source, source)
            if column is not None and other is not None and _orders(column, other):
                found.append((column, other.name))
    return found


def as_upsert(change: RowChange, schema: TableSchema) -> RowChange | None:
    """The merge by key that a MERGE is, as far as keys are unique; ``None`` where it is another.

    Rows match where columns of one type are equal and nothing else is asked, and both clauses give
    each column the same column of the source.
    """
    pairs = keys_of(change, schema)
    clauses = {(clause.kind, clause.action): clause for clause in change.clauses}
    update = clauses.get(("matched", "update"))
    insert = clauses.get(("not matched", "insert"))
    if update is None or insert is None or len(change.clauses) != 2 or not pairs:
        return None
    if len(pairs) != _conjuncts(change) or any(
        clause.condition is not None for clause in change.clauses
    ):
        return None
    news, olds = (_columns_of(one, change, schema) for one in (insert, update))
    if news is None or olds is None:
        return None
    keys = {column.name: name for column, name in pairs}
    fields = {field.name: field.dataType for field in change.rows.schema.fields}
    exact = all(fields.get(name) == spark_type(column) for column, name in pairs)
    if len(keys) < len(pairs) or not exact or not news.items() >= keys.items():
        return None
    if {**keys, **olds} != news:
        return None
    match = Keys(tuple(keys), one_row=False)
    return RowChange.upsert(_renamed(change.rows, news, schema), match)


def _conjuncts(change: RowChange) -> int:
    tree = _parsed(change.on.condition)
    return 0 if tree is None else len(_parts(tree))


def _columns_of(clause: Clause, change: RowChange, schema: TableSchema) -> dict[str, str] | None:
    """Which column of the source each column of the target gets; ``None`` for other values."""
    source = change.rows.columns
    if len(set(map(fold, source))) < len(source):
        return None
    if clause.values is None:
        known = {fold(name): name for name in source}
        both = (column for column in schema.columns if fold(column.name) in known)
        return {column.name: known[fold(column.name)] for column in both}
    found: dict[str, str] = {}
    for name, value in clause.values.items():
        column, tree = schema.find(name), _parsed(value)
        other = None if tree is None else _named(tree, change.on.source, schema_of(change.rows))
        if column is None or other is None or column.name in found:
            return None
        found[column.name] = other.name
    return found


def _renamed(source: DataFrame, names: Mapping[str, str], schema: TableSchema) -> DataFrame:
    """The source's columns as the target has them, cast as any MERGE casts them."""
    from pyspark.sql import functions as fn

    fields = {field.name: field.dataType for field in source.schema.fields}
    columns = {name: fn.col(quoted(other)) for name, other in names.items()}
    known = {column.name: column for column in schema.columns}
    other_types = {
        name: column
        for name, column in columns.items()
        if fields[names[name]] != spark_type(known[name])
    }
    columns |= stored(source, other_types, schema) if other_types else {}
    return source.select(*(column.alias(name) for name, column in columns.items()))


def _parsed(text: object) -> exp.Expr | None:
    if not isinstance(text, str):
        return None
    try:
        tree: exp.Expr = sqlglot.parse_one(text, read="spark", into=exp.Condition)
    except SqlglotError:
        return None
    return tree


def _parts(tree: exp.Expr) -> list[exp.Expr]:
    """The conditions that an AND puts together."""
    return list(tree.flatten()) if isinstance(tree, exp.And) else [tree]


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
