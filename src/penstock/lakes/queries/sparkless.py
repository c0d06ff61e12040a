"""Queries answered without Spark: small tables by Arrow from their files, counts by the catalog.

Queries over one small table, answered from its files by Arrow without a Spark session.

The rows are those that Spark would return. Where that is not certain (types, conditions, orders),
or where the table is too large, there is no answer and the query falls back to Spark.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from penstock.lakes.arrow_expressions.compiled import would_know_settings
from penstock.lakes.arrow_expressions.nodes import NotSupportedByArrow
from penstock.lakes.catalog import answers
from penstock.lakes.catalog.catalog import Catalog
from penstock.lakes.format.files import FileSet, Table
from penstock.lakes.format.inlined.values import arrow_schema
from penstock.lakes.format.naming import TableRef, fold
from penstock.lakes.format.schema import Column, TableSchema
from penstock.lakes.format.types import simple_string
from penstock.lakes.format.values.bounds import base_type
from penstock.lakes.reading.arrow_files import PLAIN, read_small
from penstock.lakes.reading.conversions.spark_types import spark_type
from penstock.lakes.reading.scan import Scan
from penstock.lakes.snapshot import Snapshot
from penstock.lazy import exp, pa, pc
from penstock.spark.functions import run_sql
from penstock.sql.duckdb.guards import unguarded
from penstock.sql.identifiers import quoted
from penstock.sql.plain_select import PlainSelect, SortKey
from penstock.sql.predicate import of_where

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from penstock.lakes.arrow_expressions.compiled import Expression


# Types that Arrow sorts as Spark does; floats are missing because of NaN and -0.0.
_SORTED = PLAIN - {"float32", "float64"}
_ZONE = "spark.sql.session.timeZone"
_UTC = ("UTC", "Etc/UTC")


@dataclass(frozen=True, slots=True)
class SmallResult:
    """``columns`` are names with their types in Spark's SQL; ``rows`` are Python's values, as
    collected from a DataFrame."""

    columns: tuple[tuple[str, str], ...]
    rows: list[tuple[Any, ...]]


def read_small_table(
    catalog: Catalog,
    ref: TableRef,
    select: PlainSelect,
    conf: Mapping[str, str],
    *,
    slice_: tuple[str, str] | None = None,
) -> SmallResult | None:
    """The rows of ``select`` at the latest snapshot, or ``None`` where only Spark can answer.

    ``conf`` are the settings with which a session would start. ``slice_`` is a text column and the
    value that the rows have in it.
    """
    if not would_know_settings(conf):
        return None
    snapshot = catalog.latest()
    table = catalog.known_table(ref.schema, ref.name, snapshot)
    if table is None:
        return None
    question = _Question(catalog, table, snapshot, select, conf.get(_ZONE, "UTC"), slice_)
    try:
        result = question.counted() if select.count is not None else question.rows()
        return None if result is None else SmallResult(result[0], _values(result[1]))
    except (NotSupportedByArrow, OverflowError, ValueError, OSError):
        return None  # ValueError: Python has no such value


_Answer = tuple[tuple[tuple[str, str], ...], "pa.Table"]


@dataclass(frozen=True, slots=True)
class _Question:
    catalog: Catalog
    table: Table
    snapshot: Snapshot
    select: PlainSelect
    zone: str
    slice_: tuple[str, str] | None

    def counted(self) -> _Answer | None:
        """One row with the number of rows. Raises NotSupportedByArrow."""
        select = self.select
        assert select.count is not None, "asked for by the caller"
        number = None if select.where else self._known_count()
        if number is None:
            rows = self._matching([])
            if rows is None:
                return None
            number = rows.num_rows
        result = pa.table({select.count: pa.array([number], pa.int64())})
        return ((select.count, "bigint"),), result.slice(0, select.limit)

    def _known_count(self) -> int | None:
        """The number of all rows, where the catalog knows it."""
        with self.catalog.reading() as connection:
            return answers.totals(connection, self.table, self.snapshot.id).rows

    def rows(self) -> _Answer | None:
        """The columns that are asked for, in order. Raises NotSupportedByArrow."""
        select, schema = self.select, self.table.schema
        asked = schema.names if select.columns is None else select.columns
        columns = [_column(schema, name) for name in asked]
        rows = self._matching([*columns, *(_column(schema, key.column) for key in select.order)])
        if rows is None:
            return None
        rows = _in_order(rows, select.order, schema).slice(0, select.limit)
        named = rows.select([column.name for column in columns]).rename_columns(list(asked))
        kinds = (simple_string(column) for column in columns)
        return tuple(zip(asked, kinds, strict=True)), named

    def _matching(self, wanted: list[Column]) -> pa.Table | None:
        """The rows for which the condition is true, with at least these columns."""
        schema, where = self.table.schema, self._where()
        names = dict.fromkeys(column.name for column in wanted)
        if where is not None:
            names |= dict.fromkeys(sorted(where.columns))
        if self.slice_ is not None:
            column = _column(schema, self.slice_[0])
            if column.type != "varchar":
                raise NotSupportedByArrow(f"slices by {column.type}")
            names[column.name] = None
        if not names:
            names[_any_plain(schema).name] = None
        rows = read_small(self._scan(), list(names))
        if rows is None:
            return None
        if self.slice_ is not None:
            of_slice = pc.equal(rows[_column(schema, self.slice_[0]).name], self.slice_[1])
            rows = rows.filter(of_slice)
        if where is not None:
            rows = rows.filter(where.array(rows))
        return rows

    def _where(self) -> Expression | None:
        if self.select.where is None:
            return None
        # Imported late: loading Arrow's functions takes a tenth of the time of the whole answer.
        from penstock.lakes.arrow_expressions.compiled import condition

        kinds = _kinds(self.table.schema)
        return condition(self.select.where, kinds, in_utc=self.zone in _UTC)

    def _scan(self) -> Scan:
        """The files that may hold matching rows; with only a LIMIT, enough files for it."""
        select, table, id_ = self.select, self.table, self.snapshot.id
        predicate = None if select.where is None else of_where(select.where, zone=self.zone)
        files = self.catalog.files(table, id_, predicate)
        chooses = select.where or select.order or self.slice_ or select.count
        if select.limit is not None and not chooses:
            files = _first_files(files, select.limit)
        return Scan(table.qualified_name, table.schema, files, id_)


def _first_files(files: FileSet, limit: int) -> FileSet:
    """The first files that have ``limit`` rows, where no row of them is deleted."""
    if files.inlined_deletes is not None or any(file.deletes for file in files.files):
        return files
    ends = accumulate(file.record_count for file in files.files)
    enough = sum(end < limit for end in ends) + 1
    return replace(files, files=files.files[:enough])


def _column(schema: TableSchema, name: str) -> Column:
    matches = [column for column in schema.columns if fold(column.name) == fold(name)]
    if len(matches) != 1:
        raise NotSupportedByArrow(f"column {name}")
    return matches[0]


def _any_plain(schema: TableSchema) -> Column:
    for column in schema.columns:
        if base_type(column.type) in PLAIN:
            return column
    raise NotSupportedByArrow("no column that Arrow reads as Spark does")


def _kinds(schema: TableSchema) -> dict[str, pa.DataType]:
    plain = TableSchema(tuple(c for c in schema.columns if base_type(c.type) in PLAIN))
    return {field.name: field.type for field in arrow_schema(plain)}


def _in_order(rows: pa.Table, order: tuple[SortKey, ...], schema: TableSchema) -> pa.Table:
    """Sort by the last key first, as sorting is stable and keys differ in where NULL goes."""
    if not order:
        return rows
    for key in reversed(order):
        column = _column(schema, key.column)
        if base_type(column.type) not in _SORTED:
            raise NotSupportedByArrow(f"the order of {column.type}")
        places = pc.array_sort_indices(
            rows[column.name].combine_chunks(),
            order="descending" if key.descending else "ascending",
            null_placement="at_start" if key.nulls_first else "at_end",
        )
        rows = rows.take(places)
    return rows


def _values(rows: pa.Table) -> list[tuple[Any, ...]]:
    columns = [_CONVERSIONS.get(str(column.type), _plain)(column) for column in rows.columns]
    return list(zip(*columns, strict=True)) if columns else [()] * rows.num_rows


def _plain(column: pa.ChunkedArray) -> list[Any]:
    values: list[Any] = column.to_pylist()
    return values


def _moments(column: pa.ChunkedArray) -> list[Any]:
    """A TIMESTAMP as PySpark collects it: naive, in this machine's time zone."""
    return [
        None
        if micros is None
        else dt.datetime.fromtimestamp(micros // 1_000_000).replace(microsecond=micros % 1_000_000)  # noqa: DTZ006
        for chunk in column.chunks
        for micros in chunk.view(pa.int64()).to_pylist()
    ]


_CONVERSIONS: Mapping[str, Callable[[Any], list[Any]]] = {"timestamp[us, tz=UTC]": _moments}


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


def read_aggregates(tree: exp.Expr, table: exp.Table | None) -> tuple[Aggregate, ...] | None:
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


def answer_from_catalog(
    spark: SparkSession,
    catalog: Catalog,
    table: Table,
    snapshot_id: int,
    aggregates: Sequence[Aggregate],
) -> DataFrame | None:
    """One row, without reading a file; ``None`` where the catalog does not know exactly."""
    values = _exact_values(catalog, table, snapshot_id, aggregates)
    if values is None:
        return None
    arguments = {f"v{at}": value for at, (value, _) in enumerate(values)}
    items = [
        f"CAST(:v{at} AS {kind}) AS {quoted(aggregate.name)}"
        for at, (aggregate, (_, kind)) in enumerate(zip(aggregates, values, strict=True))
    ]
    return run_sql(spark, f"SELECT {', '.join(items)}", args=arguments)


def has_exact_answer(
    catalog: Catalog, table: Table, snapshot_id: int, aggregates: Sequence[Aggregate]
) -> bool:
    """Return whether the catalog answers all of them."""
    return _exact_values(catalog, table, snapshot_id, aggregates) is not None


def _exact_values(
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
