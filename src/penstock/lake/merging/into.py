"""MERGE with any clauses, merge on read.

One pass over the target joins it with the source and says of each row which clause applies. What
changes is then removed by place and written anew under its row id, and source rows that matched
nothing are inserted. A MERGE that updates and inserts whole rows by unique keys goes the quicker
way of `penstock.lake.merging.by_key`, which leaves equal rows alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING

from penstock.errors import MergeKeyError
from penstock.lake import scan
from penstock.lake.candidate.state import Removed, Staged
from penstock.lake.conversions.align import align, typed
from penstock.lake.conversions.casts import stored
from penstock.lake.conversions.spark_types import quoted
from penstock.lake.dml.assign import expressions, not_null
from penstock.lake.dml.found import Found, find
from penstock.lake.dml.remove import take_away, write_rows
from penstock.lake.dml.rows import rewrite, rows_of
from penstock.lake.failures import explained
from penstock.lake.merging.by_key import SeveralRowsOfOneKey, merge
from penstock.lake.merging.keys import keys_of, measure, upsert_of
from penstock.lake.merging.spec import Clause, MergeSpec
from penstock.lake.naming import fold
from penstock.lake.parquet.footers import remove_directory
from penstock.lake.scan import FILE, POSITION, ROW_ID
from penstock.lake.schema import TableSchema
from penstock.lake.writing.spark import Written

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

    from penstock.lake.staging import TransactionTable

_SOURCE = "_penstock_source"  # a number for each row of the source
_CLAUSE = "_penstock_clause"  # which clause applies; NULL for none
_SAMPLES = 20


@dataclass(frozen=True, slots=True)
class _Job:
    """``source`` is numbered and kept; ``touching`` are the clauses that change target rows."""

    table: TransactionTable
    spec: MergeSpec
    name: str
    schema: TableSchema
    scanned: scan.Scan
    source: DataFrame
    touching: tuple[Clause, ...]
    by_source: bool  # whether target rows that nothing matches count

    @property
    def inserting(self) -> tuple[Clause, ...]:
        return self.spec.of("not matched")


def run(table: TransactionTable, spec: MergeSpec) -> Staged:
    """Stage a MERGE into ``table``. Raises MergeKeyError when several source rows would change one
    target row, with samples; ColumnNotFound for columns that the table does not have.
    """
    from pyspark.sql import functions as fn

    spec.check()
    name = table.candidate.qualified_name
    with table.all_or_nothing(), explained(table=name):
        if spec.evolve and spec.takes_all:
            table.evolve(spec.source)
        staged = _by_key(table, spec)
        if staged is not None:
            return staged
        source = spec.source.withColumn(_SOURCE, fn.monotonically_increasing_id()).persist()
        try:
            job = _job(table, spec, source)
            return _run(job)
        finally:
            source.unpersist()


def _by_key(table: TransactionTable, spec: MergeSpec) -> Staged | None:
    """The MERGE as one by key; ``None`` where it is another, or its keys are not unique."""
    upsert = upsert_of(spec, table.written_schema)
    if upsert is None:
        return None
    try:
        with table.all_or_nothing():
            rows = typed(upsert.rows, table.written_schema)
            return merge(table, rows, upsert.keys, None, one_row=False)
    except (MergeKeyError, SeveralRowsOfOneKey):
        return None


def _job(table: TransactionTable, spec: MergeSpec, source: DataFrame) -> _Job:
    by_source = spec.of("not matched by source")
    touching = (*spec.of("matched"), *by_source)
    name = table.candidate.qualified_name
    scanned = table.scan_all()
    return _Job(table, spec, name, table.written_schema, scanned, source, touching, bool(by_source))


def _run(job: _Job) -> Staged:
    if not job.scanned.files.files and job.scanned.files.inlined is None:
        inserted = _inserted(job, None)
        job.table.take(Removed(), [inserted] if inserted.rows else [])
        return _staged(inserted, Written(), 0)
    pairs = _pairs(job).persist()
    which, directories = Found(), list[str | None]()
    try:
        if job.touching:
            which = find(_acting(pairs), job.scanned, job.table.context.limits)
        if which.given != which.total and not job.spec.only_deletes:
            raise _ambiguous(job)
        inserted, updated, removed = _write(job, pairs, which, directories)
    except BaseException:
        for directory in filter(None, directories):
            remove_directory(directory)
        raise
    finally:
        which.release()
        pairs.unpersist()
    if inserted.rows or which.total:
        job.table.take(removed, [inserted, *updated])
        job.table.stage(replace(job.table.candidate, depends_on_rows=True))
    changed = Written(rows=sum(one.rows for one in updated))
    return _staged(inserted, changed, which.total)


def _staged(inserted: Written, updated: Written, touched: int) -> Staged:
    return Staged(
        rows_written=inserted.rows + updated.rows,
        rows_inserted=inserted.rows,
        rows_updated=updated.rows,
        rows_deleted=touched - updated.rows,
        unchanged=not (inserted.rows or touched),
    )


def _write(
    job: _Job, pairs: DataFrame, which: Found, directories: list[str | None]
) -> tuple[Written, list[Written], Removed]:
    """The three writes side by side, as each leaves cores idle.

    All are awaited; ``directories`` gets what was written, also where one of them fails.
    """
    with ThreadPoolExecutor(3, "penstock-merge") as pool:
        removed = pool.submit(take_away, job.table, job.scanned, which)
        updated = pool.submit(_updated, job, pairs, which)
        inserted = pool.submit(_inserted, job, pairs)
        if inserted.exception() is None:
            directories.append(inserted.result().directory)
        if updated.exception() is None:
            directories += (one.directory for one in updated.result())
        if removed.exception() is None:
            directories += removed.result().directories
        return inserted.result(), updated.result(), removed.result()


def _pairs(job: _Job) -> DataFrame:
    """Matched rows of the target, with the clause that applies, new values and the source row.

    Where that matters, those that nothing matches too.
    """
    from pyspark.sql import functions as fn

    spec = job.spec
    target = rows_of(job.table, job.scanned)
    rows, within = measure(job.source, [] if job.by_source else keys_of(spec, job.schema))
    for condition in within:
        target = target.where(condition)
    source = job.source.alias(spec.source_alias)
    if rows <= job.table.context.limits.broadcast_rows:
        source = fn.broadcast(source)
    on = fn.expr(spec.on) if isinstance(spec.on, str) else spec.on
    how = "left" if job.by_source else "inner"
    joined = target.alias(spec.target_alias).join(source, on, how)
    joined = joined.withColumn(_CLAUSE, _clause(job))
    if not job.inserting:
        joined = joined.where(fn.col(_CLAUSE).isNotNull())
    picked = joined.select(FILE, POSITION, ROW_ID, _SOURCE, _CLAUSE, *_new_values(job, joined))
    return typed(picked, job.schema)


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

    spec = job.spec
    updates = [(n, one) for n, one in enumerate(job.touching) if one.action == "update"]
    if not updates:
        return []
    given = [
        (number, stored(joined, _values(job, one, spec.target_alias), job.schema))
        for number, one in updates
    ]
    columns: list[SparkColumn] = []
    for column in job.schema.columns:
        old = fn.col(f"{quoted(spec.target_alias)}.{quoted(column.name)}")
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
    have = {fold(name): name for name in job.spec.source.columns}
    source = quoted(job.spec.source_alias)
    return {
        column.name: fn.col(f"{source}.{quoted(have[fold(column.name)])}")
        for column in job.schema.columns
        if fold(column.name) in have
    }


def _acting(pairs: DataFrame) -> DataFrame:
    from pyspark.sql import functions as fn

    return pairs.where(fn.col(_CLAUSE).isNotNull())


def _updated(job: _Job, pairs: DataFrame, which: Found) -> list[Written]:
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
    rows = rows.alias(job.spec.source_alias)
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
    spec = job.spec
    source = job.source.alias(spec.source_alias)
    on = fn.expr(spec.on) if isinstance(spec.on, str) else spec.on
    joined = rows_of(job.table, job.scanned).alias(spec.target_alias).join(source, on)
    shown = [fn.col(f"{quoted(spec.target_alias)}.{quoted(n)}") for n in job.schema.names]
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
        ", ".join(f"{name} = {value}" for name, value in one.items()) for one in samples[:3]
    )
