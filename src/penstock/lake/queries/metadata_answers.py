"""``SELECT COUNT(*), MIN(c), MAX(c) FROM t``: answered by the catalog where that is exact."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock.lake.catalog import answers
from penstock.lake.catalog.catalog import Catalog
from penstock.lake.format.files import Table
from penstock.lake.format.naming import fold
from penstock.lake.format.values.bounds import base_type
from penstock.lake.reading.conversions.spark_types import spark_type
from penstock.lazy import exp
from penstock.spark.functions import run_sql
from penstock.sql.duckdb.guards import unguarded
from penstock.sql.identifiers import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_FUNCTIONS: Mapping[type, str] = {exp.Count: "count", exp.Min: "min", exp.Max: "max"}
_ALLOWED = frozenset(
    {"expressions", "from", "from_", "kind", "hint", "distinct", "operation_modifiers"}
)


@dataclass(frozen=True, slots=True)
class Aggregate:
    """``function`` is ``count``, ``min`` or ``max``; ``name`` is what Spark calls its column."""

    function: str
    column: str | None
    name: str


def wanted(tree: exp.Expr, table: exp.Table | None) -> tuple[Aggregate, ...] | None:
    """The aggregates of a query that asks for nothing else of one whole table; else ``None``."""
    if not isinstance(tree, exp.Select) or table is None or not _is_whole(tree, table):
        return None
    qualifier = fold(table.alias or table.name)
    aggregates = [_aggregate(item, qualifier) for item in tree.expressions]
    known = [aggregate for aggregate in aggregates if aggregate is not None]
    return tuple(known) if known and len(known) == len(aggregates) else None


def _is_whole(tree: exp.Select, table: exp.Table) -> bool:
    source = tree.args.get("from_") or tree.args.get("from")
    plain = all(
        not tree.args[key] for key in tree.args if key not in _ALLOWED - {"hint", "distinct"}
    )
    odd = [key for key in table.args if key not in {"this", "db", "alias", "when", "version"}]
    return (
        plain
        and source is not None
        and source.this is table
        and not any(table.args[key] for key in odd)
        and not table.alias_column_names
    )


def _aggregate(item: exp.Expr, qualifier: str) -> Aggregate | None:
    alias = item.alias if isinstance(item, exp.Alias) else None
    call = item.this if isinstance(item, exp.Alias) else item
    function = _FUNCTIONS.get(type(call))
    if function is None or any(call.args[k] for k in call.args if k not in {"this", "big_int"}):
        return None
    of = unguarded(call.this) if isinstance(call.this, exp.If) else call.this
    if function == "count":
        whole = isinstance(of, exp.Star) or (isinstance(of, exp.Literal) and of.name == "1")
        return Aggregate(function, None, alias or "count(1)") if whole else None
    if not isinstance(of, exp.Column) or isinstance(of.this, exp.Star) or of.args.get("db"):
        return None
    if of.table and fold(of.table) != qualifier:
        return None
    return Aggregate(function, of.name, alias or f"{function}({of.name})")


def answer(
    spark: SparkSession,
    catalog: Catalog,
    table: Table,
    snapshot_id: int,
    aggregates: Sequence[Aggregate],
) -> DataFrame | None:
    """One row, without reading a file; ``None`` where the catalog does not know exactly."""
    values = _values(catalog, table, snapshot_id, aggregates)
    if values is None:
        return None
    arguments = {f"v{at}": value for at, (value, _) in enumerate(values)}
    items = [
        f"CAST(:v{at} AS {kind}) AS {quoted(aggregate.name)}"
        for at, (aggregate, (_, kind)) in enumerate(zip(aggregates, values, strict=True))
    ]
    return run_sql(spark, f"SELECT {', '.join(items)}", args=arguments)


def knows(
    catalog: Catalog, table: Table, snapshot_id: int, aggregates: Sequence[Aggregate]
) -> bool:
    """Return whether the catalog answers all of them."""
    return _values(catalog, table, snapshot_id, aggregates) is not None


def _values(
    catalog: Catalog, table: Table, snapshot_id: int, aggregates: Sequence[Aggregate]
) -> list[tuple[Any, str]] | None:
    """The value of each as text (a whole number for counts) and its type in Spark's SQL."""
    columns = {
        fold(name): table.schema.find(name) for name in (a.column for a in aggregates) if name
    }
    with catalog.reading() as connection:
        totals = answers.totals(connection, table, snapshot_id)
        if totals.rows is None or (columns and not totals.plain):
            return None
        ends: dict[str, tuple[str | None, str | None]] = {}
        for name, column in columns.items():
            if column is None or column.children:
                return None
            pair = answers.extremes(connection, table, column, snapshot_id, totals.files)
            if pair is None:
                return None
            ends[name] = pair
    values: list[tuple[Any, str]] = []
    for aggregate in aggregates:
        if aggregate.column is None:
            values.append((totals.rows, "BIGINT"))
            continue
        column = columns[fold(aggregate.column)]
        assert column is not None
        text = ends[fold(aggregate.column)][0 if aggregate.function == "min" else 1]
        zoned = base_type(column.type) == "timestamptz" and text is not None
        values.append((f"{text}:00" if zoned else text, spark_type(column).simpleString()))
    return values
