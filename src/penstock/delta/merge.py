"""MERGE into a Delta table, with every clause: as a lake's, with Spark's casts of the values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import TYPE_CHECKING, Any, Literal

from penstock.delta.version import Apply, Draft, Work
from penstock.errors import ArgumentError, ColumnNotFound, MergeKeyError
from penstock.lakes.format.schema import Column, TableSchema
from penstock.lakes.reading.conversions.spark_types import cast_type
from penstock.lakes.rows import change as rows
from penstock.lakes.rows.engine import stage
from penstock.lakes.rows.spark_finder import rows_of
from penstock.spark.failures import explained
from penstock.spark.functions import expr, fn
from penstock.spark.session import session_zone
from penstock.sql.identifiers import fold, quoted
from penstock.sql.predicate import of_where
from penstock.sql.text import Predicate, as_expression

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

    from penstock.lakes.reading.scan import Scan
    from penstock.lakes.transaction import Staged, TransactionTable

TARGET, SOURCE = "target", "source"
Kind = Literal["matched", "not_matched", "not_matched_by_source"]
Action = Literal["update", "insert", "delete"]
_ACTIONS: Mapping[str, frozenset[str]] = {
    "matched": frozenset({"update", "delete"}),
    "not_matched": frozenset({"insert"}),
    "not_matched_by_source": frozenset({"update", "delete"}),
}
_KINDS: Mapping[Kind, rows.Kind] = {
    "matched": "matched",
    "not_matched": "not matched",
    "not_matched_by_source": "not matched by source",
}
_ROWS = "_penstock_rows"
_ALL = Predicate(None)
_SAMPLES = 3


@dataclass(frozen=True, slots=True)
class Clause:
    """``WHEN kind AND condition THEN action``.

    ``condition`` and the values of ``assignments`` name ``target.c`` and ``source.c``; a clause of
    ``not_matched`` names only ``source.c``. Without assignments columns match by their names.
    """

    kind: Kind
    action: Action
    condition: str | None = None
    assignments: Mapping[str, str] | None = field(default=None, hash=False)


UPSERT = (Clause("matched", "update"), Clause("not_matched", "insert"))


def merge(
    draft: Draft, source: DataFrame, on: str | Sequence[str], clauses: Sequence[Clause] = UPSERT
) -> Work:
    """Merge rows. The first clause that holds for a row counts.

    Args:
        draft: The table as it is.
        source: The rows to merge.
        on: The names of columns that are equal in rows that match (NULL equals nothing), or a
            condition on ``target`` and ``source``.
        clauses: What becomes of the rows.

    Returns:
        The change.

    Raises:
        ArgumentError: The merge has no key, or a clause is not valid.
        BaseException: The keys of the source are NULL or come twice (MergeKeyError), or it cannot
            be read.
    """
    _check_clauses(clauses)
    schema, name = draft.schema, draft.place.name
    if isinstance(on, str):
        change = _row_change(on, schema, source, clauses)
        return Work(draft, "MERGE", lambda table: stage(table, change), _ALL)
    keys = [_key(schema, source, key, name) for key in on]
    if not keys:
        raise ArgumentError("no keys to merge by", hint="name at least one column")
    held = source.persist()  # it is read several times, and its rows stay the same
    try:
        with explained(table=name):
            within = _range(draft, _check_keys(held, keys, name), clauses)
        apply = _by_keys(schema, held, keys, clauses)
    except BaseException:
        held.unpersist()
        raise
    return Work(draft, "MERGE", apply, within, held=held)


def _by_keys(
    schema: TableSchema,
    source: DataFrame,
    keys: Sequence[tuple[str, str]],
    clauses: Sequence[Clause],
) -> Apply:
    given = {fold(name) for name in source.columns}
    on = " AND ".join(
        f"{TARGET}.{quoted(ours)} = {SOURCE}.{quoted(theirs)}" for ours, theirs in keys
    )
    if tuple(clauses) == UPSERT and all(fold(column.name) in given for column in schema.columns):
        return lambda table: _upsert(table, source, on)
    change = _row_change(on, schema, source, clauses)
    return lambda table: stage(table, change)


def _upsert(table: TransactionTable, source: DataFrame, on: str) -> Staged:
    """Add all rows of the source, and remove those that they match.

    Each is written once, and of the table nothing but the keys is read.
    """

    def matched(scan: Scan) -> DataFrame:
        ours = rows_of(table, scan).alias(TARGET)
        return ours.join(source.alias(SOURCE), expr(on), "left_semi")

    staged = stage(table, rows.RowChange.overwrite(source, rows.Condition(selected=matched)))
    updated = staged.rows_deleted
    inserted = staged.rows_written - updated
    return replace(staged, rows_inserted=inserted, rows_updated=updated, rows_deleted=0)


def _check_clauses(clauses: Sequence[Clause]) -> None:
    if not clauses:
        raise ArgumentError("a merge without clauses", hint="give UPSERT, or clauses of your own")
    for clause in clauses:
        if clause.action not in _ACTIONS.get(clause.kind, ()):
            raise ArgumentError(
                f"a merge does not {clause.action} rows {clause.kind}",
                hint="matched: update or delete; not_matched: insert; not_matched_by_source: "
                "update or delete",
            )
        if clause.assignments is None and (clause.kind, clause.action) == (
            "not_matched_by_source",
            "update",
        ):
            raise ArgumentError(
                "an update of rows not matched by the source has no row to take values from",
                hint="give assignments",
            )


def _row_change(
    on: str, schema: TableSchema, source: DataFrame, clauses: Sequence[Clause]
) -> rows.RowChange:
    """A MERGE as a lake has it, without the clauses that can never apply."""
    kept: list[rows.Clause] = []
    closed: set[Kind] = set()
    for clause in clauses:
        if clause.kind in closed:
            continue
        if clause.condition is None:
            closed.add(clause.kind)
        condition = None if clause.condition is None else expr(clause.condition)
        values = None if clause.action == "delete" else _values(clause, schema, source)
        kind = _KINDS[clause.kind]
        kept.append(rows.Clause(kind, clause.action, condition, values, rounds=False))
    return rows.RowChange(rows.On(as_expression(on), TARGET, SOURCE), tuple(kept), source)


def _values(clause: Clause, schema: TableSchema, source: DataFrame) -> dict[str, object]:
    """The new values of columns."""
    if clause.assignments is not None:
        return assigned(clause.assignments, schema)
    theirs = {fold(name): name for name in source.columns}
    return {
        column.name: cast_to(fn.col(f"{SOURCE}.{quoted(theirs[fold(column.name)])}"), column)
        for column in schema.columns
        if fold(column.name) in theirs
    }


def assigned(assignments: Mapping[str, str], schema: TableSchema) -> dict[str, object]:
    """Read expressions in the types of their columns; those of fields are cast with their columns.

    Args:
        assignments: The expressions by column.
        schema: The columns of the table.

    Returns:
        The values by column.
    """
    values: dict[str, object] = {}
    for name, text in assignments.items():
        column = schema.find(name)
        values[name] = expr(text) if column is None else cast_to(expr(text), column)
    return values


def cast_to(value: SparkColumn, column: Column) -> SparkColumn:
    """Cast a value to the type of a column as Spark does; what is nested is cast when written.

    Args:
        value: The value.
        column: The column that it is for.

    Returns:
        The value in the column's type.
    """
    return value if column.children else value.cast(cast_type(column))


def _key(schema: TableSchema, source: DataFrame, name: str, table: str) -> tuple[str, str]:
    """The names of a key in the table and in the source."""
    column = schema.find(name)
    theirs = next((n for n in source.columns if fold(n) == fold(name)), None)
    if column is None or theirs is None:
        where = f"the Delta table {table}" if column is None else "the source"
        raise ColumnNotFound(
            f"the key {name!r} is not a column of {where}",
            hint="merge by columns that both have",
            data={"column": name},
        )
    return column.name, theirs


@dataclass(frozen=True, slots=True)
class _Keys:
    """The first key's lowest and highest value in the source."""

    name: str
    low: Any
    high: Any


