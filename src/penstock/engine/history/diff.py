"""A load against the open versions of a table: what is new, has changed or is gone.

One full outer join by the keys, for which Spark evaluates the load once; only what differs is kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

from penstock.engine.history.chain import BEFORE, OPEN, SINCE, struct_of
from penstock.engine.history.load import (
    AGAIN,
    ALONE,
    LAST,
    LOADED,
    NO_KEY,
    NO_TIME,
    ORDER,
    Load,
    Rules,
    comparable,
    with_keys,
)
from penstock.lake.reading.scan import FILE, POSITION, ROW_ID
from penstock.spark.functions import expr, fn
from penstock.sql.identifiers import fold, quoted

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame, Observation

OLD = "_penstock_old_"
LATE = "_penstock_late"  # older than the open version of its key
PLACE = (FILE, POSITION, ROW_ID)
READ, MET = "read", "met"


@dataclass(frozen=True, slots=True)
class Versions:
    """Versions of a table with their places; ``columns`` are the table's, by their names, and what
    they are called in ``rows``. The keys are those of `Rules.key_columns` with OLD before."""

    rows: DataFrame
    columns: dict[str, str]

    def name(self, column: str) -> str:
        return self.columns[fold(column)]


def versions_of(rows: DataFrame, rules: Rules) -> Versions:
    """``rows`` of the table, with their places, under names that no load has."""
    history = rules.history
    own = [name for name in rows.columns if name not in PLACE]
    columns = {fold(name): f"{OLD}{number}" for number, name in enumerate(own)}
    keyed = with_keys(rows, rules)
    before = quoted(history.updated_at) if history.updated_at else "NULL"
    renamed = keyed.select(
        *(fn.col(quoted(name)).alias(columns[fold(name)]) for name in own),
        *PLACE,
        *(fn.col(key).alias(f"{OLD}{key}") for key in rules.key_columns),
        expr(before).alias(BEFORE),
        fn.col(quoted(history.valid_from)).alias(SINCE),
        fn.lit(True).alias(OPEN),
    )
    return Versions(renamed, columns)


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
