"""Call Spark: its functions of columns (``fn``, `penstock.lazy`), SQL as it is written, and rows
of Arrow.

Spark substitutes ``${...}`` in all SQL that it parses; see `penstock.sql.tokens`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from penstock.lazy import Late, pa
from penstock.sql.tokens import unsubstituted

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql import functions as fn
else:
    fn = Late("pyspark.sql.functions")

__all__ = ["arrow_frame", "as_condition", "expr", "fn", "run_sql"]


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


def arrow_frame(session: SparkSession, table: pa.Table) -> DataFrame:
    """Return the rows of an Arrow table: Spark Connect takes no empty one without a schema."""
    if table.num_rows:
        return session.createDataFrame(table)
    row = pa.table([pa.nulls(1, field.type) for field in table.schema], table.column_names)
    return session.createDataFrame(row).where(fn.lit(False))


def as_condition(where: str | SparkColumn) -> str | SparkColumn:
    """Return a condition as `DataFrame.where` takes it."""
    return unsubstituted(where) if isinstance(where, str) else where
