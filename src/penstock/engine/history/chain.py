"""Find the versions that the rows of a load open, and when: a key at a time, in the order of time.

A load of several rows of a key gives what the same rows give one load after the other. A version
begins where the one before ends, so that they neither overlap nor leave a gap but for the time in
which a key was deleted. A version that would end when it begins was never valid, and is not stored:
a join as of that moment could find it beside the one that is.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from penstock.engine.history.load import AGAIN, AT, NO_KEY, NO_TIME, ORDER, Rules
from penstock.engine.history.moments import literal
from penstock.spark.functions import fn

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

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
