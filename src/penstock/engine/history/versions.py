"""Compare a load with the versions of a history: the open ones, and where rows that come late
belong among the closed ones.

One full outer join by the keys, for which Spark evaluates the load once, tells what is new, has
changed or is gone; only what differs is kept.

By time a row that is older than the open version of its key belongs into the past. It becomes a
version there, from its own time to the beginning of the next: the order in which rows come makes no
difference. A time that the key has a version of already is no news.

Find the versions that the rows of a load open, and when: a key at a time, in the order of time.

A load of several rows of a key gives what the same rows give one load after the other. A version
begins where the one before ends, so that they neither overlap nor leave a gap but for the time in
which a key was deleted. A version that would end when it begins was never valid, and is not stored:
a join as of that moment could find it beside the one that is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import reduce
from typing import TYPE_CHECKING

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
    comparable,
    converted,
    literal,
    with_keys,
)
from penstock.spark.functions import expr, fn
from penstock.spark.session import session_zone
from penstock.sql.identifiers import fold, quoted

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame, Observation

    from penstock.destinations.values import AddressedRows


# Of the newest version of a key before the load: its updated_at, when it began and ended (NULL if
# it is open), and whether it is open; that is NULL for a key without versions.
BEFORE, SINCE, UNTIL = "_penstock_before", "_penstock_since", "_penstock_until"
OPEN = "_penstock_open"
#: of the versions that a load opens: when they begin and end, and their number among their key's
START, END, NUMBER = "_penstock_start", "_penstock_end", "_penstock_number"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def chained(rows: DataFrame, rules: Rules, differs: SparkColumn, again: SparkColumn) -> DataFrame:
    """``rows`` that open versions, with START, END and NUMBER.

    ``differs`` says of a row that it is unlike the open version before the load, ``again`` that it
    is like the row before (`_without_repeats`).
    """
    if rules.history.updated_at is None:  # a key has one row
        one = {NUMBER: fn.lit(1), END: fn.lit(None).cast(rules.kind)}
        return rows.withColumns({START: _first_start(rules), **one})
    if not rules.history.by_time:
        rows = _without_repeats(rows, rules, differs, again)
    window = rules.window()
    number, begun = fn.row_number().over(window), fn.first(_first_start(rules)).over(window)
    rows = rows.withColumns({NUMBER: number, START: begun})
    first, second = fn.col(START), fn.nth_value(AT, 2).over(window)
    later = fn.greatest(rules.present, first, fn.col(AT))
    start = fn.when(second >= first, fn.col(AT)).otherwise(later)
    rows = rows.withColumn(START, fn.when(fn.col(NUMBER) == 1, first).otherwise(start))
    return rows.withColumn(END, fn.lead(START).over(window))


def _without_repeats(
    rows: DataFrame, rules: Rules, differs: SparkColumn, again: SparkColumn
) -> DataFrame:
    """By column, a row that equals the one before it makes no new version."""
    is_first = fn.row_number().over(rules.window()) == 1
    is_open = fn.coalesce(fn.col(OPEN), fn.lit(False))
    news = fn.when(is_first, ~is_open | differs).otherwise(~again)
    return rows.withColumn(NUMBER, news).where(NUMBER).drop(NUMBER)


def _first_start(rules: Rules) -> SparkColumn:
    """Return when the first version of a key that a load opens begins (history.md, the table of
    events).

    Where its own time is before the beginning of the version before, it is the execution time; and
    never a moment before that beginning, which may lie in the future.
    """
    now, history = rules.present, rules.history
    after_open = fn.greatest(now, fn.col(SINCE))
    after_closed = fn.greatest(now, fn.col(UNTIL))
    if history.updated_at is not None:
        newer = (fn.col(AT) >= fn.col(SINCE)) & ~fn.coalesce(
            fn.col(ORDER) <= fn.col(BEFORE), fn.lit(False)
        )
        after_open = fn.when(newer, fn.col(AT)).otherwise(after_open)
        if history.by_time:
            after_closed = fn.greatest(fn.col(AT), fn.col(UNTIL))
    is_open = fn.col(OPEN)
    changed = fn.when(is_open, after_open).when(~is_open, after_closed)
    return changed.otherwise(_new_start(rules))


def _new_start(rules: Rules) -> SparkColumn:
    """Return when a key without versions begins."""
    history = rules.history
    if rules.first and history.start == "epoch":
        return literal(EPOCH, rules.kind)
    if history.updated_at is None or history.start == "execution":
        return rules.present
    return fn.col(AT)


def is_void(start: str, end: str) -> SparkColumn:
    """Return whether a version, by two columns, ends when it begins."""
    return fn.coalesce(fn.col(end) <= fn.col(start), fn.lit(False))


def valid(versions: DataFrame, rules: Rules) -> DataFrame:
    """Versions of a first load without those of no length, but for bad rows and rows that others
    repeat, which the check of what was written has to see."""
    if rules.history.updated_at is None:  # all are open
        return versions
    repeated = fn.coalesce(fn.lead(AGAIN).over(rules.window()), fn.lit(False))
    bad = fn.col(NO_KEY) | fn.col(NO_TIME) | fn.col(AGAIN) | repeated
    return versions.withColumn(NUMBER, bad | ~is_void(START, END)).where(NUMBER)


def struct_of(columns: Sequence[SparkColumn]) -> SparkColumn:
    """These columns as one to compare; they may be none."""
    return fn.struct(*columns) if columns else fn.lit(True)


OLD = "_penstock_old_"
LATE = "_penstock_late"  # older than the open version of its key
READ, MET = "read", "met"


@dataclass(frozen=True, slots=True)
class Versions:
    """Versions of a table with their addresses; ``columns`` are the table's, by their names, and
    what they are called in ``rows``. The keys are those of `Rules.key_columns` with OLD before."""

    rows: DataFrame
    columns: dict[str, str]
    address: tuple[str, ...]

    def name(self, column: str) -> str:
        return self.columns[fold(column)]


def versions_of(found: AddressedRows, rules: Rules) -> Versions:
    """Rows of the table, with their addresses, under names that no load has."""
    history, rows = rules.history, found.df
    own = [name for name in rows.columns if name not in found.address]
    columns = {fold(name): f"{OLD}{number}" for number, name in enumerate(own)}
    keyed = with_keys(rows, rules)
    before = quoted(history.updated_at) if history.updated_at else "NULL"
    renamed = keyed.select(
        *(fn.col(quoted(name)).alias(columns[fold(name)]) for name in own),
        *found.address,
        *(fn.col(key).alias(f"{OLD}{key}") for key in rules.key_columns),
        expr(before).alias(BEFORE),
        fn.col(quoted(history.valid_from)).alias(SINCE),
        fn.lit(True).alias(OPEN),
    )
    return Versions(renamed, columns, found.address)


def difference(load: Load, versions: Versions, rules: Rules, observation: Observation) -> DataFrame:
    """Rows of the load that are unlike the open version of their key, beside it; open versions
    that the load lacks, if they are to be closed; and rows that cannot be.

    Observed are the rows of the load that were READ, and how often an open version was MET: once
    each, and once more for each further row of the same key.
    """
    keys = [(fn.col(key), fn.col(f"{OLD}{key}")) for key in rules.key_columns]
    on = reduce(lambda a, b: a & b, (new == old for new, old in keys))
    is_open, loaded = fn.col(OPEN).isNotNull(), fn.col(LOADED).isNotNull()
    joined = load.rows.join(versions.rows, on, "full_outer").observe(
        observation, fn.count_if(loaded).alias(READ), fn.count_if(is_open).alias(MET)
    )
    gone = ~loaded if rules.history.closes else fn.lit(False)
    is_bad = fn.col(NO_KEY) | fn.col(NO_TIME) | fn.col(AGAIN)
    late, changed = fn.lit(False), differs(load, versions)
    if rules.history.updated_at is not None:
        order, before = fn.col(ORDER), fn.col(BEFORE)
        newer = fn.coalesce(order > before, fn.lit(True))
        if rules.history.by_time:
            late = is_open & fn.coalesce(order < before, fn.lit(False))
            changed = changed | ~order.eqNullSafe(before)
        else:
            changed = (changed & (newer | fn.col(LAST))) | (newer & ~fn.col(ALONE))
    marked = joined.withColumn(LATE, late)
    return marked.where(gone | (loaded & (is_bad | ~is_open | changed)))


def differs(load: Load, versions: Versions) -> SparkColumn:
    """Return whether a row of the load is unlike the version beside it in a tracked column; NULL is
    like NULL.
    """
    kinds = dict(load.rows.dtypes)
    found: SparkColumn = fn.lit(False)
    for name in load.tracked:
        new, old = (comparable(each, kinds[name]) for each in (name, versions.name(name)))
        found = found | ~new.eqNullSafe(old)
    return found


def repeats(load: Load, rules: Rules) -> SparkColumn:
    """Return whether a row of the load is like the one before it in all tracked columns."""
    kinds = dict(load.rows.dtypes)
    tracked = struct_of([comparable(name, kinds[name]) for name in load.tracked])
    return fn.lag(tracked).over(rules.window()).eqNullSafe(tracked)


# When the versions that the load opens begin; a version that holds the moment of a late row, the
# beginning of the next one, and until when late rows may take its place.
OPENED = "_penstock_opened"
_ID, _ALL, _AROUND, _NEXT, _CAP = (
    f"_penstock_{name}" for name in ("id", "all", "around", "next", "cap")
)
_BEFORE_IT, _INSIDE, _SIDE = "before", "inside", "_penstock_side"


@dataclass(frozen=True, slots=True)
class Late:
    """Versions to add, with START and END, and those that make room for them: all columns of the
    versions, with the validity that they get in SINCE and UNTIL."""

    added: DataFrame
    moved: DataFrame


def last_of(closed: DataFrame, rules: Rules) -> DataFrame:
    """The last version of each key among closed ones: keys, BEFORE, SINCE, UNTIL and OPEN."""
    history = rules.history
    before = quoted(history.updated_at) if history.updated_at else "NULL"
    parts = [
        fn.col(quoted(history.valid_to)).alias(UNTIL),
        fn.col(quoted(history.valid_from)).alias(SINCE),
        expr(before).alias(BEFORE),
    ]
    keyed = with_keys(closed, rules).groupBy(*rules.key_columns)
    last = keyed.agg(fn.max(fn.struct(*parts)).alias("last"))
    names = (UNTIL, SINCE, BEFORE)
    return last.select(
        *rules.key_columns, *(fn.col(f"last.{name}") for name in names), fn.lit(False).alias(OPEN)
    )


def of_keys(versions: Versions, keys: DataFrame, rules: Rules) -> DataFrame:
    """All versions of some keys, with an id of each and UNTIL."""
    named = {f"{OLD}{key}": key for key in rules.key_columns}
    place = (fn.coalesce(fn.col(each).cast("string"), fn.lit("")) for each in versions.address)
    own = versions.rows.withColumnsRenamed(named).withColumns(
        {
            UNTIL: fn.col(versions.name(rules.history.valid_to)),
            _ID: fn.concat_ws("\n", *place),
        }
    )
    return own.join(keys.select(*rules.key_columns).distinct(), rules.key_columns, "left_semi")


def placed(late: DataFrame, versions: DataFrame, opened: DataFrame, rules: Rules) -> Late:
    """Return where the rows of ``late`` belong among ``versions``, all those of their keys
    (`of_keys`); ``opened`` is when what else the load opens begins, by key.
    """
    keys = rules.key_columns
    known = versions.join(opened, keys, "left")
    rows = _beside(late, known, rules)
    added = _added(rows, rules)
    return Late(added, _moved(rows, known))


def _beside(late: DataFrame, versions: DataFrame, rules: Rules) -> DataFrame:
    """Late rows that are news, each with the version that holds its moment, or the next one."""
    each = fn.struct(_ID, SINCE, UNTIL, BEFORE)
    whole = versions.groupBy(*rules.key_columns).agg(
        fn.collect_list(each).alias(_ALL), fn.first(OPENED).alias(OPENED)
    )
    rows = late.drop(BEFORE, SINCE, UNTIL, OPEN).join(whole, rules.key_columns)
    at, order = fn.col(AT), fn.col(ORDER)
    rows = rows.where(~fn.exists(_ALL, lambda v: v[BEFORE].eqNullSafe(order)))

    def holds(version: SparkColumn) -> SparkColumn:
        ended = fn.coalesce(version[UNTIL] <= at, fn.lit(False))
        return (version[SINCE] <= at) & ~ended

    after = fn.filter(_ALL, lambda v: v[SINCE] > at)
    rows = rows.withColumns(
        {
            _AROUND: fn.get(fn.filter(_ALL, holds), fn.lit(0)),
            _NEXT: fn.array_min(fn.transform(after, lambda v: v[SINCE])),
        }
    ).drop(_ALL)
    return _with_side(rows, rules)


def _with_side(rows: DataFrame, rules: Rules) -> DataFrame:
    """Return whether a row comes before the version around it, inside of it, or
    into a gap (NULL).
    """
    around = fn.col(_AROUND)
    kind = dict(rows.dtypes)[ORDER]
    own = converted(around[BEFORE], kind, rules.kind, session_zone(rows.sparkSession))
    ends = fn.least(own, around[UNTIL], fn.when(around[UNTIL].isNull(), fn.col(OPENED)))
    older = fn.coalesce(fn.col(ORDER) < around[BEFORE], fn.lit(False))
    side = fn.when(around.isNotNull(), fn.when(older, _BEFORE_IT).otherwise(_INSIDE))
    cap = (
        fn.when(side == _BEFORE_IT, ends)
        .when(side == _INSIDE, fn.coalesce(around[UNTIL], fn.col(OPENED)))
        .otherwise(fn.coalesce(fn.col(_NEXT), fn.col(OPENED)))
    )
    return rows.withColumns({_SIDE: side, _CAP: cap})


def _added(rows: DataFrame, rules: Rules) -> DataFrame:
    from pyspark.sql import Window

    keys = map(fn.col, (*rules.key_columns, _SIDE, _NEXT))
    window = Window.partitionBy(*keys, fn.col(_AROUND)[_ID]).orderBy(ORDER)
    at = fn.least(fn.col(AT), fn.col(_CAP))
    is_first = (fn.row_number().over(window) == 1) & (fn.col(_SIDE) == _BEFORE_IT)
    start = fn.when(is_first, fn.col(_AROUND)[SINCE]).otherwise(at)
    end = fn.coalesce(fn.lead(at).over(window), fn.col(_CAP))
    return rows.withColumns({START: start, END: end})


def _moved(rows: DataFrame, versions: DataFrame) -> DataFrame:
    """Versions that begin or end elsewhere: those that late rows are put before or into, and open
    ones that what the load opens closes."""
    side = fn.col(_SIDE)
    sides = rows.groupBy(fn.col(_AROUND)[_ID].alias(_ID)).agg(
        fn.max(fn.when(side == _BEFORE_IT, fn.col(_CAP))).alias(_CAP),
        fn.min(fn.when(side == _INSIDE, fn.col(AT))).alias(_NEXT),
    )
    closed = fn.when(fn.col(UNTIL).isNull(), fn.col(OPENED))
    beside = versions.join(sides, _ID, "left")
    changed = beside.where(
        fn.col(_CAP).isNotNull() | fn.col(_NEXT).isNotNull() | closed.isNotNull()
    )
    since = fn.coalesce(fn.col(_CAP), fn.col(SINCE))
    until = fn.coalesce(fn.col(_NEXT), fn.col(UNTIL), fn.col(OPENED))
    same = since.eqNullSafe(fn.col(SINCE)) & until.eqNullSafe(fn.col(UNTIL))
    return changed.where(~same).withColumns({SINCE: since, UNTIL: until})
