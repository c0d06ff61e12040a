"""Hand SQL to Spark: the one way for texts, so that Spark reads them as they are written.

Spark substitutes ``${...}`` in all SQL that it parses; see `penstock.sql.substitution`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from penstock.lake.spark.functions import fn
from penstock.sql.substitution import unsubstituted

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame, SparkSession


def run_sql(
    session: SparkSession,
    text: str,
    args: Mapping[str, Any] | None = None,
    frames: Mapping[str, DataFrame] | None = None,
) -> DataFrame:
    """Run a text in the session; ``{t0}`` in it stands for a DataFrame of ``frames``."""
    named = dict[str, Any](frames or {})
    return session.sql(unsubstituted(text), args=None if args is None else dict(args), **named)


def expr(text: str) -> SparkColumn:
    """Return the Column of an expression's text."""
    return fn.expr(unsubstituted(text))


def as_condition(where: str | SparkColumn) -> str | SparkColumn:
    """Return a condition as `DataFrame.where` takes it."""
    return unsubstituted(where) if isinstance(where, str) else where