def _check_keys(source: DataFrame, keys: Sequence[tuple[str, str]], table: str) -> _Keys:
    """Look at the keys of the source by one job. Raises MergeKeyError."""
    columns = [fn.col(quoted(theirs)) for _, theirs in keys]
    counted = source.groupBy(*columns).agg(fn.count(fn.lit(1)).alias(_ROWS))
    is_null = reduce(lambda a, b: a | b, [column.isNull() for column in columns])
    (totals,) = counted.agg(
        fn.sum(fn.when(is_null, fn.col(_ROWS))),
        fn.sum(fn.when((fn.col(_ROWS) > 1) & ~is_null, fn.col(_ROWS))),
        fn.min(columns[0]),
        fn.max(columns[0]),
    ).collect()
    nulls, doubles, low, high = totals
    if nulls or doubles:
        wrong = counted.where(is_null | (fn.col(_ROWS) > 1)).drop(_ROWS).limit(_SAMPLES)
        samples = [row.asDict() for row in wrong.collect()]
        raise MergeKeyError(
            f"the source of the merge into {table} has {nulls or 0} rows with a key that is NULL "
            f"and {doubles or 0} with one that comes twice",
            hint="keep one row of each key in the SELECT",
            data={
                "null_count": nulls or 0,
                "duplicate_count": doubles or 0,
                "samples": samples,
            },
        )
    return _Keys(keys[0][0], low, high)


def _range(draft: Draft, keys: _Keys, clauses: Sequence[Clause]) -> Predicate:
    """The rows that can matter.

    They are those of the source's keys, or all where rows without a partner matter too.
    """
    low, high = _literal(keys.low), _literal(keys.high)
    if low is None or high is None or any(c.kind == "not_matched_by_source" for c in clauses):
        return _ALL
    name = quoted(keys.name)
    zone = session_zone(draft.place.spark())
    return of_where(f"{name} >= {low} AND {name} <= {high}", zone=zone)


def _literal(value: Any) -> str | None:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else None
