"""Versions that are closed: the last of each key, and where rows that come late belong."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.engine.versions.chain import BEFORE, OPEN, SINCE, UNTIL
from penstock.engine.versions.load import Rules, with_keys
from penstock.sql.identifiers import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def last_of(closed: DataFrame, rules: Rules) -> DataFrame:
    """The last version of each key among closed ones: keys, BEFORE, SINCE, UNTIL and OPEN."""
    from pyspark.sql import functions as fn

    history = rules.history
    before = quoted(history.updated_at) if history.updated_at else "NULL"
    parts = [
        fn.col(quoted(history.valid_to)).alias(UNTIL),
        fn.col(quoted(history.valid_from)).alias(SINCE),
        fn.expr(before).alias(BEFORE),
    ]
    keyed = with_keys(closed, rules).groupBy(*rules.key_columns)
    last = keyed.agg(fn.max(fn.struct(*parts)).alias("last"))
    names = (UNTIL, SINCE, BEFORE)
    return last.select(
        *rules.key_columns, *(fn.col(f"last.{name}") for name in names), fn.lit(False).alias(OPEN)
    )
