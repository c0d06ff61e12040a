"""Closed versions: the last of each key, and where rows that come late belong among all.

By time a row that is older than the open version of its key belongs into the past. It becomes a
version there, from its own time to the beginning of the next: the order in which rows come makes no
difference. A time that the key has a version of already is no news.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.engine.history.chain import BEFORE, END, OPEN, SINCE, START, UNTIL
from penstock.engine.history.diff import OLD, PLACE, Versions
from penstock.engine.history.load import AT, ORDER, Rules, with_keys
from penstock.engine.history.moments import converted
from penstock.spark.functions import expr, fn
from penstock.spark.session import session_zone
from penstock.sql.identifiers import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

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
    place = (fn.coalesce(fn.col(each).cast("string"), fn.lit("")) for each in PLACE)
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
