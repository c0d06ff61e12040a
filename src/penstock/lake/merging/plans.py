"""What Spark's plan of a query says about it, by its public EXPLAIN."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_TREE = re.compile(r"^[\s:+-]*(?:\*\(\d+\) )?")
# A projection without a call only picks and renames.
_PLAIN = re.compile(r"(?:ColumnarToRow|FileScan parquet \[.*|Project \[[^()]*\])$")


def is_plain_scan(spark: SparkSession, df: DataFrame) -> bool:
    """Whether ``df`` is columns of Parquet files as they stand.

    Such rows cost no more to read again than to keep, and are the same each time. Of a plan that
    is not understood the answer is no.
    """
    (row,) = spark.sql("EXPLAIN SELECT * FROM {df}", df=df).collect()
    return reads_files_only(row[0])


def reads_files_only(plan: str) -> bool:
    """Whether a physical plan, as text, has no node but scans of Parquet files and projections."""
    lines = [_TREE.sub("", line) for line in plan.splitlines() if line.strip()]
    nodes = [line for line in lines if not line.startswith("==")]
    return bool(nodes) and all(_PLAIN.match(node) for node in nodes)
