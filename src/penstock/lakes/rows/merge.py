"""MERGE with any clauses, merge on read.

One pass over the target joins it with the source and says of each row which clause applies. What
changes is then removed by place and rewritten under its row id, and source rows that matched
nothing are inserted. A MERGE that updates and inserts whole rows by unique keys goes the quicker
way of `penstock.lakes.rows.merge_by_key`, which leaves equal rows alone: the text of its condition
says what the keys are, and between which values they lie.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

from penstock.errors import MergeKeyError
from penstock.lakes.candidate.state import Staged
from penstock.lakes.format.naming import fold
from penstock.lakes.format.schema import Column, TableSchema
from penstock.lakes.format.values.bounds import base_type
from penstock.lakes.reading import scan
from penstock.lakes.reading.conversions.align import align, typed
from penstock.lakes.reading.conversions.casts import stored
from penstock.lakes.reading.conversions.spark_types import cacheable, schema_of, spark_type
from penstock.lakes.reading.scan import FILE, POSITION, ROW_ID
from penstock.lakes.rows import merge_by_key
from penstock.lakes.rows.change import Clause, Keys, MatchedRows, RowChange
from penstock.lakes.rows.deletes import remove_rows
from penstock.lakes.rows.merge_by_key import SeveralRowsOfOneKey
from penstock.lakes.rows.merge_source import ORDERED, bound_text, bound_value
from penstock.lakes.rows.spark_finder import (
    expressions,
    find,
    not_null,
    rewrite,
    rows_of,
    write_rows,
)
from penstock.lakes.rows.stager import Files, write
from penstock.lakes.writing.spark import Written
from penstock.lazy import exp
from penstock.spark.failures import explained
from penstock.spark.functions import expr, fn
from penstock.sql.identifiers import quoted
from penstock.sql.text import SqlExpression

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

    from penstock.lakes.candidate.staged import StagedTable

Pair = tuple[Column, str]  # the target's column and the name of the source's
_SOURCE = "_penstock_source"  # a number for each row of the source
_CLAUSE = "_penstock_clause"  # which clause applies; NULL for none
_SAMPLES = 20


@dataclass(frozen=True, slots=True)
class _Job:
    """``source`` is numbered and persisted; ``touching`` are the clauses that change the target's
    rows.
    """

    table: StagedTable
    change: RowChange
    name: str
    schema: TableSchema
    scanned: scan.Scan
    source: DataFrame
    touching: tuple[Clause, ...]
    by_source: bool  # whether target rows that nothing matches count

    @property
    def inserting(self) -> tuple[Clause, ...]:
        return self.change.of("not matched")


def stage(table: StagedTable, change: RowChange) -> Staged:
    """Stage a MERGE into ``table``. Raises MergeKeyError when several source rows would change one
    target row, with samples; ColumnNotFound for columns that the table does not have.
    """
    change.check()
    name = table.candidate.qualified_name
    with table.all_or_nothing(), explained(table=name):
        if change.evolve and change.takes_all:
            table.evolve(change.rows)
        staged = _by_key(table, change)
        if staged is not None:
            return staged
        source = cacheable(change.rows)
        source = source.withColumn(_SOURCE, fn.monotonically_increasing_id()).persist()
        try:
            job = _job(table, change, source)
            return _run(job)
        finally:
            source.unpersist()


def _by_key(table: StagedTable, change: RowChange) -> Staged | None:
    """The MERGE as one by key; ``None`` where it is another, or its keys are not unique."""
    upsert = as_upsert(change, table.written_schema)
    if upsert is None:
        return None
    try:
        with table.all_or_nothing():
            return merge_by_key.stage(table, upsert)
    except (MergeKeyError, SeveralRowsOfOneKey):
        return None


def _job(table: StagedTable, change: RowChange, source: DataFrame) -> _Job:
    by_source = change.of("not matched by source")
    touching = (*change.of("matched"), *by_source)
    name = table.candidate.qualified_name
    scanned = table.scan_all()
    return _Job(
        table, change, name, table.written_schema, scanned, source, touching, bool(by_source)
    )


def _run(job: _Job) -> Staged:
    if not job.scanned.files.files and job.scanned.files.inlined is None:
        return _staged(job, Files(inserted=_inserted(job, None)))
    pairs = _pairs(job).persist()
    found = MatchedRows()
    try:
        if job.touching:
            acting = pairs.where(fn.col(_CLAUSE).isNotNull())
            found = find(acting, job.scanned, job.table.context.limits)
        if found.asked != found.total and not job.change.only_deletes:
            raise _ambiguous(job)
        files = write(
            lambda: remove_rows(job.table, job.scanned, found),
            lambda: _updated(job, pairs, found),
            lambda: _inserted(job, pairs),
        )
    finally:
        found.release()
        pairs.unpersist()
    return _staged(job, files)


def _staged(job: _Job, files: Files) -> Staged:
    """Stage what the MERGE writes; rows that others write meanwhile may match some of the source.

    One that writes nothing does not depend on them: it may as well have been before them.
    """
    staged = files.stage(job.table)
    if not staged.unchanged:
        job.table.depend()
    return staged


def _pairs(job: _Job) -> DataFrame:
    """Matched rows of the target, with the clause that applies, new values and the source row.

    Where that matters, those that nothing matches too.
    """
    change = job.change
    target = rows_of(job.table, job.scanned)
    rows, within = measure(job.source, [] if job.by_source else keys_of(change, job.schema))
    for condition in within:
        target = target.where(condition)
    source = job.source.alias(change.on.source)
    if rows <= job.table.context.limits.broadcast_rows:
        source = fn.broadcast(source)
    on = _match(change)
    how = "left" if job.by_source else "inner"
    joined = target.alias(change.on.target).join(source, on, how)
    joined = joined.withColumn(_CLAUSE, _clause(job))
    if not job.inserting:
        joined = joined.where(fn.col(_CLAUSE).isNotNull())
    picked = joined.select(FILE, POSITION, ROW_ID, _SOURCE, _CLAUSE, *_new_values(job, joined))
    return typed(picked, job.schema)


def _match(change: RowChange) -> SparkColumn:
    on = change.on.condition
    return expr(on.text) if isinstance(on, SqlExpression) else on


def _clause(job: _Job) -> SparkColumn:
    """The number of the first clause that applies, of those that change target rows."""
    applying: SparkColumn = fn.lit(None).cast("int")
    for number, clause in reversed(list(enumerate(job.touching))):
        is_matched = fn.col(_SOURCE).isNotNull()
        applies = is_matched if clause.kind == "matched" else ~is_matched
        if clause.condition is not None:
            applies = applies & _condition(clause)
        applying = fn.when(applies, fn.lit(number)).otherwise(applying)
    return applying


def _condition(clause: Clause) -> SparkColumn:
    if clause.condition is None:
        return fn.lit(True)
    return expr(clause.condition) if isinstance(clause.condition, str) else clause.condition


def _new_values(job: _Job, joined: DataFrame) -> list[SparkColumn]:
    """The columns of the target after the clause; of what is deleted or left, nothing certain."""
    change = job.change
    updates = [(n, clause) for n, clause in enumerate(job.touching) if clause.action == "update"]
    if not updates:
        return []
    new = [(n, _values(job, joined, clause, change.on.target)) for n, clause in updates]
    columns: list[SparkColumn] = []
    for column in job.schema.columns:
        old = fn.col(f"{quoted(change.on.target)}.{quoted(column.name)}")
        cases = [values.get(column.name, old) for _, values in new]
        value = cases[-1]
        for (number, _), case in zip(new[:-1], cases[:-1], strict=True):
            value = fn.when(fn.col(_CLAUSE) == number, case).otherwise(value)
        columns.append(value.alias(column.name))
    return columns


def _values(
    job: _Job, rows: DataFrame, clause: Clause, alias: str | None
) -> dict[str, SparkColumn]:
    """The columns that a clause gives values to, computed from ``rows``, in their types."""
    if clause.values is not None:
        values = expressions(clause.values, job.schema, job.name, alias)
    else:
        have = {fold(name): name for name in job.change.rows.columns}
        source = quoted(job.change.on.source)
        values = {
            column.name: fn.col(f"{source}.{quoted(have[fold(column.name)])}")
            for column in job.schema.columns
            if fold(column.name) in have
        }
    return stored(rows, values, job.schema, rounds=clause.rounds)


def _updated(job: _Job, pairs: DataFrame, found: MatchedRows) -> list[Written]:
    numbers = [n for n, clause in enumerate(job.touching) if clause.action == "update"]
    if not numbers or not found.total:
        return []
    rows = pairs.where(fn.col(_CLAUSE).isin(numbers)).drop(_SOURCE, _CLAUSE)
    return rewrite(job.table, job.scanned, rows, found)


def _inserted(job: _Job, pairs: DataFrame | None) -> Written:
    """The rows that clauses make of source rows which match nothing."""
    if not job.inserting:
        return Written()
    rows = job.source
    if pairs is not None:
        known = pairs.where(fn.col(_SOURCE).isNotNull()).select(_SOURCE)
        rows = rows.join(known, _SOURCE, "left_anti")
    rows = rows.alias(job.change.on.source)
    frames: list[DataFrame] = []
    earlier: SparkColumn = fn.lit(False)
    for clause in job.inserting:
        applies = fn.coalesce(_condition(clause), fn.lit(False))
        frames.append(_made(job, rows.where(applies & ~earlier), clause))
        earlier = earlier | applies
    return write_rows(job.table, reduce(lambda a, b: a.unionByName(b), frames), row_id=None)


def _made(job: _Job, rows: DataFrame, clause: Clause) -> DataFrame:
    values = _values(job, rows, clause, None)
    made = rows.select(*(value.alias(name) for name, value in values.items()))
    made = not_null(typed(made, job.schema), job.schema, job.name)
    return made.select(*align(made, job.schema, table=job.name))


def _ambiguous(job: _Job) -> MergeKeyError:
    """Several source rows for a target row, with samples of these."""
    places = [fn.col(FILE), fn.col(POSITION), fn.col(ROW_ID)]
    change = job.change
    source = job.source.alias(change.on.source)
    on = _match(change)
    joined = rows_of(job.table, job.scanned).alias(change.on.target).join(source, on)
    shown = [fn.col(f"{quoted(change.on.target)}.{quoted(n)}") for n in job.schema.names]
    acting = joined.where(_clause(job).isNotNull())
    groups = acting.groupBy(*places).agg(
        fn.count(fn.lit(1)).alias("rows"), fn.first(fn.struct(*shown)).alias("value")
    )
    bad = groups.where("rows > 1").persist()
    try:
        number = bad.count()
        found = bad.orderBy(*places).limit(_SAMPLES).collect()
    finally:
        bad.unpersist()
    samples = [{**row["value"].asDict(recursive=True), "rows": row["rows"]} for row in found]
    return MergeKeyError(
        f"{number} rows of {job.name} are matched by several rows of the source each",
        hint=f"for example {_shown(samples)}; select one source row for each",
        data={"duplicate_count": number, "samples": samples},
    )


def _shown(samples: Sequence[dict[str, object]]) -> str:
    return "; ".join(
        ", ".join(f"{name} = {value}" for name, value in sample.items()) for sample in samples[:3]
    )


def keys_of(change: RowChange, schema: TableSchema) -> list[Pair]:
    """Columns of both sides that are of one type that orders, and equal where rows match.

    They are found in conditions given as text, as conjuncts ``t.a = s.b``.
    """
    source = schema_of(change.rows)
    pairs: list[Pair] = []
    for part in _conjuncts(change):
        equality = part.unnest()
        if not isinstance(equality, exp.EQ):
            continue
        sides = equality.left, equality.right
        for left, right in (sides, sides[::-1]):
            column = _named(left, change.on.target, schema)
            other = _named(right, change.on.source, source)
            if column is not None and other is not None and _orders(column, other):
                pairs.append((column, other.name))
    return pairs


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
    if len(pairs) != len(_conjuncts(change)) or any(
        clause.condition is not None for clause in change.clauses
    ):
        return None
    news, olds = (_columns_of(clause, change, schema) for clause in (insert, update))
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


def _conjuncts(change: RowChange) -> list[exp.Expr]:
    """The conditions that an AND puts together, of one that is text that sqlglot reads."""
    on = change.on.condition
    tree = on.tree if isinstance(on, SqlExpression) else None
    if tree is None:
        return []
    return list(tree.flatten()) if isinstance(tree, exp.And) else [tree]


def _columns_of(clause: Clause, change: RowChange, schema: TableSchema) -> dict[str, str] | None:
    """Return which column of the source each column of the target gets;
    ``None`` for other values.
    """
    source = change.rows.columns
    if len(set(map(fold, source))) < len(source):
        return None
    if clause.values is None:
        known = {fold(name): name for name in source}
        both = (column for column in schema.columns if fold(column.name) in known)
        return {column.name: known[fold(column.name)] for column in both}
    columns: dict[str, str] = {}
    for name, value in clause.values.items():
        tree = SqlExpression(value).tree if isinstance(value, str) else None
        column = schema.find(name)
        other = None if tree is None else _named(tree, change.on.source, schema_of(change.rows))
        if column is None or other is None or column.name in columns:
            return None
        columns[column.name] = other.name
    return columns


def _renamed(source: DataFrame, names: Mapping[str, str], schema: TableSchema) -> DataFrame:
    """The source's columns as the target has them, cast as any MERGE casts them."""
    fields = {field.name: field.dataType for field in source.schema.fields}
    known = {column.name: column for column in schema.columns}
    columns = {name: fn.col(quoted(other)) for name, other in names.items()}
    other_types = {
        name: column
        for name, column in columns.items()
        if fields[names[name]] != spark_type(known[name])
    }
    columns |= stored(source, other_types, schema) if other_types else {}
    return source.select(*(column.alias(name) for name, column in columns.items()))


def _named(tree: exp.Expr, alias: str, schema: TableSchema) -> Column | None:
    tree = tree.unnest()
    if not isinstance(tree, exp.Column) or len(tree.parts) != 2 or fold(tree.table) != fold(alias):
        return None
    return schema.find(tree.name)


def _orders(left: Column, right: Column) -> bool:
    return left.type == right.type and base_type(left.type) in ORDERED


def measure(source: DataFrame, keys: list[Pair]) -> tuple[int, list[SparkColumn]]:
    """Return how many rows the source has, and conditions that all target rows
    satisfy which match.
    """
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
