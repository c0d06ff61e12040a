"""history: every version of every row is kept (slowly changing dimensions, type 2).

A load is compared with the open versions once. What changed closes its version and opens another;
what is new opens one; what is gone is closed where the model says so; what is the same is not
written. A closed version keeps its values and its row id (merge on read). The rules are those of
history.md; `penstock.engine.history` has them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import reduce
from typing import TYPE_CHECKING

from penstock.destinations.values import AddressedRows, Staged, TableSchema
from penstock.engine.history import versions as late_rows
from penstock.engine.history.load import (
    AGAIN,
    ALONE,
    AT,
    LAST,
    LOADED,
    NO_KEY,
    NO_TIME,
    ORDER,
    Load,
    Rules,
    bad,
    fingerprint_of,
    literal_text,
    load_of,
    marked,
    watched,
)
from penstock.engine.history.versions import (
    BEFORE,
    END,
    LATE,
    MET,
    NUMBER,
    OPEN,
    READ,
    SINCE,
    START,
    UNTIL,
    Versions,
    chained,
    difference,
    differs,
    is_void,
    repeats,
    valid,
    versions_of,
)
from penstock.engine.strategies.target import Step, WriteTarget, given
from penstock.engine.strategies.upsert import keys_in_spark
from penstock.errors import StepError
from penstock.lakes.reading.conversions.align import align, fit, known, typed
from penstock.lakes.reading.conversions.spark_types import cacheable, schema_of, spark_type
from penstock.model.definition.model import Model
from penstock.model.values.history import FEW_CLOSED, History
from penstock.spark.failures import explained
from penstock.spark.functions import as_condition, expr, fn
from penstock.sql.identifiers import fold, quoted
from penstock.sql.predicate import of_where
from penstock.sql.text import as_expression

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame, Row

    from penstock.destinations.destination import StagedTable
    from penstock.sql.text import Predicate


@dataclass(frozen=True, slots=True)
class Options:
    """Say how versions are kept, by ``keys`` with what they are in Spark's SQL. ``now`` is the
    execution time.
    """

    history: History
    keys: tuple[tuple[str, str], ...]
    now: datetime

    @classmethod
    def of(cls, model: Model, step: Step) -> Options:
        return cls(given(model.history), keys_in_spark(model), step.now)


def stage(table: StagedTable, df: DataFrame, target: WriteTarget[Options]) -> Staged:
    """Raises MergeKeyError for keys that are NULL or come twice, SchemaMismatch, ColumnNotFound."""
    name, asked = table.qualified_name, target.options
    rules = Rules(name, asked.history, asked.keys, asked.now, first=not table.exists)
    with table.all_or_nothing(), explained(table=name):
        if rules.first:
            return _begun(table, df, rules)
        load = load_of(_fitted(table, df), rules)
        known = target.known_fingerprint
        if known is not None and fingerprint_of(load, rules) == known:
            return _unchanged(table, known)
        return _gone_on(table, load, rules)


def _unchanged(table: StagedTable, fingerprint: str | None) -> Staged:
    return Staged(unchanged=True, slice_rows=table.count_rows(), fingerprint=fingerprint)


def _begun(table: StagedTable, df: DataFrame, rules: Rules) -> Staged:
    """The first load: nothing is there to compare with."""
    load, watch = watched(load_of(known(df), rules), rules)
    load = marked(load, rules, once=True)  # which _check_written looks at
    nothing = {name: fn.lit(None).cast(rules.kind) for name in (SINCE, UNTIL)}
    before = fn.col(ORDER) if rules.history.updated_at else fn.lit(None)
    rows = load.rows.withColumns(nothing | {OPEN: fn.lit(None).cast("boolean")})
    rows = rows.withColumn(BEFORE, fn.when(fn.lit(False), before))
    versions = chained(rows, rules, fn.lit(True), repeats(load, rules))
    staged = table.append(_as_rows(valid(versions, rules), load.columns, rules))
    _check_written(table, load, rules)
    return replace(staged, fingerprint=watch.text() if staged.rows_written else None)


def _check_written(table: StagedTable, load: Load, rules: Rules) -> None:
    """The load is evaluated once, so its keys are looked at where they have been written."""
    written = table.to_df().select(*map(quoted, load.columns))
    keys = [expr(text) for _, text in rules.keys]
    if rules.history.updated_at:
        keys.append(fn.col(quoted(rules.history.updated_at)))
    names = [f"_penstock_{number}" for number in range(len(keys))]
    counted = written.select(*(k.alias(n) for k, n in zip(keys, names, strict=True)))
    groups = counted.groupBy(*names).agg(fn.count(fn.lit(1)).alias("n"))
    is_null = reduce(lambda a, b: a | b, (fn.col(name).isNull() for name in names))
    if groups.where(is_null | (fn.col("n") > 1)).limit(1).count():
        raise bad(marked(load_of(written, rules), rules).rows, rules)


def _gone_on(table: StagedTable, load: Load, rules: Rules) -> Staged:
    open_rows = table.addressed_rows(f"{quoted(rules.history.valid_to)} IS NULL")
    versions = versions_of(open_rows, rules)
    with _Kept() as kept:
        found = _compared(load, versions, rules, kept)
        staged = _unchanged(table, None)
        if found.counts["all"]:
            staged = _staged(table, found, versions, rules, _Open(kept, open_rows))
        return replace(staged, fingerprint=found.fingerprint)


@dataclass(frozen=True, slots=True)
class _Compared:
    """The rows of ``load`` are the difference; ``fingerprint`` is that of all its rows."""

    load: Load
    counts: Row
    fingerprint: str | None


def _compared(load: Load, versions: Versions, rules: Rules, kept: _Kept) -> _Compared:
    """Compare the load with the open versions. Raises MergeKeyError.

    That keys without times come once is seen by counting: a version that is met twice, or a key
    that is twice among what is new. What is observed may count too much, where Spark does a part of
    a job again, and never too little; in doubt the rows are looked at once more.
    """
    from pyspark.sql import Observation

    once = rules.history.updated_at is None
    for is_sure in (not once, True):
        observation = Observation()
        rows, watch = watched(load, rules)
        rows = marked(rows, rules, once=not is_sure)
        diff = kept.keep(difference(rows, versions, rules, observation))
        counts, seen = _counts(diff, rules), observation.get
        if is_sure or not (
            counts["wrong"]
            or counts["loaded"] > counts["keys"]
            or seen[MET] > versions.rows.count()
        ):
            break
    if counts["wrong"]:
        raise bad(diff, rules)
    _check_closed(counts["gone"], versions, rules, is_empty=not seen[READ])
    return _Compared(replace(rows, rows=diff), counts, watch.text() if seen[READ] else None)


def _check_closed(gone: int, versions: Versions, rules: Rules, *, is_empty: bool) -> None:
    """Raise StepError for a load that lacks so many keys that its source may be incomplete."""
    most = rules.history.max_closed
    if not gone or most >= 100 or not (is_empty or gone > FEW_CLOSED):
        return
    total = versions.rows.count()
    if not is_empty and gone * 100 <= most * total:
        return
    why = "the SELECT returned no rows" if is_empty else f"more than {most}% (max_closed)"
    raise StepError(
        f"{rules.table} would close {gone:,} of {total:,} keys: {why}",
        hint="if these keys were deleted, write max_closed=100 (in MODEL: max_closed 100) for this "
        "run; otherwise complete the source",
        data={"table": rules.table, "closed": gone, "keys": total},
    )


def _counts(diff: DataFrame, rules: Rules) -> Row:
    wrong, loaded = fn.col(NO_KEY) | fn.col(NO_TIME) | fn.col(AGAIN), fn.col(LOADED).isNotNull()
    begun = fn.col(SINCE) >= rules.present  # a version that may have to end when it began
    if rules.history.updated_at is not None:
        begun = begun | (fn.col(SINCE) >= fn.col(AT))
    (counts,) = diff.agg(
        fn.count(fn.lit(1)).alias("all"),
        fn.count_if(wrong).alias("wrong"),
        fn.count_if(loaded).alias("loaded"),
        fn.count_distinct(fn.when(loaded, fn.struct(*rules.key_columns))).alias("keys"),
        fn.count_if(loaded & fn.col(OPEN).isNull()).alias("unknown"),
        fn.count_if(~loaded).alias("gone"),
        fn.count_if(fn.col(LATE)).alias("late"),
        fn.count_if(begun).alias("begun"),
        fn.count_if(loaded & ~fn.col(ALONE)).alias("several"),
    ).collect()
    return counts


class _Kept:
    """Rows that are read several times, persisted until the end of a block."""

    def __init__(self) -> None:
        self._frames: list[DataFrame] = []

    def keep(self, df: DataFrame) -> DataFrame:
        self._frames.append(cacheable(df).persist())
        return self._frames[-1]

    def __enter__(self) -> _Kept:
        return self

    def __exit__(self, *_: object) -> None:
        for frame in self._frames:
            frame.unpersist()


@dataclass(frozen=True, slots=True)
class _Open:
    """``rows`` are the open versions."""

    kept: _Kept
    rows: AddressedRows


def _staged(
    table: StagedTable, found: _Compared, versions: Versions, rules: Rules, is_open: _Open
) -> Staged:
    """Close and open what the difference says."""
    load, counts = found.load, found.counts
    diff, loaded = load.rows, fn.col(LOADED).isNotNull()
    rows = _with_last(table, load, rules, ask=bool(counts["unknown"]))
    news = rows.where(loaded & ~fn.col(LATE) & _opens(rules))
    opening = chained(news, rules, differs(load, versions), repeats(load, rules))
    if rules.history.updated_at is not None:  # it is read several times
        opening = is_open.kept.keep(opening)
    gone = diff.where(~loaded).withColumn(END, fn.greatest(rules.present, fn.col(SINCE)))
    closed = opening.where((fn.col(NUMBER) == 1) & fn.coalesce(fn.col(OPEN), fn.lit(False)))
    closing = [gone, closed.withColumn(END, fn.col(START))]
    changes = _Changes(closing, [opening], is_open.rows, voids=bool(counts["begun"]))
    if rules.history.by_time and (counts["late"] or counts["unknown"] or counts["several"]):
        changes = _with_late(table, rows, changes, rules, is_open.kept)
    return _written(table, changes, load, versions, rules)


@dataclass(frozen=True, slots=True)
class _Changes:
    """Versions to close, open ones beside the END that they get; versions to open with START and
    END; closed ones with another SINCE and UNTIL. ``among`` are the versions that may be
    closed. Without ``voids`` none of those to close or move ends when it begins."""

    closing: Sequence[DataFrame]
    opening: Sequence[DataFrame]
    among: AddressedRows
    moving: DataFrame | None = None
    voids: bool = True


def _with_late(
    table: StagedTable, rows: DataFrame, changes: _Changes, rules: Rules, kept: _Kept
) -> _Changes:
    """The changes, with what rows bring that belong into the past of their keys: late ones, and
    those that would open versions of no length."""
    is_open = fn.col(OPEN)
    (opening,), (gone, closed) = changes.opening, changes.closing
    passed_over = ~is_open & (fn.col(ORDER) < fn.col(BEFORE)) & ~fn.col(LAST)
    late = rows.where(fn.col(LATE) | fn.coalesce(passed_over, fn.lit(False)))
    void = opening.where(is_void(START, END))
    late = late.unionByName(void.select(*map(quoted, late.columns)))
    if late.limit(1).count() == 0:
        return changes
    keys = rules.key_columns
    every = table.addressed_rows()
    versions = versions_of(every, rules)
    known = kept.keep(late_rows.of_keys(versions, late, rules))
    starts = opening.where(fn.col(NUMBER) == 1)
    opened = starts.select(*keys, fn.col(START).alias(late_rows.OPENED))
    placed = late_rows.placed(late, known, opened, rules)
    others = closed.join(late.select(*keys).distinct(), keys, "left_anti")
    return _Changes([gone, others], [opening, placed.added], every, placed.moved)


def _written(
    table: StagedTable,
    changes: _Changes,
    load: Load,
    versions: Versions,
    rules: Rules,
) -> Staged:
    """Close and move versions, remove those that would end when they begin, add the new ones."""
    closing = [each.withColumn(UNTIL, fn.col(END)) for each in changes.closing]
    closing += [] if changes.moving is None else [changes.moving]
    lasting, gone = closing, None
    if changes.voids:
        void = is_void(SINCE, UNTIL)
        lasting = [each.where(~void) for each in closing]
        gone = _union([each.where(void).select(*versions.address) for each in closing])
    renewed = [_renewed(each, table, versions, rules.history) for each in lasting]
    opened = [each.where(~is_void(START, END)) for each in changes.opening]
    opened = [_as_rows(each, load.columns, rules) for each in opened]
    return table.close_versions(_union(renewed), gone, _union(opened), changes.among)


def _union(frames: Sequence[DataFrame]) -> DataFrame:
    return reduce(lambda a, b: a.unionByName(b), frames)


def _opens(rules: Rules) -> SparkColumn:
    """Return whether a row may open a version: of a key that was closed only newer rows may, and
    the newest of the load, which brings it back.
    """
    if rules.history.updated_at is None:
        return fn.lit(True)
    newer = fn.coalesce(fn.col(ORDER) > fn.col(BEFORE), fn.lit(True))
    return fn.coalesce(fn.col(OPEN), fn.lit(False)) | newer | fn.col(LAST)


def _with_last(table: StagedTable, load: Load, rules: Rules, *, ask: bool) -> DataFrame:
    """The difference, with the last version of keys that have none open: BEFORE, SINCE, UNTIL, and
    OPEN, which is false then. ``ask``: there are such keys."""
    history, diff = rules.history, load.rows
    if not ask:
        return diff.withColumn(UNTIL, fn.lit(None).cast(rules.kind))
    ended = quoted(history.valid_to)
    text = f"{ended} IS NOT NULL"
    if history.updated_at is None:  # only what ended later than now matters
        text = f"{ended} > {literal_text(rules.now, rules.kind)}"
    closed = table.to_df(_where(text)).where(as_condition(text))
    last = late_rows.last_of(closed, rules)
    keys = rules.key_columns
    unknown = diff.where(fn.col(LOADED).isNotNull() & fn.col(OPEN).isNull())
    joined = unknown.drop(BEFORE, SINCE, OPEN).join(last, keys, "left")
    others = diff.where(fn.col(LOADED).isNull() | fn.col(OPEN).isNotNull())
    return others.withColumn(UNTIL, fn.lit(None).cast(rules.kind)).unionByName(joined)


def _where(text: str) -> Predicate | None:
    return of_where(as_expression(text), zone="UTC", args={})


def _fitted(table: StagedTable, df: DataFrame) -> DataFrame:
    """``df`` in the table's types, structs by the names of their fields.

    Raises SchemaMismatch for columns that would lose something.
    """
    given = {fold(name) for name in df.columns}
    shared = TableSchema(tuple(c for c in table.schema.columns if fold(c.name) in given))
    align(df, shared, table=table.qualified_name)
    df = typed(df, shared)
    columns = {fold(column.name): column for column in shared.columns}
    sources = {column.name: column for column in schema_of(df).columns}
    fields = {field.name: field.dataType for field in df.schema.fields}

    def fitted(name: str) -> SparkColumn:
        column, value = columns[fold(name)], fn.col(quoted(name))
        if fields[name] == spark_type(column):
            return value
        if column.children:
            value = fit(value, sources[name], column, name)
        return value.cast(spark_type(column)).alias(name)

    return df.select(*map(fitted, df.columns))


def _as_rows(versions: DataFrame, columns: tuple[str, ...], rules: Rules) -> DataFrame:
    """Versions with the columns of the table."""
    history = rules.history
    managed = [fn.col(START).alias(history.valid_from), fn.col(END).alias(history.valid_to)]
    if history.is_current is not None:
        managed.append(fn.col(END).isNull().alias(history.is_current))
    return versions.select(*(fn.col(quoted(name)) for name in columns), *managed)


def _renewed(
    rows: DataFrame, table: StagedTable, versions: Versions, history: History
) -> DataFrame:
    """Versions of the table, by their addresses, valid from SINCE to UNTIL."""
    since, until = fn.col(SINCE), fn.col(UNTIL)
    new = {fold(history.valid_from): since, fold(history.valid_to): until}
    if history.is_current is not None:
        new[fold(history.is_current)] = until.isNull()
    columns = [
        new.get(fold(column.name), fn.col(versions.name(column.name))).alias(column.name)
        for column in table.schema.columns
    ]
    return rows.select(*columns, *versions.address)
