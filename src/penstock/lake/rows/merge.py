"""MERGE with any clauses, merge on read.

One pass over the target joins it with the source and says of each row which clause applies. What
changes is then removed by place and written anew under its row id, and source rows that matched
nothing are inserted. A MERGE that updates and inserts whole rows by unique keys goes the quicker
way of `penstock.lake.rows.merge_by_key`, which leaves equal rows alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING

from penstock.errors import MergeKeyError
from penstock.lake.candidate.state import Removed, Staged
from penstock.lake.format.naming import fold
from penstock.lake.format.schema import TableSchema
from penstock.lake.reading import scan
from penstock.lake.reading.conversions.align import align, typed
from penstock.lake.reading.conversions.casts import stored
from penstock.lake.reading.conversions.spark_types import cacheable, quoted
from penstock.lake.reading.scan import FILE, POSITION, ROW_ID
from penstock.lake.rows import merge_by_key
from penstock.lake.rows.assign import expressions, not_null
from penstock.lake.rows.change import Clause, RowChange
from penstock.lake.rows.merge_by_key import SeveralRowsOfOneKey
from penstock.lake.rows.merge_keys import as_upsert, keys_of, measure
from penstock.lake.rows.places import RowPlaces, find
from penstock.lake.rows.remove import take_away, write_rows
from penstock.lake.rows.stager import write
from penstock.lake.rows.updates import rewrite, rows_of
from penstock.lake.spark.failures import explained
from penstock.lake.writing.spark import Written

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

    from penstock.lake.candidate.staged import StagedTable

_SOURCE = "_penstock_source"  # a number for each row of the source
_CLAUSE = "_penstock_clause"  # which clause applies; NULL for none
_SAMPLES = 20


@dataclass(frozen=True, slots=True)
class _Job:
    """``source`` is numbered and kept; ``touching`` are the clauses that change target rows."""

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
    from pyspark.sql import functions as fn

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
        inserted = _inserted(job, None)
        job.table.take(Removed(), [inserted] if inserted.rows else [])
        return _staged(inserted, 0, 0)
    pairs = _pairs(job).persist()
    which = RowPlaces()
    try:
        if job.touching:
            which = find(_acting(pairs), job.scanned, job.table.context.limits)
        if which.asked != which.total and not job.change.only_deletes:
            raise _ambiguous(job)
        files = write(
            lambda: take_away(job.table, job.scanned, which),
            lambda: _updated(job, pairs, which),
            lambda: _inserted(job, pairs),
        )
    finally:
        which.release()
        pairs.unpersist()
    if not files.changes_nothing:
        files.stage(job.table)
        job.table.stage(replace(job.table.candidate, depends_on_rows=True))
    return _staged(files.inserted, files.rows_updated, which.total)


def _staged(inserted: Written, updated: int, touched: int) -> Staged:
    return Staged(
        rows_written=inserted.rows + updated,
        rows_inserted=inserted.rows,
        rows_updated=updated,
        rows_deleted=touched - updated,
        unchanged=not (inserted.rows or touched),
    )


def _pairs(job: _Job) -> DataFrame:
    """Matched rows of the target, with the clause that applies, new values and the source row.

    Where that matters, those that nothing matches too.
    """
    from pyspark.sql import functions as fn

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
    from pyspark.sql import functions as fn

    on = change.on.condition
    return fn.expr(on) if isinstance(on, str) else on


def _clause(job: _Job) -> SparkColumn:
    """The number of the first clause that applies, of those that change target rows."""
    from pyspark.sql import functions as fn

    found: SparkColumn = fn.lit(None).cast("int")
    for number, one in reversed(list(enumerate(job.touching))):
        is_matched = fn.col(_SOURCE).isNotNull()
        applies = is_matched if one.kind == "matched" else ~is_matched
        if one.condition is not None:
            applies = applies & _condition(one)
        found = fn.when(applies, fn.lit(number)).otherwise(found)
    return found


def _condition(one: Clause) -> SparkColumn:
    from pyspark.sql import functions as fn

    if one.condition is None:
        return fn.lit(True)
    return fn.expr(one.condition) if isinstance(one.condition, str) else one.condition


def _new_values(job: _Job, joined: DataFrame) -> list[SparkColumn]:
    """The columns of the target after the clause; of what is deleted or left, nothing certain."""
    from pyspark.sql import functions as fn

    change = job.change
    updates = [(n, one) for n, one in enumerate(job.touching) if one.action == "update"]
    if not updates:
        return []
    given = [
        (number, stored(joined, _values(job, one, change.on.target), job.schema))
        for number, one in updates
    ]
    columns: list[SparkColumn] = []
    for column in job.schema.columns:
        old = fn.col(f"{quoted(change.on.target)}.{quoted(column.name)}")
        cases = [values.get(column.name, old) for _, values in given]
        value = cases[-1]
        for (number, _), case in zip(given[:-1], cases[:-1], strict=True):
            value = fn.when(fn.col(_CLAUSE) == number, case).otherwise(value)
        columns.append(value.alias(column.name))
    return columns


def _values(job: _Job, one: Clause, alias: str | None) -> dict[str, SparkColumn]:
    """The columns that a clause gives values to."""
    from pyspark.sql import functions as fn

    if one.values is not None:
        return expressions(one.values, job.schema, job.name, alias)
    have = {fold(name): name for name in job.change.rows.columns}
    source = quoted(job.change.on.source)
    return {
        column.name: fn.col(f"{source}.{quoted(have[fold(column.name)])}")
        for column in job.schema.columns
        if fold(column.name) in have
    }


def _acting(pairs: DataFrame) -> DataFrame:
    from pyspark.sql import functions as fn

    return pairs.where(fn.col(_CLAUSE).isNotNull())


def _updated(job: _Job, pairs: DataFrame, which: RowPlaces) -> list[Written]:
    from pyspark.sql import functions as fn

    numbers = [n for n, one in enumerate(job.touching) if one.action == "update"]
    if not numbers or not which.total:
        return []
    rows = pairs.where(fn.col(_CLAUSE).isin(numbers)).drop(_SOURCE, _CLAUSE)
    return rewrite(job.table, job.scanned, rows, which)


def _inserted(job: _Job, pairs: DataFrame | None) -> Written:
    """The rows that clauses make of source rows which match nothing."""
    from pyspark.sql import functions as fn

    if not job.inserting:
        return Written()
    rows = job.source
    if pairs is not None:
        known = pairs.where(fn.col(_SOURCE).isNotNull()).select(_SOURCE)
        rows = rows.join(known, _SOURCE, "left_anti")
    rows = rows.alias(job.change.on.source)
    frames: list[DataFrame] = []
    earlier: SparkColumn = fn.lit(False)
    for one in job.inserting:
        applies = fn.coalesce(_condition(one), fn.lit(False))
        frames.append(_made(job, rows.where(applies & ~earlier), one))
        earlier = earlier | applies
    return write_rows(job.table, reduce(lambda a, b: a.unionByName(b), frames), row_id=None)


def _made(job: _Job, rows: DataFrame, one: Clause) -> DataFrame:
    values = stored(rows, _values(job, one, None), job.schema)
    made = rows.select(*(value.alias(name) for name, value in values.items()))
    made = not_null(typed(made, job.schema), job.schema, job.name)
    return made.select(*align(made, job.schema, table=job.name))


def _ambiguous(job: _Job) -> MergeKeyError:
    """Several source rows for a target row, with samples of these."""
    from pyspark.sql import functions as fn

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
