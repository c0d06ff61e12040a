"""What Spark's plan of a query says about it, by its public EXPLAIN."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_TREE = re.compile(r"^[\s:+-]*(?:\*\(\d+\) )?")
# A projection without a call only picks and renames.
_PLAIN = re.compile(r"(?:ColumnarToRow|FileScan parquet \[.*|Project \[[^()]*\])$")
_SCAN = re.compile(
    r"FileScan parquet \[[^\]]*\] Batched: \w+, DataFilters: \[\], Format: Parquet, "
    r"Location: InMemoryFileIndex\(1 paths\)\[.*, PartitionFilters: \[\], PushedFilters: \[\], "
    r"ReadSchema: struct<"
)


def physical(spark: SparkSession, df: DataFrame) -> str:
    """The physical plan of ``df``."""
    (row,) = spark.sql("EXPLAIN SELECT * FROM {df}", df=df).collect()
    return str(row[0])


def reads_files_only(plan: str) -> bool:
    """Whether a physical plan, as text, has no node but scans of Parquet files and projections.

    Such rows cost no more to read again than to keep, and are the same each time. Of a plan that
    is not understood the answer is no.
    """
    nodes = _nodes(plan)
    return bool(nodes) and all(_PLAIN.match(node) for node in nodes)


def is_bare_scan(plan: str) -> bool:
    """Whether a physical plan is one scan of a Parquet file or directory, and no more than that.

    Of several paths Spark reads a file as often as they name it, and lists it once.

    Files of a catalog's table, or of a format with a log, do not stand for themselves.
    """
    nodes = [node for node in _nodes(plan) if node != "ColumnarToRow"]
    return len(nodes) == 1 and _SCAN.match(nodes[0]) is not None


def _nodes(plan: str) -> list[str]:
    lines = [_TREE.sub("", line) for line in plan.splitlines() if line.strip()]
    return [line for line in lines if not line.startswith("==")]
